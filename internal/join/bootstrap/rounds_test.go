package bootstrap

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
)

// BenchmarkRounds compares joins that need two rounds of evidence with joins that need one. Each machine is new: it gets an
// entry in the ledger and a token.
func BenchmarkRounds(b *testing.B) {
	for _, rounds := range []int{1, 2} {
		b.Run(fmt.Sprint(rounds), func(b *testing.B) {
			c := newTestCluster(b)
			c.attestor.attest = func(_ context.Context, req *attest.Request) (*attest.Identity, error) {
				if string(req.Body) == `{"round":1}` && rounds == 2 {
					return nil, &attest.Continue{Challenge: []byte(`{"sealed":"AAAA"}`)}
				}
				return machine("i-"+req.NodeName, req.NodeName), nil
			}
			handler := c.service(nil).Handler(HTTPOptions{})
			number := 0
			for b.Loop() {
				number++
				l := &listening{testCluster: c, handler: handler}
				name := fmt.Sprintf("worker-%d", number)
				for round := range rounds {
					status := l.answer(ask(name, fmt.Sprintf(`{"round":%d}`, round+1))).Code
					if last := round == rounds-1; (status == http.StatusOK) != last {
						b.Fatalf("round %d: status %d", round+1, status)
					}
				}
			}
		})
	}
}
