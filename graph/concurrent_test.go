package graph_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/node-authorizer/node-authorizer/graph"
)

// Readers repeat the same questions while a writer changes other objects. A relation
// that exists in every state must always be found; one that exists in no state must
// never be found.
func TestReadersWhileObjectsChange(t *testing.T) {
	const rounds = 3000
	for _, tc := range []struct {
		rule   string
		start  func(g *graph.Graph)
		round  func(g *graph.Graph, i int)
		always []question
		never  []question
	}{
		{
			rule:  "a pod changes, a reference that both its versions have stays",
			start: func(g *graph.Graph) { g.SetPod(newPod("api", "worker-1", withSecret("db"), withClaim("orders"))) },
			round: func(g *graph.Graph, i int) {
				g.SetPod(newPod("api", "worker-1", withSecret(fmt.Sprint("new-", i%7)), withEnv("app", secretEnv("db")),
					withClaim("orders")))
				g.SetPod(newPod("api", "worker-1", withClaim("orders"), withSecret("db"), withServiceAccount("api")))
			},
			always: []question{
				{"worker-1", graph.Pod, "shop", "api"},
				{"worker-1", graph.Secret, "shop", "db"},
				{"worker-1", graph.PersistentVolumeClaim, "shop", "orders"},
			},
			never: []question{{"worker-1", graph.Secret, "shop", "never"}, {"worker-2", graph.Secret, "shop", "db"}},
		},
		{
			rule: "other nodes come to an object and leave it",
			start: func(g *graph.Graph) {
				g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
				g.SetPod(newPod("api", "worker-1", withSecret("db"), withClaim("orders")))
				g.SetVolumeAttachment(newAttachment("va", "bystander"))
			},
			round: func(g *graph.Graph, i int) {
				// From one node to two and back, sometimes to many and back.
				n := 1 + i%3
				if i%100 == 0 {
					n = 200
				}
				for j := range n {
					g.SetPod(newPod(fmt.Sprint("web-", j), fmt.Sprint("passing-", i%5, "-", j), withSecret("db"), withClaim("orders")))
				}
				for j := range n {
					g.DeletePod("shop", fmt.Sprint("web-", j))
				}
			},
			always: []question{
				{"worker-1", graph.Secret, "shop", "db"},
				{"worker-1", graph.PersistentVolumeClaim, "shop", "orders"},
				{"worker-1", graph.PersistentVolume, "", "pv-1"},
				{"worker-1", graph.Secret, "vault", "key"},
			},
			never: []question{
				{"bystander", graph.Secret, "shop", "db"},
				{"bystander", graph.PersistentVolume, "", "pv-1"},
				{"bystander", graph.Secret, "vault", "key"},
			},
		},
		{
			rule: "the pod that relates an object to a node is replaced by another",
			start: func(g *graph.Graph) {
				g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
				g.SetPod(newPod("blue", "worker-1", withSecret("db"), withClaim("orders")))
			},
			round: func(g *graph.Graph, _ int) {
				g.SetPod(newPod("green", "worker-1", withClaim("orders"), withSecret("db")))
				g.SetPod(newPod("blue", "worker-2", withSecret("db"), withClaim("orders")))
				g.SetPod(newPod("blue", "worker-1", withSecret("db"), withClaim("orders")))
				g.DeletePod("shop", "green")
			},
			always: []question{
				{"worker-1", graph.Secret, "shop", "db"},
				{"worker-1", graph.PersistentVolume, "", "pv-1"},
				{"worker-1", graph.Secret, "vault", "key"},
			},
			never: []question{{"worker-1", graph.Secret, "shop", "key"}},
		},
		{
			rule: "a volume goes from claim to claim of the same node",
			start: func(g *graph.Graph) {
				g.SetPod(newPod("api", "worker-1", withClaim("orders"), withClaim("images")))
				g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
			},
			round: func(g *graph.Graph, i int) {
				g.SetPersistentVolume(newVolume("pv-1", "images", stageSecret("vault", "key")))
				g.SetPod(newPod("web", fmt.Sprint("passing-", i%3), withClaim("orders")))
				g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
				g.DeletePod("shop", "web")
			},
			always: []question{
				{"worker-1", graph.PersistentVolume, "", "pv-1"},
				{"worker-1", graph.Secret, "vault", "key"},
			},
			never: []question{{"worker-1", graph.Secret, "shop", "key"}},
		},
		{
			rule: "a claim gets a user after its volume left",
			start: func(g *graph.Graph) {
				g.SetPod(newPod("orders", "worker-1", withClaim("orders")))
				g.SetPod(newPod("images", "worker-1", withClaim("images")))
				g.SetPod(newPod("web", "worker-2", withClaim("none")))
				g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
			},
			round: func(g *graph.Graph, _ int) {
				g.SetPersistentVolume(newVolume("pv-1", "images", stageSecret("vault", "key")))
				g.SetPod(newPod("web", "worker-2", withClaim("orders")))
				g.SetPod(newPod("web", "worker-2", withClaim("none")))
				g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
			},
			always: []question{{"worker-1", graph.PersistentVolume, "", "pv-1"}, {"worker-1", graph.Secret, "vault", "key"}},
			never:  []question{{"worker-2", graph.PersistentVolume, "", "pv-1"}, {"worker-2", graph.Secret, "vault", "key"}},
		},
		{
			rule: "everything around goes and comes back",
			start: func(g *graph.Graph) {
				g.SetPod(newPod("api", "worker-1", withSecret("db")))
			},
			round: func(g *graph.Graph, i int) {
				const extra = 100 // enough for the table of all vertices to grow and shrink
				if i%(extra/4) != 0 {
					return
				}
				for j := range extra {
					g.SetPod(newPod(fmt.Sprint("web-", j), fmt.Sprint("passing-", j), withSecret(fmt.Sprint("tls-", j)),
						withServiceAccount(fmt.Sprint("web-", j))))
				}
				for j := range extra {
					g.DeletePod("shop", fmt.Sprint("web-", j))
				}
			},
			always: []question{{"worker-1", graph.Secret, "shop", "db"}, {"worker-1", graph.Pod, "shop", "api"}},
			never: []question{
				{"worker-1", graph.Secret, "shop", "tls-1"},
				{"passing-1", graph.Secret, "shop", "db"},
				{"passing-1", graph.Pod, "shop", "api"},
			},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			g := graph.New()
			tc.start(g)
			var done atomic.Bool
			var readers sync.WaitGroup
			for range 4 {
				readers.Go(func() {
					for !done.Load() && !t.Failed() {
						for _, q := range tc.always {
							if !q.ask(g) {
								t.Errorf("%v: no, although it always is", q)
							}
						}
						for _, q := range tc.never {
							if q.ask(g) {
								t.Errorf("%v: yes, although it never is", q)
							}
						}
					}
				})
			}
			for i := range rounds {
				tc.round(g, i)
			}
			done.Store(true)
			readers.Wait()
		})
	}
}

// TestAllMethodsWhileEverythingChanges is for the race detector: each method runs
// while objects of all kinds are added and removed. It checks that every returned
// path leads to the requested node.
func TestAllMethodsWhileEverythingChanges(t *testing.T) {
	g := graph.New()
	var all sync.WaitGroup
	for _, ask := range []func(node string){
		func(node string) {
			for _, r := range g.Reach(node) {
				if last := r.Paths[0][len(r.Paths[0])-1].To.Name; last != node {
					t.Errorf("a path of %s leads to %s: %v", node, last, r.Paths[0])
				}
			}
		},
		func(node string) {
			for _, path := range g.Paths(node, graph.Secret, "shop", "secret-1") {
				if last := path[len(path)-1].To.Name; last != node {
					t.Errorf("a path to %s leads to %s: %v", node, last, path)
				}
			}
		},
		func(string) { g.Nearest(graph.Secret, "shop", "secret-1", 2) },
		func(string) { g.NodesReaching(graph.PersistentVolume, "", "pv-1") },
		func(string) { g.Nodes() },
		func(string) { g.Stats() },
		func(node string) { g.HasPath(node, graph.PersistentVolume, "", "pv-1") },
		func(node string) { g.HasNode(node) },
	} {
		all.Go(func() {
			for i := range 1000 {
				ask(fmt.Sprint("worker-", i%3))
			}
		})
	}
	for seed := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, 1))
		all.Go(func() {
			for range 1000 {
				changeAtRandom(g, random)
			}
		})
	}
	all.Wait()
}

func changeAtRandom(g *graph.Graph, random *rand.Rand) {
	name := func(prefix string) string { return fmt.Sprint(prefix, "-", random.IntN(3)) }
	switch node := name("worker"); random.IntN(6) {
	case 0, 1:
		g.SetPod(newPod(name("pod"), node, withSecret(name("secret")), withClaim(name("claim")), withServiceAccount(name("sa"))))
	case 2:
		g.DeletePod("shop", name("pod"))
	case 3:
		g.SetPersistentVolume(newVolume(name("pv"), name("claim"), stageSecret("shop", name("secret"))))
	case 4:
		g.SetVolumeAttachment(newAttachment("va", node))
		g.SetResourceSlice(newSlice("slice", &node))
	case 5:
		g.SetPodCertificateRequest(newRequest("pcr", node))
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	g := newShop()
	for _, q := range []question{
		{"worker-1", graph.Secret, "shop", "db"},
		{"worker-1", graph.PersistentVolume, "", "pv-orders"},
		{"worker-3", graph.Secret, "shop", "db"},
		{"nobody", graph.Secret, "nowhere", "nothing"},
	} {
		if n := testing.AllocsPerRun(100, func() { q.ask(g) }); n != 0 {
			t.Errorf("%v allocates %v times", q, n)
		}
	}
}

// question is one call of HasPath.
type question struct {
	node            string
	kind            graph.Kind
	namespace, name string
}

func (q question) ask(g *graph.Graph) bool { return g.HasPath(q.node, q.kind, q.namespace, q.name) }
