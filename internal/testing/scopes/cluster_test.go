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

// fill replaces the placeholders by the names of a node and of its pods.
func fill(text, node string) string {
	return strings.NewReplacer("NODE", node, "POD", "cart-"+node, "AGENT", "agent-"+node, "OTHER", "other").Replace(text)
}

// aboutNode reports whether a text names something on a node.
func aboutNode(text string) bool { return fill(text, own) != fill(text, foreign) }

// namedOn gives a request the name of an object of its resource that is on a node, or is the node.
func namedOn(req access.Request, node string) access.Request {
	switch req.Resource {
	case "pods", "ciliumendpoints":
		req.Namespace, req.Name = appNamespace, fill("POD", node)
	case "configmaps":
		req.Namespace, req.Name = appNamespace, settings(node)
	default:
		req.Name = node
	}
	return req
}

// settings is the name of the config map of the application's pod on a node.
func settings(node string) string { return "settings-" + node }

// authorizer returns the authorizer of a scope over the cluster. It enforces the scope.
func (a *agent) authorizer(t *testing.T, scope *v1alpha1.NodeScope) *nodescope.Authorizer {
	t.Helper()
	g := graph.New()
	for _, node := range []string{own, foreign} {
		app := pod(appNamespace, fill("POD", node), node)
		app.Spec.Volumes = []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: settings(node)}},
		}}}
		g.SetPod(app)
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
	restriction := noderestriction.New(state{}, nil, features)
	return nodescope.New(&policy, nil, g, nodeauthz.New(g, features), restriction)
}

// state has the application's pods for NodeRestriction. What it says about writes to Node objects depends on
// no state.
type state struct{}

func (state) Pod(namespace, name string) (*corev1.Pod, bool) {
	for _, node := range []string{own, foreign} {
		if namespace == appNamespace && name == fill("POD", node) {
			return pod(namespace, name, node), true
		}
	}
	return nil, false
}
func (state) Node(_ string) (*corev1.Node, bool)                        { return nil, false }
func (state) ServiceAccount(_, _ string) (*corev1.ServiceAccount, bool) { return nil, false }
func (state) PersistentVolume(_ string) (*corev1.PersistentVolume, bool) {
	return nil, false
}

func (state) PersistentVolumeClaim(_, _ string) (*corev1.PersistentVolumeClaim, bool) {
	return nil, false
}
func (state) CSIDriver(_ string) (*storagev1.CSIDriver, bool) { return nil, false }

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

// groups are the groups of the agent's account.
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
