package scopes_test

import (
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// The nodes of the cluster. Each has a pod of an application and a pod of the agent.
const own, foreign = "worker-1", "worker-2"

// appNamespace is the namespace of the application.
const appNamespace = "shop"

// fill replaces the placeholders by what is on a node.
func fill(text, node string) string {
	return strings.NewReplacer("NODE", node, "POD", "cart-"+node, "AGENT", "agent-"+node, "OTHER", "other").Replace(text)
}

// aboutNode reports whether a text names something on a node.
func aboutNode(text string) bool { return fill(text, own) != fill(text, foreign) }

// authorizer returns the authorizer of a scope over the cluster. It enforces the scope.
func (a *agent) authorizer(t *testing.T, scope *v1alpha1.NodeScope) *nodescope.Authorizer {
	t.Helper()
	g := graph.New()
	for _, node := range []string{own, foreign} {
		g.SetPod(pod(appNamespace, fill("POD", node), node))
		g.SetPod(pod(a.day.Account.Namespace, fill("AGENT", node), node))
	}
	scope = scope.DeepCopy()
	scope.Spec.Mode = v1alpha1.Enforce
	compiled, errs := nodescope.Compile(scope)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return authorizerOf(compiled, g)
}

func authorizerOf(scope *nodescope.Scope, g *graph.Graph) *nodescope.Authorizer {
	current, _ := nodescope.NewPolicy([]*nodescope.Scope{scope})
	var policy atomic.Pointer[nodescope.Policy]
	policy.Store(current)
	features := kubeversion.For(kubeversion.Latest)
	restriction := noderestriction.New(noState{}, nil, features)
	return nodescope.New(&policy, g, nodeauthz.New(g, features), restriction)
}

// noState is a state without objects: what NodeRestriction says about writes to Node objects does not
// depend on any.
type noState struct{}

func (noState) Pod(_, _ string) (*corev1.Pod, bool)                       { return nil, false }
func (noState) Node(_ string) (*corev1.Node, bool)                        { return nil, false }
func (noState) ServiceAccount(_, _ string) (*corev1.ServiceAccount, bool) { return nil, false }
func (noState) PersistentVolume(_ string) (*corev1.PersistentVolume, bool) {
	return nil, false
}

func (noState) PersistentVolumeClaim(_, _ string) (*corev1.PersistentVolumeClaim, bool) {
	return nil, false
}
func (noState) CSIDriver(_ string) (*storagev1.CSIDriver, bool) { return nil, false }

func pod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// extra are the extra values of a token that is bound to a pod of a node.
func extra(node string) map[string][]string {
	return map[string][]string{nodeidentity.ExtraNode: {node}}
}

// groups are those of the agent's account.
func (a *agent) groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + a.day.Account.Namespace, "system:authenticated"}
}

// request returns a request of the day about a node, with the token of the own node.
func (a *agent) request(t *testing.T, r *dayRequest, about string) *access.Request {
	t.Helper()
	req := &access.Request{
		User: a.user(), Groups: a.groups(), Extra: extra(own), Verb: r.Verb, Path: r.Path, ResourceRequest: r.Path == "",
		Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: fill(r.Name, about),
	}
	if req.ResourceRequest {
		req.Version = "v1"
	}
	if r.Field != "" {
		selector, err := fields.ParseSelector(fill(r.Field, about))
		if err != nil {
			t.Fatalf("%s: %v", r.Field, err)
		}
		req.FieldSelector = selector.Requirements()
	}
	return req
}

// creation returns the write of a create, as admission sees it.
func (a *agent) creation(r *dayRequest, about string) *noderestriction.Request {
	return &noderestriction.Request{
		User: a.user(), Groups: a.groups(), Extra: extra(own), Operation: noderestriction.Create,
		Group: r.Group, Version: "v1", Resource: r.Resource, Namespace: r.Namespace, Name: fill(r.Creates, about),
	}
}
