package remedies

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// allRights is the world in which the user has every right by RBAC, every gate is on that does not
// remove a protection, and each pod that waits for its scheduler is on the node.
func (c testCase) allRights(user string) *evaluate.Evaluator {
	c.Helper()
	w := c.world.clone()
	node := strings.TrimPrefix(user, nodeidentity.UserPrefix)
	for _, o := range w.order {
		binding := verdict.Change{Op: verdict.Add, Object: verdict.Object{Kind: "Binding", Namespace: o.Namespace, Name: o.Name}}
		binding.Value = marshal(c.T, corev1.Binding{Target: corev1.ObjectReference{Name: node}})
		if pod, ok := c.e.State.Pod(o.Namespace, o.Name); o.Kind == "Pod" && ok && pod.Spec.NodeName == "" {
			if err := w.change(binding); err != nil {
				c.Fatal(err)
			}
		}
	}
	version := rbacv1.SchemeGroupVersion.String()
	meta := metav1.ObjectMeta{Name: "every-right"}
	all := []string{"*"}
	w.add(c.T, version, "ClusterRole", &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{Verbs: all, APIGroups: all, Resources: all}, {Verbs: all, NonResourceURLs: all},
	}})
	w.add(c.T, version, "ClusterRoleBinding", &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	for _, gate := range kubeversion.Gates() {
		if gate == kubeversion.AllowInsecureKubeletCertificateSigningRequests {
			continue
		}
		if with, err := w.features.With(gate, true); err == nil {
			w.features = with
		}
	}
	return w.load(c.T)
}

// refuteProduct tries to get the request allowed although the remedy says that nothing helps.
func (c testCase) refuteProduct(r request, remedy verdict.Remedy, code verdict.Code) {
	c.Helper()
	e := c.allRights(r.access.User)
	switch {
	case code == nodeauthz.NotANode || code == nodeauthz.UnnamedNode:
		// Other authorizers decide: see the sentence.
		if e.Node.Decide(&r.access).Decision == verdict.Allow {
			c.fail(remedy, "the Node authorizer allows it with every gate")
		}
		return
	case strings.Contains(remedy.None, "no namespace can have the name"):
		const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
		if name := r.access.Namespace; strings.Trim(name, letters) == "" && strings.Trim(name, "-") == name {
			c.fail(remedy, "a namespace can have this name")
		}
		return
	case strings.HasPrefix(remedy.None, "nodes get tokens only for service accounts of their pods"):
		c.noPodRunsAs(r, remedy)
		return
	}
	c.refute(e, r, remedy, refusedBy)
}

// refute asks with every right and gate: the request, and others that mean the same.
func (c testCase) refute(e *evaluate.Evaluator, r request, remedy verdict.Remedy, refused refuser) {
	c.Helper()
	for what, other := range c.others(r) {
		if by, _ := refused(c.T, e, other); by == "" {
			c.fail(remedy, "it is allowed with every right and gate%s", what)
		}
	}
}

// others are requests for the same in other forms: for the object with the node's name, for a lease
// in the namespace of nodes' leases, without a namespace, for objects on the node, and without any
// change of the stored object. Another name is another thing for a deletion, for an update of a node,
// and for a token: it is of another service account, whose pods may be on the node. Another namespace
// is another thing for all but leases: a request for a pod's certificate would be about another pod.
func (c testCase) others(r request) map[string]request {
	c.Helper()
	node := strings.TrimPrefix(r.access.User, nodeidentity.UserPrefix)
	all := map[string]request{"": r}
	change := func(what string, apply func(*access.Request, *evaluate.Write)) {
		other, write := r, evaluate.Write{}
		if r.write != nil {
			write = *r.write
			other.write = &write
		}
		apply(&other.access, &write)
		write.Namespace, write.Name = other.access.Namespace, other.access.Name
		all[what] = other
	}
	change(", without a namespace", func(a *access.Request, _ *evaluate.Write) { a.Namespace = "" })
	change(", with a field selector", func(a *access.Request, _ *evaluate.Write) {
		a.FieldSelector = fields.Requirements{{Field: "spec.nodeName", Operator: selection.Equals, Value: node}}
	})
	if r.write != nil && r.access.Verb == "update" && reflect.TypeOf(r.write.Object) == reflect.TypeOf(r.write.OldObject) {
		change(", without a change", func(_ *access.Request, w *evaluate.Write) { w.Object = w.OldObject })
	}
	otherThing := strings.HasPrefix(r.access.Verb, "delete") || r.access.Resource == "nodes" && r.access.Verb != "create" ||
		r.access.Resource == "serviceaccounts"
	if !otherThing && r.access.Resource != "pods" {
		change(", with the node's name", func(a *access.Request, _ *evaluate.Write) { a.Name = node })
	}
	if !otherThing && r.access.Resource == "leases" {
		change(", with the node's name in the namespace of leases", func(a *access.Request, _ *evaluate.Write) {
			a.Namespace, a.Name = "kube-node-lease", node
		})
	}
	return all
}

// noPodRunsAs checks that an API server refuses the token, with any right: it gives tokens only for
// pods that run as the service account, and NodeRestriction only for pods on the node.
func (c testCase) noPodRunsAs(r request, remedy verdict.Remedy) {
	c.Helper()
	node := strings.TrimPrefix(r.access.User, "system:node:")
	for o := range c.world.objects {
		if o.Kind != "Pod" || r.access.Namespace != "" && o.Namespace != r.access.Namespace {
			continue
		}
		pod, ok := c.e.State.Pod(o.Namespace, o.Name)
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		if !ok || mirror || pod.Spec.NodeName != node || pod.Spec.ServiceAccountName == "" {
			continue // in a cluster, only mirror pods have no service account
		}
		if r.access.Name == "" || pod.Spec.ServiceAccountName == r.access.Name {
			c.fail(remedy, "pod %s runs as the service account", o.Name)
		}
	}
}

func (c testCase) refuteAdmission(r request, remedy verdict.Remedy) {
	c.Helper()
	c.refute(c.allRights(r.access.User), r, remedy, refusedByRestriction)
}
