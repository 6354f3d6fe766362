package learn_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/learn"
)

// TestASuggestedScopeRefusesTheOutliersOnly: for any log, the suggested scope lets requests pass that are not
// outliers, and all requests once outliers are accepted.
func TestASuggestedScopeRefusesTheOutliersOnly(t *testing.T) {
	pick := func(from ...string) string { return from[rand.IntN(len(from))] }
	e := evaluator(t)
	outliers, wide := 0, 0
	for round := range 500 {
		var requests []*learn.Request
		for range 1 + rand.IntN(30) {
			r := asked(pick("a", "b", "c"), pick("get", "patch", "delete", "list", "watch")+" "+
				pick("nodes", "nodes/status", "pods", "pods/status", "things.x", "secrets", "services", "leases.coordination.k8s.io")+" ")
			switch {
			case r.Verb == "list" || r.Verb == "watch":
				if rand.IntN(2) == 0 {
					selectingNode("spec.nodeName", pick("a", "b", "z"), r)
				}
			case r.Resource == "nodes":
				r.Request.Name = pick("a", "b", "z")
			default:
				r.Request.Namespace, r.Request.Name = "shop", pick("web", "other", "gone", "db", "key", "a", "b", "z")
			}
			if r.Group == "x" && rand.IntN(3) == 0 {
				r.Verb, r.CreatedName, r.Request.Name = "create", r.Request.Name, ""
			}
			requests = append(requests, r)
		}
		var pods []learn.PodOnNode
		for rand.IntN(2) == 0 {
			pods = append(pods, learn.PodOnNode{Namespace: "shop", Name: pick("gone", "other"), Node: pick("a", "b", "c")})
		}
		collector := learn.NewCollector(learn.InState(e), nil)
		for _, i := range rand.Perm(len(requests)) {
			collector.Request(requests[i])
		}
		for _, pod := range pods {
			collector.Pod(pod)
		}
		for _, accept := range []bool{false, true} {
			s := collector.Suggest("team", "agent", accept)
			checker, err := learn.NewChecker(e, []*v1alpha1.NodeScope{{Spec: s.Scope.Spec}})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range requests {
				checker.Request(r)
			}
			for _, pod := range pods {
				checker.Pod(pod)
			}
			report := checker.Report()
			if want := len(requests) - s.OutlierRequests(); report.Passed != want || accept && s.OutlierRequests() > 0 {
				t.Fatalf("round %d, accepted %t: %d of %d pass, want %d\n%s\n%+v", round, accept, report.Passed, len(requests), want,
					s.Manifest(), report.Accounts)
			}
			outliers += s.OutlierRequests()
			wide += strings.Count(s.Manifest(), "# not about the own node")
		}
	}
	if outliers == 0 || wide == 0 {
		t.Errorf("%d outliers, %d reasons for rules in anywhere: the logs show nothing", outliers, wide)
	}
}
