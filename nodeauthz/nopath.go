package nodeauthz

import (
	"fmt"

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
func relation(path verdict.Path) string {
	verb, used := "referenced by", ""
	if path[0].From.Kind == graph.PersistentVolume.String() {
		verb = "bound to"
	}
	if pod := path[len(path)-1].From; pod != path[0].To {
		used = ", used by " + pod.String()
	}
	return path[0].From.String() + " is " + verb + " " + path[0].To.String() + " (" + path[0].Field + ")" + used
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
	case nodes == 1:
		return relation(path) + " on " + last.To.String() + ", not on node " + node
	case nodes == 2:
		return fmt.Sprintf("%s on %s and reachable from one more node, but not from node %s", relation(path), last.To, node)
	}
	return fmt.Sprintf("%s on %s and reachable from %d more nodes, but not from node %s", relation(path), last.To, nodes-1, node)
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
