package containment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// agreementRounds is how often Quarantines are made at once.
func agreementRounds(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("QUARANTINE_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	return 30
}

// atLimit are more Quarantines than the limit allows, by the node that each names.
type atLimit map[string]string

// newAtLimit chooses names by chance: of those made in one second, the first name counts.
func newAtLimit(n int) atLimit {
	all := atLimit{}
	for i := range n {
		all[fmt.Sprint("limited-", i)] = fmt.Sprintf("q-%08x", rand.Uint32())
	}
	return all
}

func (a atLimit) path(node string) string { return quarantinesPath + "/" + a[node] }

func (a atLimit) drop(t *testing.T) {
	t.Helper()
	for node := range a {
		must(t, plane.drop(context.Background(), a.path(node)))
	}
}

// agree waits until both API servers refuse one and the same node, which is the limit, and the statuses say so.
func (a atLimit) agree(t *testing.T) {
	t.Helper()
	other, err := newClient(plane.onOther(plane.AdminConfig()))
	must(t, err)
	must(t, await.Until(t.Context(), "both API servers refuse the same node", func(ctx context.Context) error {
		refused := ""
		for node := range a {
			one, err := denied(ctx, plane.admin, node)
			if err != nil {
				return err
			}
			two, err := denied(ctx, other, node)
			if err != nil {
				return err
			}
			condition, err := plane.condition(ctx, a.path(node))
			if err != nil {
				return err
			}
			if one != two || (condition.Status == "True") != one || condition.Status == "" {
				return fmt.Errorf("%s: API server 1 refuses it: %t, API server 2: %t; the condition is %+v", node, one, two, condition)
			}
			if one {
				refused += " " + node
			}
		}
		if n := len(strings.Fields(refused)); n != 1 {
			return fmt.Errorf("%d nodes are refused:%s", n, refused)
		}
		return nil
	}))
}

// denied reports whether an API server's authorizers refuse what a node asks.
func denied(ctx context.Context, c *client, node string) (bool, error) {
	var review struct{ Status struct{ Denied bool } }
	err := c.must(ctx, post("/apis/authorization.k8s.io/v1/subjectaccessreviews", object{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": object{
			"user": "system:node:" + node, "groups": []any{"system:nodes", "system:authenticated"},
			"resourceAttributes": object{"verb": "list", "version": "v1", "resource": "services"},
		},
	}), &review)
	return review.Status.Denied, err
}

// Eight Quarantines are made within a second, of which the limit allows one. Both API servers refuse the same node, in
// every round. QUARANTINE_ROUNDS sets how many there are.
func TestServersAgreeAtTheLimit(t *testing.T) {
	for range agreementRounds(t) {
		all := newAtLimit(8)
		t.Cleanup(func() { all.drop(t) })
		var nodes []string
		for node := range all {
			nodes = append(nodes, node)
		}
		inParallel(t, len(nodes), func(ctx context.Context, i int) error {
			return plane.create(ctx, quarantinesPath, policyObject(v1alpha1.QuarantineKind, all[nodes[i]], object{"node": nodes[i]}))
		})
		all.agree(t)
		all.drop(t)
	}
}

// Whoever may write statuses writes that seven Quarantines are accepted, while no server runs. The servers that start
// then refuse no more nodes than the limit allows.
func TestForgedStatusesDoNotPassTheLimit(t *testing.T) {
	all := newAtLimit(7)
	t.Cleanup(func() { all.drop(t) })
	for _, s := range plane.servers {
		must(t, s.Stop())
	}
	for node := range all {
		var made object
		q := policyObject(v1alpha1.QuarantineKind, all[node], object{"node": node})
		must(t, plane.admin.must(t.Context(), post(quarantinesPath, q), &made))
		made["status"] = object{"observedGeneration": 1, "conditions": []any{object{
			"type": v1alpha1.ConditionAccepted, "status": "True", "reason": "Accepted", "message": "", "observedGeneration": 1,
			"lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
		}}}
		must(t, plane.admin.must(t.Context(), put(all.path(node)+"/status", made), nil))
	}
	for _, s := range plane.servers {
		must(t, s.Start(t.Context()))
	}
	all.agree(t)
}
