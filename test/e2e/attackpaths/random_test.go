package attackpaths

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/testing/randomcluster"
)

// ATTACKPATHS_CLUSTERS is the number of random clusters, ATTACKPATHS_SEED the seed of the first
// one. A failure prints the seed of its cluster.
const (
	clustersVariable = "ATTACKPATHS_CLUSTERS"
	seedVariable     = "ATTACKPATHS_SEED"
	// startsOfCluster is the number of starts in each cluster.
	startsOfCluster = 3
	// budget is the time that a cluster may need: with less time left, no other cluster begins.
	budget = 30 * time.Second
)

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

func TestRandomClusters(t *testing.T) {
	begin, clusters, starts := time.Now(), 0, 0
	var all figures
	first := number(t, seedVariable, 1)
	for seed := first; seed < first+number(t, clustersVariable, 4); seed++ {
		if deadline, ok := t.Deadline(); ok && time.Until(deadline) < budget {
			t.Logf("the time is over before seed %d", seed)
			break
		}
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			clusters++
			cluster := randomcluster.New(uint64(seed))
			objects := complete(t, cluster.Objects)
			for _, start := range randomStarts(seed, objects) {
				starts++
				all.add(newest.carryOutFrom(t, objects, start))
			}
			if t.Failed() {
				t.Logf("%s=%d %s=1 repeats this", seedVariable, seed, clustersVariable)
			}
		})
	}
	t.Logf("%d clusters, %d starts, %d holdings shown by %d steps, %d attempts refused, %d requests by the table answered, in %s",
		clusters, starts, all.holdings, all.steps, all.refused, all.tabled, time.Since(begin).Round(time.Second))
}

func (f *figures) add(other figures) {
	f.holdings, f.steps = f.holdings+other.holdings, f.steps+other.steps
	f.refused, f.tabled = f.refused+other.refused, f.tabled+other.tabled
}

// carryOutFrom applies a cluster again, because paths change it, and proves one result.
func (w *world) carryOutFrom(t *testing.T, objects []object, start holding) figures {
	t.Helper()
	ctx := t.Context()
	if err := w.reset(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	return w.prove(t, w.reach(t, start, nil, false), nil, nil)
}

// complete turns random objects into ones that the API server takes.
func complete(t *testing.T, list []runtime.Object) []object {
	t.Helper()
	all := []object{}
	for _, o := range list {
		made := toObject(t, o)
		if made.resource == namespaces && made.name() == "kube-system" {
			delete(made.content, "status") // the API server does not delete it
		}
		// Admission policies would refuse objects that the test itself makes.
		if made.resource != policies && made.resource != policyBindings {
			all = append(all, made)
		}
	}
	return completed(all)
}

func toObject(t *testing.T, o runtime.Object) object {
	t.Helper()
	found, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	made := object{resource: kinds[found[0].Kind]}
	if err := json.Unmarshal(encoded, &made.content); err != nil {
		t.Fatal(err)
	}
	made.path = made.resource.at(made.namespace(), made.name())
	return made
}

// randomStarts picks a node, service accounts, and a pod or user.
func randomStarts(seed int, objects []object) []holding {
	var all []holding
	for _, o := range objects {
		switch o.resource {
		case nodes:
			all = append(all, holding{Kind: attackpaths.Node, Name: o.name()})
		case serviceAccounts:
			all = append(all, holding{Kind: attackpaths.ServiceAccount, Namespace: o.namespace(), Name: o.name()})
		case pods:
			all = append(all, holding{Kind: attackpaths.Pod, Namespace: o.namespace(), Name: o.name()})
		case clusterRoleBindings, roleBindings:
			subjects, _ := o.content["subjects"].([]any)
			for _, x := range subjects {
				s, _ := x.(map[string]any)
				name, _ := s["name"].(string)
				h := holding{Kind: attackpaths.User, Name: name}
				if s["kind"] == attackpaths.User && !strings.HasPrefix(name, "system:") && !slices.Contains(all, h) {
					all = append(all, h)
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(uint64(seed), 2))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), startsOfCluster)]
}
