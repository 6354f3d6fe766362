package query

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// The requests to the API server for one question. The first request of each is for one role, to
// know whether the cluster uses RBAC.
func TestQuestionsReadWhatTheyDependOn(t *testing.T) {
	const (
		anyRole    = "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1"
		node       = "/api/v1/nodes?fieldSelector=metadata.name%3Dn0"
		podsOnNode = "/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3Dn0"
		podsOfShop = "/api/v1/namespaces/shop/pods?limit=500"
		volumes    = "/api/v1/persistentvolumes?limit=500"
	)
	const group = "/apis/rbac.authorization.k8s.io/v1/"
	rbac := []string{
		group + "clusterrolebindings?limit=500", group + "clusterroles?fieldSelector=metadata.name%3Dview",
		group + "namespaces/shop/rolebindings?limit=500", group + "namespaces/shop/roles?fieldSelector=metadata.name%3Dconfig",
	}
	// A cluster-scoped request has no role bindings. One of each other kind shows whether the user may list it.
	rbacOfCluster := []string{
		group + "clusterrolebindings?limit=500", group + "clusterroles?fieldSelector=metadata.name%3Dview",
		group + "rolebindings?limit=1", group + "roles?limit=1",
	}
	c := exampleCluster(t)
	for _, test := range []struct {
		rule   string
		ask    string
		as     command.IdentityFlags
		answer string
		lists  []string
		rbac   []string
	}{
		{
			rule: "a secret that a pod names: pods of the node", ask: "get secrets/db", answer: command.Yes,
			lists: []string{anyRole, node, podsOnNode},
		},
		{
			rule: "a secret that nothing names: also all volumes, and pods of its namespace", ask: "get secrets/none", answer: command.No,
			lists: []string{anyRole, node, podsOnNode, podsOfShop, volumes}, rbac: rbac,
		},
		{
			rule: "a secret of a volume: also all volumes", ask: "get secrets/ceph", answer: command.Yes,
			lists: []string{anyRole, node, podsOnNode, volumes},
		},
		{
			rule: "a secret of a volume of another node: also the pods of its claim's namespace",
			ask:  "get secrets/far", answer: command.No,
			lists: []string{
				anyRole, node, podsOnNode, podsOfShop, volumes, "/api/v1/namespaces/pay/pods?fieldSelector=spec.nodeName%3Dn0",
				"/api/v1/namespaces/pay/pods?limit=500",
			}, rbac: rbac,
		},
		{
			rule: "a volume: the volume, and pods of the node in the namespace of its claim",
			ask:  "get persistentvolumes/v0", answer: command.Yes,
			lists: []string{anyRole, node, podsOnNode, "/api/v1/persistentvolumes?fieldSelector=metadata.name%3Dv0"},
		},
		{
			rule: "a config map that nothing names: pods of its namespace, no volumes", ask: "get configmaps/none", answer: command.No,
			lists: []string{anyRole, node, podsOnNode, podsOfShop}, rbac: rbac,
		},
		{
			rule: "a pod: the pod", ask: "get pods/api", answer: command.Yes,
			lists: []string{anyRole, node, "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dapi"},
		},
		{
			rule: "a pod of another node: the pod", ask: "get pods/far", answer: command.No, rbac: rbac,
			lists: []string{anyRole, node, "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dfar"},
		},
		{rule: "what every node may: nothing", ask: "get services/x", answer: command.Yes, lists: []string{anyRole, node}},
		{rule: "what no node may: roles", ask: "get deployments.apps/x", answer: command.No, lists: []string{anyRole, node}, rbac: rbac},
		{
			rule: "a cluster-scoped object that no node may read: no role bindings", ask: "get csinodes/n1", answer: command.No,
			lists: []string{anyRole, node}, rbac: rbacOfCluster,
		},
		{
			rule: "a user: the roles that are bound to the user",
			ask:  "get secrets/db", as: command.IdentityFlags{User: "ada"}, answer: command.No,
			lists: []string{anyRole}, rbac: []string{
				group + "clusterrolebindings?limit=500", group + "namespaces/shop/rolebindings?limit=500",
				group + "clusterroles?fieldSelector=metadata.name%3Dedit", group + "roles?limit=1",
			},
		},
		{
			rule: "a token: the pods that use the account", ask: "create serviceaccounts/default token", answer: command.Yes,
			lists: []string{anyRole, node, podsOnNode},
		},
		{
			rule: "a write of a node's own pod: the pod", ask: "delete pods/far", answer: command.No,
			lists: []string{anyRole, node, "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dfar"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c.lists()
			q := partsQuestion{args: strings.Fields(test.ask), who: test.as, namespace: "shop"}
			if len(q.args) > 2 {
				q.args, q.flags.Subresource = q.args[:2], q.args[2]
			}
			if q.who.User == "" {
				q.who.Node = "n0"
			}
			said, answer := answered(t, c.partsSession(), q)
			want := slices.Sorted(slices.Values(append(slices.Clone(test.lists), test.rbac...)))
			if got := c.lists(); answer != test.answer || !slices.Equal(got, want) {
				t.Errorf("lists\n%s\nwant\n%s\nanswer %s, want %s: %s",
					strings.Join(got, "\n"), strings.Join(want, "\n"), answer, test.answer, said)
			}
		})
	}
}

// exampleCluster has node n0 with a pod that names a secret and a claim, and node n1 with pods in
// two namespaces.
func exampleCluster(t *testing.T) *partsCluster {
	t.Helper()
	c := emptyPartsCluster(t, "v1.37.0")
	for _, name := range []string{"n0", "n1"} {
		c.put("/api/v1/nodes/"+name, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	pod := func(namespace, name, node, claim string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		pod.Spec.NodeName, pod.Spec.ServiceAccountName = node, "default"
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "db"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
		c.put("/api/v1/namespaces/"+namespace+"/pods/"+name, pod)
	}
	pod("shop", "api", "n0", "c0")
	pod("shop", "far", "n1", "c1")
	pod("pay", "far", "n1", "c1")
	volume := func(name, namespace, claim, secret string) {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim}
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
			Driver: "csi.example.com", NodeStageSecretRef: &corev1.SecretReference{Namespace: "shop", Name: secret},
		}
		c.put("/api/v1/persistentvolumes/"+name, volume)
	}
	volume("v0", "shop", "c0", "ceph")
	volume("v1", "pay", "c1", "far")
	c.bind("ClusterRole", "", "view", "system:nodes")
	c.bind("ClusterRole", "", "unused", "others")
	c.bind("ClusterRole", "shop", "edit", "ada")
	c.bind("Role", "shop", "config", "system:nodes")
	c.bind("Role", "pay", "config", "system:nodes")
	return c
}

func TestReachReadsOneNode(t *testing.T) {
	c := exampleCluster(t)
	s := c.partsSession()
	reached, err := Reach(s, "n0", command.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/api/v1/namespaces/shop/persistentvolumeclaims?fieldSelector=metadata.name%3Dc0",
		"/api/v1/nodes?limit=1",
		"/api/v1/persistentvolumes?limit=500",
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dn0",
		"/api/v1/serviceaccounts?limit=1",
		"/apis/certificates.k8s.io/v1/podcertificaterequests?fieldSelector=spec.nodeName%3Dn0",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?limit=500",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles?fieldSelector=metadata.name%3Dview",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/pay/roles?fieldSelector=metadata.name%3Dconfig",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles?fieldSelector=metadata.name%3Dconfig",
		"/apis/rbac.authorization.k8s.io/v1/rolebindings?limit=500",
		"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn0",
		"/apis/storage.k8s.io/v1/csidrivers?limit=500",
		"/apis/storage.k8s.io/v1/volumeattachments?limit=500",
	}
	if got := c.lists(); !slices.Equal(got, want) {
		t.Errorf("lists\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(reached.Objects) != 6 { // pod, account, two secrets, claim, volume
		t.Errorf("n0 reaches %v", reached.Totals)
	}
}
