package query

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// TestRestrictedUsersGetNoOtherAnswer puts random questions as users who may list kinds in some
// namespaces only: a kind that they may not list makes an answer unknown, and never another one.
func TestRestrictedUsersGetNoOtherAnswer(t *testing.T) {
	counts, tried := map[string]int{}, clusters(t, 50)
	for seed := range tried {
		c := newPartsCluster(t, uint64(seed))
		whole := c.wholeSession()
		readable := c.refuseInNamespaces()
		for range 30 {
			q := c.question()
			_, want := answered(t, whole, q)
			got, answer := answered(t, c.partsSession(), q)
			counts[answer]++
			if answer != want && answer != command.Unknown && answer != "error" {
				t.Fatalf("cluster %d with only %v: %s\nthe answer is %s to the user, %s to others: %s",
					seed, readable, q, answer, want, got)
			}
		}
	}
	for _, answer := range []string{command.Yes, command.No, command.Unknown} {
		if counts[answer] < tried/2 {
			t.Errorf("only %d answers are %q: %v", counts[answer], answer, counts)
		}
	}
}

// refuseInNamespaces makes some kinds unreadable, but for the objects of one namespace. It returns
// the namespace of each.
func (c *partsCluster) refuseInNamespaces() map[string]string {
	readable := map[string]string{}
	for range 1 + c.IntN(3) {
		readable[c.pick("pods", "pods", "pods", "serviceaccounts", "persistentvolumeclaims", "persistentvolumes",
			"roles", "rolebindings", "clusterroles", "clusterrolebindings")] = c.pick(c.namespace(), "none")
	}
	c.forbid(func(resource, namespace string) bool {
		only, restricted := readable[resource]
		return restricted && namespace != only
	})
	return readable
}
