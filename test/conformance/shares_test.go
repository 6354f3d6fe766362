package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// shares counts the answers to questions about each group and resource.
type shares map[[2]string]*share

type share struct{ asked, allowed int }

// enough is the number of questions about a resource for which both outcomes must occur.
const enough = 300

func (s shares) count(r *generate.Request, d protocol.Decision) {
	key := [2]string{r.Group, r.Resource}
	if s[key] == nil {
		s[key] = &share{}
	}
	s[key].asked++
	if d == protocol.Allow {
		s[key].allowed++
	}
}

// total returns the number of questions.
func (s shares) total() int {
	n := 0
	for _, sh := range s {
		n += sh.asked
	}
	return n
}

// check prints the share of allowed answers, and fails if a resource has only one outcome
// although a node of the minor can have both.
func (s shares) check(t *testing.T, minor int) {
	t.Helper()
	var table strings.Builder
	rest, restAllowed := s.total(), 0
	for _, sh := range s {
		restAllowed += sh.allowed
	}
	for _, kind := range generate.Resources {
		sh := s[[2]string{kind.Group, kind.Resource}]
		if sh == nil {
			continue
		}
		rest, restAllowed = rest-sh.asked, restAllowed-sh.allowed
		name := strings.TrimSuffix(kind.Resource+"."+kind.Group, ".")
		fmt.Fprintf(&table, "%-50s %9d asked %9d allowed %5.1f%%\n",
			name, sh.asked, sh.allowed, 100*float64(sh.allowed)/float64(sh.asked))
		can := kind.AllowedSince != 0 && kind.AllowedSince <= minor
		switch {
		case sh.asked >= enough && can && (sh.allowed == 0 || sh.allowed == sh.asked):
			t.Errorf("%s: %d of %d answers are Allow: the questions exercise one outcome only", name, sh.allowed, sh.asked)
		case !can && sh.allowed > 0:
			t.Errorf("%s: %d of %d answers are Allow, although no rule of 1.%d allows any", name, sh.allowed, sh.asked, minor)
		}
	}
	fmt.Fprintf(&table, "%-50s %9d asked %9d allowed", "paths, and resources and groups that do not exist", rest, restAllowed)
	t.Logf("allowed answers of Kubernetes 1.%d by resource:\n%s", minor, table.String())
}
