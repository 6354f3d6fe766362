package noderestriction_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// worker is the stored Node worker-1.
func worker() *corev1.Node {
	added := metav1.NewTime(time.Unix(1_700_000_000, 0))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "worker-1", UID: "uid-of-worker-1",
			Labels: map[string]string{"kubernetes.io/hostname": "worker-1", "node-restriction.kubernetes.io/tier": "web", "team": "shop"},
		},
		Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{{Key: "dedicated", Value: "shop", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &added}},
		},
	}
}

// createNode and updateNode are worker-1's requests to write itself.
func createNode(change func(*corev1.Node)) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: noderestriction.Create, Version: "v1", Resource: "nodes", Name: "worker-1",
		Object: changed(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}, change),
	})
}

func updateNode(subresource string, change func(*corev1.Node)) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: noderestriction.Update, Version: "v1", Resource: "nodes", Subresource: subresource, Name: "worker-1",
		OldObject: worker(), Object: changed(worker(), change),
	})
}

func withConfigSource(source *corev1.NodeConfigSource) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.ConfigSource = source //lint:ignore SA1019 stored nodes can have it
	}
}

func owned(n *corev1.Node) {
	n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "x"}}
}

// disown is worker-1's request to take away its own owner.
func disown(subresource string) *noderestriction.Request {
	req := updateNode(subresource, func(*corev1.Node) {})
	req.OldObject = changed(worker(), owned)
	return req
}

func TestCreateNode(t *testing.T) {
	other := createNode(func(*corev1.Node) {})
	other.Name = "worker-2"
	named := createNode(func(n *corev1.Node) { n.Name = "worker-2" })
	noObject := createNode(func(*corev1.Node) {})
	noObject.Object = nil
	checkAll(t, shop(), []expectation{
		{rule: "the node itself", request: createNode(func(*corev1.Node) {}), code: noderestriction.RestrictionsMet},
		{rule: "another node", request: other, code: noderestriction.WritesOtherNode},
		{rule: "the request's name counts, not the object's", request: named, code: noderestriction.RestrictionsMet},
		{rule: "taints and owners may be set", request: createNode(func(n *corev1.Node) {
			n.Spec.Taints = worker().Spec.Taints
			owned(n)
		}), code: noderestriction.RestrictionsMet},
		{
			rule: "an empty config source", request: createNode(withConfigSource(&corev1.NodeConfigSource{})),
			code: noderestriction.ConfigSourceSet,
		},
		{
			rule:    "a label of the kubelet",
			request: createNode(func(n *corev1.Node) { n.Labels = map[string]string{"kubernetes.io/arch": "arm64"} }),
			code:    noderestriction.RestrictionsMet,
		},
		{
			rule:    "a reserved label",
			request: createNode(func(n *corev1.Node) { n.Labels = map[string]string{"node-restriction.kubernetes.io/tier": "db"} }),
			code:    noderestriction.LabelNotAllowed,
		},
		{rule: "no object", request: noObject, code: noderestriction.UnexpectedObject},
	})
}

func TestUpdateNode(t *testing.T) {
	other := updateNode("", func(*corev1.Node) {})
	other.Name = "worker-2"
	noObject := updateNode("", func(*corev1.Node) {})
	noObject.Object = nil
	noOld := updateNode("", func(*corev1.Node) {})
	noOld.OldObject = nil
	source := func(name string) *corev1.NodeConfigSource {
		return &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Name: name}}
	}
	configured := func(old, updated *corev1.NodeConfigSource) *noderestriction.Request {
		req := updateNode("", withConfigSource(updated))
		req.OldObject = changed(worker(), withConfigSource(old))
		return req
	}
	for _, subresource := range []string{"", "status", "anything"} {
		t.Run("subresource "+subresource, func(t *testing.T) {
			checkAll(t, shop(), []expectation{
				{rule: "nothing changes", request: updateNode(subresource, func(*corev1.Node) {}), code: noderestriction.RestrictionsMet},
				{rule: "conditions change", request: updateNode(subresource, func(n *corev1.Node) {
					n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
				}), code: noderestriction.RestrictionsMet},
				{
					rule: "a taint goes", request: updateNode(subresource, func(n *corev1.Node) { n.Spec.Taints = nil }),
					code: noderestriction.TaintsChanged,
				},
				{
					rule: "a taint comes",
					request: updateNode(subresource, func(n *corev1.Node) {
						n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "x"})
					}),
					code: noderestriction.TaintsChanged,
				},
				{
					rule:    "a taint changes",
					request: updateNode(subresource, func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectPreferNoSchedule }),
					code:    noderestriction.TaintsChanged,
				},
				{
					rule:    "a taint gets another time",
					request: updateNode(subresource, func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = nil }),
					code:    noderestriction.TaintsChanged,
				},
				{
					rule:    "a taint gets another value",
					request: updateNode(subresource, func(n *corev1.Node) { n.Spec.Taints[0].Value = "" }),
					code:    noderestriction.TaintsChanged,
				},
				{rule: "a taint's time in another zone", request: updateNode(subresource, func(n *corev1.Node) {
					in := metav1.NewTime(n.Spec.Taints[0].TimeAdded.In(time.FixedZone("x", 3600)))
					n.Spec.Taints[0].TimeAdded = &in
				}), code: noderestriction.RestrictionsMet},
				{rule: "an owner comes", request: updateNode(subresource, owned), code: noderestriction.OwnerReferencesChanged},
				{rule: "the owner goes", request: disown(subresource), code: noderestriction.OwnerReferencesChanged},
				{
					rule:    "a reserved label changes",
					request: updateNode(subresource, func(n *corev1.Node) { n.Labels["node-restriction.kubernetes.io/tier"] = "db" }),
					code:    noderestriction.LabelNotAllowed,
				},
				{
					rule:    "a reserved label goes",
					request: updateNode(subresource, func(n *corev1.Node) { delete(n.Labels, "node-restriction.kubernetes.io/tier") }),
					code:    noderestriction.LabelNotAllowed,
				},
				{
					rule:    "a free label changes",
					request: updateNode(subresource, func(n *corev1.Node) { n.Labels["team"] = "ads" }),
					code:    noderestriction.RestrictionsMet,
				},
			})
		})
	}
	checkAll(t, shop(), []expectation{
		{rule: "another node", request: other, code: noderestriction.WritesOtherNode},
		{rule: "a new config source", request: configured(nil, source("a")), code: noderestriction.ConfigSourceSet},
		{rule: "another config source", request: configured(source("a"), source("b")), code: noderestriction.ConfigSourceSet},
		{rule: "the same config source", request: configured(source("a"), source("a")), code: noderestriction.RestrictionsMet},
		{rule: "a config source that goes", request: configured(source("a"), nil), code: noderestriction.RestrictionsMet},
		{rule: "no object", request: noObject, code: noderestriction.UnexpectedObject},
		{rule: "no old object", request: noOld, code: noderestriction.UnexpectedObject},
	})
}

func TestDeleteNode(t *testing.T) {
	remove := func(name string) *noderestriction.Request {
		return from("worker-1", noderestriction.Request{Operation: noderestriction.Delete, Version: "v1", Resource: "nodes", Name: name})
	}
	checkAll(t, shop(), []expectation{
		{rule: "itself", request: remove("worker-1"), code: noderestriction.RestrictionsMet},
		{rule: "another node", request: remove("worker-2"), code: noderestriction.WritesOtherNode},
		{rule: "no name", request: remove(""), code: noderestriction.WritesOtherNode},
	})
}

// TestLabels has the keys that a node may write, and those that it may not.
func TestLabels(t *testing.T) {
	free := []string{
		"team", "example.com/team", "cluster.x-k8s.io/owner", "kubernetes.io", "k8s.io", "kubernetes.iox/a",
		"a.kubernetes.io.example.com/a",
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
		"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region",
		"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type", "node.kubernetes.io/anything",
		"kubelet.kubernetes.io/anything",
		"a.node.kubernetes.io/x", "a.kubelet.kubernetes.io/x", "node-restriction.kubernetes.io.node.kubernetes.io/x",
		"xnode-restriction.kubernetes.iox/a",
	}
	reserved := []string{
		"node-restriction.kubernetes.io/tier", "a.node-restriction.kubernetes.io/tier", "a.b.node-restriction.kubernetes.io/",
		"kubernetes.io/x", "k8s.io/x", "a.kubernetes.io/x", "a.k8s.io/x", "xnode-restriction.kubernetes.io/a", "kubernetes.io/hostname2",
		"node-role.kubernetes.io/control-plane", "topology.kubernetes.io/rack", "kubernetes.io/a/b", "kubernetes.io/",
	}
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	for _, key := range slices.Concat(free, reserved) {
		want := noderestriction.RestrictionsMet
		if slices.Contains(reserved, key) {
			want = noderestriction.LabelNotAllowed
		}
		for change, req := range map[string]*noderestriction.Request{
			"create": createNode(func(n *corev1.Node) { n.Labels = map[string]string{key: ""} }),
			"add":    updateNode("", func(n *corev1.Node) { n.Labels[key] = "x" }),
		} {
			expectation{rule: change + " " + key, request: req, code: want}.check(t, r)
		}
		stays := updateNode("", func(n *corev1.Node) { n.Labels[key] = "x" })
		stays.OldObject = stays.Object
		expectation{rule: "keep " + key, request: stays, code: noderestriction.RestrictionsMet}.check(t, r)
	}
}

func TestLabelRefusalNamesTheLabels(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	got := r.Decide(t.Context(), updateNode("", func(n *corev1.Node) {
		n.Labels = map[string]string{"k8s.io/b": "", "k8s.io/a": "", "free": "", "kubernetes.io/hostname": "x"}
	}))
	if want := `"k8s.io/a, k8s.io/b, node-restriction.kubernetes.io/tier"`; !strings.HasSuffix(got.Reason.Message, " "+want) {
		t.Errorf("the message is %q, want the labels %s", got.Reason.Message, want)
	}
}
