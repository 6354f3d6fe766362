package graph_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/graph"
)

// The tests in this file are named after defects of the Node authorizer in
// kube-apiserver 1.30 to 1.37 that this graph must not have. The first two need an
// object with 200 references or more.
const manyNodes = 300

// sharedByMany returns a graph in which manyNodes nodes reach the same objects, each
// through a pod that names each of them twice.
func sharedByMany() *graph.Graph {
	g := graph.New()
	g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
	for i := range manyNodes {
		g.SetPod(newPod(fmt.Sprint("api-", i), fmt.Sprint("worker-", i),
			withSecret("db"), withEnv("api", secretEnv("db"), configEnv("settings")), withConfigMap("settings"),
			withClaim("orders"), withClaim("orders"),
			withResourceClaims(
				corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: new("a100")},
				corev1.PodResourceClaim{Name: "same", ResourceClaimName: new("a100")})))
	}
	return g
}

// shared returns the objects that the pods of sharedByMany name.
func shared() []graph.Reached {
	return []graph.Reached{
		{Kind: graph.Secret, Namespace: "shop", Name: "db"},
		{Kind: graph.ConfigMap, Namespace: "shop", Name: "settings"},
		{Kind: graph.PersistentVolumeClaim, Namespace: "shop", Name: "orders"},
		{Kind: graph.ResourceClaim, Namespace: "shop", Name: "a100"},
		{Kind: graph.PersistentVolume, Name: "pv-1"},
		{Kind: graph.Secret, Namespace: "vault", Name: "key"},
	}
}

func TestPodThatMentionsAnObjectTwiceTakesBothMentionsAlong(t *testing.T) {
	g := sharedByMany()
	g.SetVolumeAttachment(newAttachment("keeps-the-node-known", "worker-7"))
	g.DeletePod("shop", "api-7")
	for _, object := range shared() {
		checkUnrelated(t, g, "worker-7", object.Kind, object.Namespace, object.Name)
		checkRelated(t, g, "worker-8", object.Kind, object.Namespace, object.Name)
		if got := len(g.NodesReaching(object.Kind, object.Namespace, object.Name)); got != manyNodes-1 {
			t.Errorf("%v is reached by %d nodes, want %d", object.Name, got, manyNodes-1)
		}
	}
}

func TestNewNodeDoesNotInheritFromOneThatLeft(t *testing.T) {
	g := sharedByMany()
	g.DeletePod("shop", "api-7") // the last thing on worker-7
	for i := range 10 {
		node := fmt.Sprint("new-", i)
		g.SetVolumeAttachment(newAttachment(fmt.Sprint("va-", i), node))
		for _, object := range shared() {
			checkUnrelated(t, g, node, object.Kind, object.Namespace, object.Name)
		}
	}
	g.SetVolumeAttachment(newAttachment("back-again", "worker-7"))
	for _, object := range shared() {
		checkUnrelated(t, g, "worker-7", object.Kind, object.Namespace, object.Name)
	}
}

func TestBoundPodReplacedByAnUnboundOneGivesUpItsRelations(t *testing.T) {
	g := graph.New()
	g.SetPod(newPod("api-0", "worker-1", withSecret("db")))
	g.SetPod(newPod("api-0", "", withSecret("db"))) // deleted and created again within one gap of a watch
	checkUnrelated(t, g, "worker-1", graph.Secret, "shop", "db")
	checkUnrelated(t, g, "worker-1", graph.Pod, "shop", "api-0")
	checkEmpty(t, g)
}

func TestObjectRecreatedForAnotherNodeMovesThere(t *testing.T) {
	g := graph.New()
	g.SetResourceSlice(newSlice("gpus", new("worker-1")))
	g.SetPodCertificateRequest(newRequest("api", "worker-1"))
	// Deleted and created again, seen as one update each.
	g.SetResourceSlice(newSlice("gpus", new("worker-2")))
	g.SetPodCertificateRequest(newRequest("api", "worker-2"))
	for kind, key := range map[graph.Kind][2]string{graph.ResourceSlice: {"", "gpus"}, graph.PodCertificateRequest: {"shop", "api"}} {
		checkUnrelated(t, g, "worker-1", kind, key[0], key[1])
		checkRelated(t, g, "worker-2", kind, key[0], key[1])
	}
}
