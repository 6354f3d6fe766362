package nodeauthz

import (
	"fmt"
	"strconv"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func pathMessage(path verdict.Path) string {
	if len(path) == 0 {
		// The relation was removed after the decision.
		return Summary(PathToObject)
	}
	if len(path) == 1 {
		return fmt.Sprintf("%s is on %s", path[0].From, path[0].To)
	}
	return fmt.Sprintf("%s on %s", relation(path), path[len(path)-1].To)
}

// relation describes how the first object of a path is related to the pod at its end.
func relation(path verdict.Path) string { return string(appendRelation(make([]byte, 0, 256), path)) }

func appendRelation(b []byte, path verdict.Path) []byte {
	first := path[0]
	b = first.From.AppendTo(b)
	if first.From.Kind == graph.PersistentVolume.String() {
		b = append(b, " is bound to "...)
	} else {
		b = append(b, " is referenced by "...)
	}
	b = first.To.AppendTo(b)
	b = append(append(append(b, " ("...), first.Field...), ')')
	if pod := path[len(path)-1].From; pod != first.To {
		b = pod.AppendTo(append(b, ", used by "...))
	}
	return b
}

// noPath describes which references to the object exist instead.
func noPath(req *access.Request, answer Answer, nearest graph.Nearest) verdict.Reason {
	reason := verdict.Reason{Code: NoPathToObject, Message: noPathMessage(req, answer, nearest)}
	if len(nearest.Paths) > 0 {
		reason.Path = nearest.Paths[0]
	}
	reason.Hint = wayToObject(answer.entry.kind, req.Namespace, reason.Path, answer.Node)
	return reason
}

func noPathMessage(req *access.Request, answer Answer, nearest graph.Nearest) string {
	kind := answer.entry.kind
	object := verdict.Object{Kind: kind.String(), Namespace: req.Namespace, Name: req.Name}
	if len(nearest.Paths) == 0 {
		return "no relationship found between node " + answer.Node + " and " + object.String() + ": " + unrelated(kind)
	}
	return elsewhere(object, nearest.Paths[0], nearest.TotalNodes, answer.Node)
}

// relatedSince says that a refusal was correct when it was decided, but no longer is.
func relatedSince(req *access.Request, answer Answer) string {
	object := verdict.Object{Kind: answer.entry.kind.String(), Namespace: req.Namespace, Name: req.Name}
	return "no relationship was found between node " + answer.Node + " and " + object.String() + " when this was decided; there is one now"
}

// unrelated describes what is missing if an object has no path to any node.
func unrelated(kind graph.Kind) string {
	switch kind {
	case graph.Pod, graph.VolumeAttachment, graph.ResourceSlice, graph.PodCertificateRequest:
		return "it is on no node, or does not exist"
	case graph.PersistentVolume:
		return "it is bound to no claim, or does not exist"
	}
	return "nothing on any node refers to it"
}

// elsewhere describes which nodes reach the object instead.
func elsewhere(object verdict.Object, path verdict.Path, nodes int, node string) string {
	last := path[len(path)-1]
	switch {
	case nodes == 0 && len(path) == 1:
		return fmt.Sprintf("%s is bound to %s, which no pod on any node uses", object, last.To)
	case nodes == 0:
		return fmt.Sprintf("%s is referenced by %s, but no pod on any node uses its %s", object, path[0].To, last.To)
	case len(path) == 1:
		return fmt.Sprintf("%s is on %s, not on node %s", object, last.To, node)
	}
	return onOthers(path, nodes, node)
}

// onOthers says on which nodes an object is that is not on the node. Most refusals have this
// message, so it is made in one piece.
func onOthers(path verdict.Path, nodes int, node string) string {
	b := make([]byte, 0, 384)
	b = append(appendRelation(b, path), " on "...)
	b = path[len(path)-1].To.AppendTo(b)
	switch nodes {
	case 1:
		b = append(b, ", not on node "...)
	case 2:
		b = append(b, " and reachable from one more node, but not from node "...)
	default:
		b = strconv.AppendInt(append(b, " and reachable from "...), int64(nodes-1), 10)
		b = append(b, " more nodes, but not from node "...)
	}
	return string(append(b, node...))
}

// wayToObject describes what would give a node access to an object.
func wayToObject(kind graph.Kind, namespace string, path verdict.Path, node string) string {
	for _, edge := range path {
		if edge.Holder.Kind == graph.PersistentVolume.String() && edge.From == edge.Holder {
			return fmt.Sprintf("a pod bound to node %s that mounts %s would give access", node, edge.To)
		}
	}
	switch kind {
	case graph.Pod:
		return fmt.Sprintf("a node has access only to its own pods: "+
			"check the pod's name, namespace and spec.nodeName, which must be %s", node)
	case graph.VolumeAttachment, graph.ResourceSlice, graph.PodCertificateRequest:
		return fmt.Sprintf("a node has access only to those whose spec.nodeName is its own, %s", node)
	case graph.PersistentVolume:
		return fmt.Sprintf("the volume must be bound (spec.claimRef) to a claim that a pod on node %s uses", node)
	}
	return fmt.Sprintf("a pod in namespace %s bound to node %s that refers to it would give access; mirror (static) pods give none",
		namespace, node)
}
