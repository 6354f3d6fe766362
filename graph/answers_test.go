package graph_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// newShop returns the cluster of the golden file: two nodes that share a claim
// and a secret, a node with a mirror pod, and a volume that no pod uses.
func newShop() *graph.Graph {
	g := graph.New()
	g.SetPod(newPod("api", "worker-1", withServiceAccount("api"),
		withEnv("app", secretEnv("db"), secretEnv("db"), configEnv("settings")),
		withSecret("db"), withClaim("orders")))
	g.SetPod(newPod("web", "worker-2", withServiceAccount("web"), withSecret("db"), withClaim("orders"),
		withResourceClaims(corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: new("a100")})))
	g.SetPod(newPod("static", "worker-3", withSecret("db"), mirror))
	g.SetPod(newPod("pending", "", withSecret("later")))
	g.SetPersistentVolume(newVolume("pv-orders", "orders", stageSecret("vault", "key")))
	g.SetPersistentVolume(newVolume("pv-idle", "idle", stageSecret("vault", "idle")))
	g.SetPersistentVolume(newVolume("pv-spare", "", stageSecret("vault", "spare")))
	g.SetVolumeAttachment(newAttachment("csi-1", "worker-1"))
	g.SetResourceSlice(newSlice("worker-2-gpus", new("worker-2")))
	g.SetPodCertificateRequest(newRequest("web-cert", "worker-2"))
	return g
}

func TestAnswersAboutAShop(t *testing.T) {
	g := newShop()
	var b strings.Builder
	fmt.Fprintln(&b, "nodes", g.Nodes())
	stats := g.Stats()
	for _, kind := range graph.Kinds() {
		fmt.Fprintln(&b, "vertices", kind, stats.Vertices[kind])
	}
	fmt.Fprintln(&b, "links", stats.Links)
	for _, node := range append(g.Nodes(), "worker-4") {
		fmt.Fprintln(&b, "\nreach of", node)
		for _, r := range g.Reach(node) {
			fmt.Fprintf(&b, "  %v %q %q: %v\n", r.Kind, r.Namespace, r.Name, r.Paths[0])
		}
	}
	for _, object := range []struct {
		kind            graph.Kind
		namespace, name string
	}{
		{graph.Secret, "shop", "db"},
		{graph.Secret, "vault", "key"},
		{graph.Secret, "vault", "idle"},
		{graph.Secret, "vault", "spare"},
		{graph.Secret, "shop", "later"},
		{graph.PersistentVolumeClaim, "shop", "orders"},
		{graph.PersistentVolumeClaim, "shop", "idle"},
		{graph.PersistentVolume, "", "pv-orders"},
		{graph.PersistentVolume, "", "pv-idle"},
		{graph.Pod, "shop", "web"},
		{graph.Pod, "shop", "pending"},
		{graph.ResourceSlice, "", "worker-2-gpus"},
		{graph.Node, "", "worker-1"},
	} {
		fmt.Fprintf(&b, "\n%v %q %q\n", object.kind, object.namespace, object.name)
		for _, path := range g.Paths("worker-1", object.kind, object.namespace, object.name) {
			fmt.Fprintln(&b, "  path to worker-1:", path)
		}
		fmt.Fprintln(&b, "  nodes reaching:", g.NodesReaching(object.kind, object.namespace, object.name))
		nearest := g.Nearest(object.kind, object.namespace, object.name, 2)
		for _, path := range nearest.Paths {
			fmt.Fprintln(&b, "  nearest:", path)
		}
		fmt.Fprintln(&b, "  nodes:", nearest.TotalNodes)
	}
	compareGolden(t, "shop.golden", b.String())
}

func TestPathsAreInOrder(t *testing.T) {
	g := graph.New()
	g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("shop", "db")))
	g.SetPod(newPod("b", "worker-1", withClaim("orders"), withSecret("db"), withEnv("app", secretEnv("db"))))
	g.SetPod(newPod("a", "worker-1", withSecret("db")))
	g.SetPod(newPod("c", "worker-2", withSecret("db")))
	want := []string{
		"secret shop/db <- pod shop/a (spec.volumes[name=secret-db].secret) <- node worker-1",
		"secret shop/db <- pod shop/b (spec.containers[name=app].env) <- node worker-1",
		"secret shop/db <- pod shop/b (spec.volumes[name=secret-db].secret) <- node worker-1",
		"secret shop/db <- persistentvolume pv-1 (spec.csi.nodeStageSecretRef) <- persistentvolumeclaim shop/orders (spec.claimRef)" +
			" <- pod shop/b (spec.volumes[name=claim-orders].persistentVolumeClaim) <- node worker-1",
	}
	paths := g.Paths("worker-1", graph.Secret, "shop", "db")
	if got := lines(paths); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := g.Path("worker-1", graph.Secret, "shop", "db").String(); got != want[0] {
		t.Errorf("Path is %s, want the first of Paths", got)
	}
}

func TestFieldThatNamesAnObjectTwiceIsOnePath(t *testing.T) {
	g := graph.New()
	g.SetPod(newPod("api", "worker-1", withEnv("app", secretEnv("db"), secretEnv("db"), secretEnv("db"))))
	g.SetPod(newPod("web", "worker-2", withEnv("app", secretEnv("db"))))
	if got := lines(g.Paths("worker-1", graph.Secret, "shop", "db")); len(got) != 1 {
		t.Errorf("want one path for the env of one container, got\n%s", strings.Join(got, "\n"))
	}
	want := []string{
		"secret shop/db <- pod shop/api (spec.containers[name=app].env) <- node worker-1",
		"secret shop/db <- pod shop/web (spec.containers[name=app].env) <- node worker-2",
	}
	if got := lines(g.Nearest(graph.Secret, "shop", "db", 2).Paths); !slices.Equal(got, want) {
		t.Errorf("nearest are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNearest(t *testing.T) {
	t.Run("has complete paths first, then incomplete ones", func(t *testing.T) {
		g := graph.New()
		g.SetPersistentVolume(newVolume("pv-a", "unused", stageSecret("vault", "key")))
		g.SetPersistentVolume(newVolume("pv-b", "orders", stageSecret("vault", "key")))
		g.SetPod(newPod("api", "worker-1", withClaim("orders")))
		nearest := g.Nearest(graph.Secret, "vault", "key", 5)
		if len(nearest.Paths) != 2 || len(nearest.Paths[0]) != 4 || len(nearest.Paths[1]) != 2 {
			t.Fatalf("want a path to worker-1 and one to the claim, got %v", nearest.Paths)
		}
		if got := nearest.Paths[1].String(); got != "secret vault/key <- persistentvolume pv-a (spec.csi.nodeStageSecretRef) "+
			"<- persistentvolumeclaim shop/unused (spec.claimRef)" {
			t.Errorf("the second path is %s", got)
		}
		if nearest.TotalNodes != 1 {
			t.Errorf("reached from %d nodes", nearest.TotalNodes)
		}
	})
	t.Run("respects its limit and counts all nodes", func(t *testing.T) {
		g := graph.New()
		for i := range 9 {
			g.SetPod(newPod(fmt.Sprint("api-", i), fmt.Sprint("worker-", i), withSecret("db")))
		}
		nearest := g.Nearest(graph.Secret, "shop", "db", 2)
		if len(nearest.Paths) != 2 || nearest.Paths[0][0].To.Name != "api-0" || nearest.Paths[1][0].To.Name != "api-1" {
			t.Errorf("want the paths of api-0 and api-1, got %v", nearest.Paths)
		}
		if nearest.TotalNodes != 9 {
			t.Errorf("reached from %d nodes", nearest.TotalNodes)
		}
	})
	t.Run("names the first nodes in order, for any number of nodes", func(t *testing.T) {
		g := graph.New()
		for i := range 3000 {
			g.SetPod(newPod(fmt.Sprintf("api-%04d", i), fmt.Sprintf("worker-%04d", i), withSecret("db")))
		}
		nearest := g.Nearest(graph.Secret, "shop", "db", 2)
		if nearest.TotalNodes != 3000 {
			t.Errorf("reached from %d nodes", nearest.TotalNodes)
		}
	})
	t.Run("does not depend on history", func(t *testing.T) {
		fresh, used := graph.New(), graph.New()
		for i := range 40 {
			for _, g := range []*graph.Graph{fresh, used} {
				g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
				g.SetPod(newPod(fmt.Sprintf("api-%02d", i), fmt.Sprintf("worker-%02d", i), withClaim("orders")))
			}
		}
		for i := range 20 { // removed and added again: now the last of the claim's users
			name, node := fmt.Sprintf("api-%02d", i), fmt.Sprintf("worker-%02d", i)
			used.DeletePod("shop", name)
			used.SetPod(newPod(name, node, withClaim("orders")))
		}
		want, got := lines(fresh.Nearest(graph.Secret, "vault", "key", 3).Paths), lines(used.Nearest(graph.Secret, "vault", "key", 3).Paths)
		if !slices.Equal(got, want) {
			t.Errorf("nearest are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	t.Run("does not depend on the order of objects", func(t *testing.T) {
		var objects []func(*graph.Graph)
		for i := range 150 {
			claim := "orders"
			if i%3 == 0 {
				claim = "images"
			}
			pod := newPod(fmt.Sprintf("api-%03d", i), fmt.Sprintf("worker-%d", i%7), withSecret("db"), withClaim(claim))
			pod.Namespace = []string{"shop", "bank"}[i%2]
			volume := newVolume(fmt.Sprintf("pv-%03d", i), []string{"orders", "images", "unused"}[i%3], stageSecret("vault", "key"))
			objects = append(objects, func(g *graph.Graph) { g.SetPod(pod) }, func(g *graph.Graph) { g.SetPersistentVolume(volume) })
		}
		var want string
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 0))
			r.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
			g := graph.New()
			var got strings.Builder
			for i, apply := range objects {
				apply(g)
				g.Nearest(graph.Secret, "shop", "db", 1) // its cache does not survive a change
				if i < len(objects)-1 {
					continue
				}
				for _, question := range [][3]string{
					{"Secret", "shop", "db"},
					{"Secret", "vault", "key"},
					{"PersistentVolumeClaim", "shop", "orders"},
					{"PersistentVolume", "", "pv-000"},
				} {
					for _, kind := range graph.Kinds() {
						if kind.String() != question[0] {
							continue
						}
						for _, limit := range []int{1, 3, 20, 1} {
							fmt.Fprintln(&got, question, limit, lines(g.Nearest(kind, question[1], question[2], limit).Paths))
						}
					}
				}
			}
			if want == "" {
				want = got.String()
				first := g.Nearest(graph.Secret, "shop", "db", 1).Paths[0][0].To
				if first.Namespace != "shop" || first.Name != "api-000" {
					t.Errorf("the first pod of shop is %v", first)
				}
			}
			if got.String() != want {
				t.Fatalf("seed %d: nearest are\n%s\nwant\n%s", seed, got.String(), want)
			}
		}
	})
	t.Run("drops its cache when the graph changes", func(t *testing.T) {
		g := graph.New()
		for i := range 200 {
			g.SetPod(newPod(fmt.Sprintf("api-%03d", i), "worker-1", withSecret("db")))
		}
		for i := range 150 {
			if first := g.Nearest(graph.Secret, "shop", "db", 1).Paths[0][0].To.Name; first != fmt.Sprintf("api-%03d", i) {
				t.Fatalf("the first of those from %d on is %s", i, first)
			}
			g.DeletePod("shop", fmt.Sprintf("api-%03d", i))
		}
	})
	t.Run("of an unknown object is empty", func(t *testing.T) {
		if nearest := newShop().Nearest(graph.Secret, "shop", "unheard-of", 3); len(nearest.Paths) != 0 || nearest.TotalNodes != 0 {
			t.Errorf("got %+v", nearest)
		}
	})
	t.Run("is readable as JSON", func(t *testing.T) {
		text, err := json.Marshal(newShop().Nearest(graph.ResourceSlice, "", "worker-2-gpus", 1))
		want := `{"paths":[[{"from":{"kind":"ResourceSlice","name":"worker-2-gpus"},"to":{"kind":"Node","name":"worker-2"},` +
			`"holder":{"kind":"ResourceSlice","name":"worker-2-gpus"},"field":"spec.nodeName"}]],"totalNodes":1}`
		if err != nil || string(text) != want {
			t.Errorf("got %s, %v, want %s", text, err, want)
		}
	})
}

func TestUnknownNamesHaveNoAnswers(t *testing.T) {
	g := newShop()
	for _, node := range []string{"", "worker", "worker-9", "system:node:worker-1"} {
		if g.HasPath(node, graph.Secret, "shop", "db") || g.HasNode(node) || g.Path(node, graph.Secret, "shop", "db") != nil ||
			g.Reach(node) != nil {
			t.Errorf("node %q is known", node)
		}
	}
	if g.HasPath("worker-1", graph.Node, "", "worker-1") {
		t.Error("a node is related to itself: the rules decide about its own name, not the graph")
	}
	if g.HasPath("worker-1", graph.Kind(200), "shop", "db") || g.Has(graph.Kind(200), "shop", "db") {
		t.Error("a kind that does not exist is related")
	}
}

func TestKindsAreThoseOfKubernetes(t *testing.T) {
	want := []string{
		"Node", "Pod", "Secret", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim", "PersistentVolume", "ResourceClaim",
		"VolumeAttachment", "ResourceSlice", "PodCertificateRequest",
	}
	var got []string
	for _, kind := range graph.Kinds() {
		got = append(got, kind.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("kinds are %v, want %v", got, want)
	}
	if got := graph.Kind(200).String(); got != "Kind(200)" {
		t.Errorf("an unknown kind is %q", got)
	}
}

func lines(paths []verdict.Path) []string {
	var all []string
	for _, path := range paths {
		all = append(all, path.String())
	}
	return all
}
