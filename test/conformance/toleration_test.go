package conformance

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/node-authorizer/node-authorizer/internal/extendedtoleration"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
)

// TestRandomTolerations gives random pods to the in-tree
// ExtendedResourceToleration and to ours.
func TestRandomTolerations(t *testing.T) {
	b := readBudget(t)
	theirs, err := intree.NewTolerate()
	if err != nil {
		t.Fatal(err)
	}
	seeds, pods, changes, divergences := rand.New(rand.NewPCG(b.fresh, 3)), b.clusters*b.writes/2, 0, 0
	for range pods {
		pod := generate.NewTolerant(seeds.Uint64())
		before := pod.DeepCopy()
		want, err := theirs.Tolerations(pod)
		if err != nil {
			t.Fatal(err)
		}
		got, changed := extendedtoleration.Tolerations(pod)
		if changed {
			changes++
		}
		switch {
		case !equality.Semantic.DeepEqual(got, want):
			t.Errorf("pod: %s\n  in-tree: %s\n  ours: %s", text(pod), text(want), text(got))
			divergences++
		case changed == equality.Semantic.DeepEqual(want, pod.Spec.Tolerations):
			t.Errorf("pod: %s\n  in-tree: %s\n  ours says that it changes: %t", text(pod), text(want), changed)
			divergences++
		case !equality.Semantic.DeepEqual(before, pod):
			t.Errorf("pod: %s\n  was changed to: %s", text(before), text(pod))
			divergences++
		}
		if divergences > maxDivergences {
			t.FailNow()
		}
	}
	t.Logf("tolerations: %d pods, %d changed: %d divergences", pods, changes, divergences)
	if changes < pods/10 || changes > pods*9/10 {
		t.Error("the pods exercise one outcome only")
	}
}
