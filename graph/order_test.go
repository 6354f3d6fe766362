package graph_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/graph"
)

// event is one change, with a name for messages.
type event struct {
	name  string
	apply func(*graph.Graph)
}

func setPod(name, node string, secret, claim string) event {
	return event{fmt.Sprintf("pod %s on %q with %s", name, node, secret+claim), func(g *graph.Graph) {
		g.SetPod(newPod(name, node, withSecret(secret), withClaim(claim)))
	}}
}

func setVolume(name, claim, secret string) event {
	return event{fmt.Sprintf("volume %s for %q with %s", name, claim, secret), func(g *graph.Graph) {
		g.SetPersistentVolume(newVolume(name, claim, stageSecret("shop", secret)))
	}}
}

func deletePod(name string) event {
	return event{"no pod " + name, func(g *graph.Graph) { g.DeletePod("shop", name) }}
}

func deleteVolume(name string) event {
	return event{"no volume " + name, func(g *graph.Graph) { g.DeletePersistentVolume(name) }}
}

// TestOrderOfArrivalDoesNotMatter applies the events of different objects in
// every order.
func TestOrderOfArrivalDoesNotMatter(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		events []event
	}{
		{"claims, volumes and secrets of two nodes", []event{
			setPod("api", "worker-1", "db", "orders"),
			setPod("web", "worker-2", "db", "orders"),
			setPod("job", "worker-1", "", "orders"),
			setVolume("pv-1", "orders", "key"),
			setVolume("pv-2", "orders", "db"),
		}},
		{"the same secret through pods and volumes", []event{
			setPod("api", "worker-1", "key", ""),
			setPod("web", "worker-2", "", "orders"),
			setPod("job", "", "key", "orders"),
			setVolume("pv-1", "orders", "key"),
			setVolume("pv-2", "images", "key"),
			{"attachment", func(g *graph.Graph) { g.SetVolumeAttachment(newAttachment("va", "worker-1")) }},
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			want := build(tc.events)
			eachPermutation(tc.events, func(events []event) {
				if got := build(events); got != want {
					t.Fatalf("%v leads to\n%s\nwant\n%s", names(events), got, want)
				}
			})
		})
	}
}

// TestHistoryDoesNotMatter applies the histories of three objects in every
// interleaving.
func TestHistoryDoesNotMatter(t *testing.T) {
	for _, tc := range []struct {
		rule      string
		histories [3][]event
	}{
		{"pods move, a volume changes hands", [3][]event{
			{setPod("api", "worker-1", "db", "orders"), setPod("api", "", "db", "orders"), setPod("api", "worker-2", "db", "orders")},
			{setPod("web", "worker-2", "key", "images"), deletePod("web"), setPod("web", "worker-1", "db", "images")},
			{setVolume("pv-1", "images", "key"), setVolume("pv-1", "orders", "db"), setVolume("pv-1", "orders", "key")},
		}},
		{"all goes", [3][]event{
			{setPod("api", "worker-1", "db", "orders"), setPod("api", "worker-2", "key", "orders"), deletePod("api")},
			{setPod("web", "worker-1", "db", "orders"), setPod("web", "worker-1", "", "orders"), deletePod("web")},
			{setVolume("pv-1", "orders", "key"), setVolume("pv-1", "", "key"), deleteVolume("pv-1")},
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var final []event
			for _, history := range tc.histories {
				final = append(final, history[len(history)-1])
			}
			want := build(final)
			eachInterleaving(tc.histories, nil, func(events []event) {
				if got := build(events); got != want {
					t.Fatalf("%v leads to\n%s\nwant\n%s", names(events), got, want)
				}
			})
		})
	}
}

func build(events []event) string {
	g := graph.New()
	for _, e := range events {
		e.apply(g)
	}
	return dump(g)
}

func names(events []event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.name)
	}
	return all
}

func eachPermutation(events []event, visit func([]event)) {
	var permute func(chosen, rest []event)
	permute = func(chosen, rest []event) {
		if len(rest) == 0 {
			visit(chosen)
		}
		for i := range rest {
			permute(append(slices.Clip(chosen), rest[i]), slices.Concat(rest[:i], rest[i+1:]))
		}
	}
	permute(nil, events)
}

func eachInterleaving(histories [3][]event, chosen []event, visit func([]event)) {
	done := true
	for i, history := range histories {
		if len(history) == 0 {
			continue
		}
		done = false
		rest := histories
		rest[i] = history[1:]
		eachInterleaving(rest, append(slices.Clip(chosen), history[0]), visit)
	}
	if done {
		visit(chosen)
	}
}
