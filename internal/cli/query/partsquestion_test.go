package query

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// partsQuestion is a question with its user.
type partsQuestion struct {
	args      []string
	flags     command.QuestionFlags
	who       command.IdentityFlags
	namespace string
	// object is the written object; empty if it is not given.
	object string
}

func (q partsQuestion) String() string {
	return fmt.Sprintf("%v %+v -n %s of %+v %s", q.args, q.flags, q.namespace, q.who, q.object)
}

func (c *partsCluster) question() partsQuestion {
	resource := c.pick("secrets", "secrets", "secrets", "configmaps", "pods", "nodes", "persistentvolumeclaims",
		"persistentvolumes", "persistentvolumes", "csinodes",
		"resourceslices", "resourceclaims", "serviceaccounts", "volumeattachments", "podcertificaterequests", "services", "leases",
		"deployments.apps")
	names := map[string][]string{
		"secrets": {c.secret()}, "configmaps": {"m0"}, "pods": {fmt.Sprintf("p%d", c.IntN(12))}, "nodes": {c.node()},
		"persistentvolumeclaims": {c.claim()}, "persistentvolumes": {c.volume()}, "resourceclaims": {"r0", "r1"},
		"serviceaccounts": {c.account()}, "leases": {c.node()},
	}[resource]
	q := partsQuestion{namespace: c.namespace()}
	verb := c.pick("get", "get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
	q.args = []string{verb, resource}
	if name := c.pick(append(names, "o0", "o1")...); !c.chance(6) {
		q.args = append(q.args, name)
	}
	q.flags = command.QuestionFlags{Subresource: c.pick("", "", "", "status", "token", "eviction"), AllNamespaces: c.chance(10)}
	switch {
	case resource == "serviceaccounts" && c.chance(2):
		q.args[0], q.flags.Subresource = "create", "token"
		if len(c.pods) > 0 && !c.chance(4) {
			return c.tokenQuestion(c.pods[c.IntN(len(c.pods))])
		}
	case c.chance(5):
		q.flags.FieldSelector = "spec.nodeName=" + c.node()
	}
	switch c.IntN(8) {
	case 0:
		q.who.User = c.pick("ada", "system:serviceaccount:shop:api")
	case 1:
		q.who.User, q.who.Groups = "system:node:"+c.node(), []string{"system:nodes"}
	case 2:
		q.who.Node = c.pick("n0", "none", "bare")
	default:
		q.who.Node = c.pick("n0", "n1", "n2")
	}
	return q
}

// tokenQuestion asks for a token that is bound to a pod. Whether the node may have its audience
// depends on the pod's claims, their volumes and CSI drivers, and on RBAC.
func (c *partsCluster) tokenQuestion(pod *corev1.Pod) partsQuestion {
	q := partsQuestion{namespace: pod.Namespace, flags: command.QuestionFlags{Subresource: "token"}}
	q.args = []string{"create", "serviceaccounts", c.pick(pod.Spec.ServiceAccountName, pod.Spec.ServiceAccountName, c.account())}
	q.who.User, q.who.Groups = "system:node:"+c.pick(pod.Spec.NodeName, pod.Spec.NodeName, c.node()), []string{"system:nodes"}
	q.object = fmt.Sprintf(`{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"audiences": [%q],
		"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": %q, "uid": %q}}}`, c.pick("vault", "sts"), pod.Name, pod.UID)
	return q
}
