package chain

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
)

func ownSecret() *access.Request {
	return &access.Request{
		User: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"},
		Verb: "get", Version: "v1", Resource: "secrets", Namespace: "shop", Name: "pull", ResourceRequest: true,
	}
}

func foreignSecret() *access.Request {
	req := ownSecret()
	req.Name = "other"
	return req
}

// A decision allocates nothing beyond the authorizers' own allocations. Brief reasons
// allocate the lists of authorizers that were asked and not asked.
func TestDecisionsAllocateLittle(t *testing.T) {
	links, own := cluster(), ownSecret()
	for _, tc := range []struct {
		rule   string
		answer func()
		most   float64
	}{
		{"a decision", func() { _, _, _ = links.Decide(t.Context(), own) }, 0},
		{"a decision with brief reasons", func() { _, _ = links.Brief(t.Context(), own) }, 2},
	} {
		if got := testing.AllocsPerRun(100, tc.answer); got > tc.most {
			t.Errorf("%s allocates %v times, want at most %v", tc.rule, got, tc.most)
		}
	}
}

func BenchmarkChain(b *testing.B) {
	h := newHook(b)
	withHook := func(conditions ...string) Chain {
		return built(b, clusterParts(), h.yaml("a", hookOptions{cached: true, conditions: conditions}),
			"- {type: Node, name: node}\n", "- {type: RBAC, name: rbac}\n")
	}
	for name, links := range map[string]Chain{
		"node-rbac":        cluster(),
		"webhook-excluded": withHook("has(request.resourceAttributes)", "!('system:nodes' in request.groups)"),
		"webhook-cached":   withHook(),
	} {
		for kind, req := range map[string]*access.Request{"own": ownSecret(), "foreign": foreignSecret()} {
			b.Run(name+"/"+kind+"/decide", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _, _ = links.Decide(b.Context(), req)
				}
			})
			b.Run(name+"/"+kind+"/brief", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = links.Brief(b.Context(), req)
				}
			})
		}
	}
}
