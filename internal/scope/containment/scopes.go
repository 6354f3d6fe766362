package containment

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// scopes compiles NodeScopes. Only one goroutine compiles.
type scopes struct {
	policy *atomic.Pointer[nodescope.Policy]
	// known are the NodeScopes that exist, by UID.
	known map[types.UID]*scope
	// aggregation is asked for the warnings, and served is what it said last.
	aggregation func() *nodescope.Aggregation
	served      *nodescope.Aggregation
}

// scope is a NodeScope. It is compiled again only if its spec changes.
type scope struct {
	// spec is the part of the spec that was read, and size the size of the whole spec.
	spec string
	size int
	// use is in use; nil if nothing is.
	use *nodescope.Scope
	// valid is the last valid generation; nil if there was none.
	valid   *nodescope.Scope
	code    verdict.Code
	message string
	// warned is what the warnings are about: the spec of a generation in use. opens are these warnings, as long as
	// other API servers serve what they did.
	warned *v1alpha1.NodeScopeSpec
	opens  string
}

func newScopes(aggregation func() *nodescope.Aggregation) *scopes {
	if aggregation == nil {
		aggregation = func() *nodescope.Aggregation { return nil }
	}
	s := &scopes{policy: new(atomic.Pointer[nodescope.Policy]), known: map[types.UID]*scope{}, aggregation: aggregation}
	s.policy.Store(new(nodescope.Policy))
	return s
}

// compile implements compiler.
func (s *scopes) compile(_ context.Context, objects []ranked, _ time.Time) []outcome {
	known, outcomes := make(map[types.UID]*scope, len(objects)), make([]outcome, 0, len(objects))
	var use []*nodescope.Scope
	served := s.aggregation()
	changed := served != s.served
	s.served = served
	for _, o := range objects {
		next := s.read(&o)
		if next.warned != nil && (changed || next != s.known[o.UID]) {
			next.opens = leavesOpen(next.warned, served)
		}
		known[o.UID] = next
		if next.use != nil {
			use = append(use, next.use)
		}
		outcomes = append(outcomes, outcome{object: o.object, Code: next.code, Message: next.message + next.opens})
	}
	s.known = known
	policy, excess := nodescope.NewPolicy(use)
	s.policy.Store(policy)
	s.place(outcomes, excess)
	return outcomes
}

// place says which valid NodeScopes do not count for all of their accounts.
func (s *scopes) place(outcomes []outcome, excess []*nodescope.Scope) {
	exceeds := make(map[*nodescope.Scope]bool, len(excess))
	for _, e := range excess {
		exceeds[e] = true
	}
	for i := range outcomes {
		if o := &outcomes[i]; o.Code == Accepted && exceeds[s.known[o.UID].use] {
			o.Code = LimitExceeded
			o.Message = fmt.Sprintf("an account has more than %d NodeScopes, and the oldest ones count", nodescope.MaxScopes)
		}
	}
}

// due implements compiler: the warnings depend on which versions other API servers serve.
func (s *scopes) due(time.Time) bool { return s.aggregation() != s.served }

func (s *scopes) read(o *ranked) *scope {
	was := s.known[o.UID]
	if was == nil {
		was = &scope{}
	}
	switch {
	case o.exceeds:
		return &scope{code: LimitExceeded, message: exceedsMessage}
	case o.dropped():
		return &scope{use: was.use, valid: was.valid, code: LimitExceeded, message: exceedsMessage}
	case was.use != nil && was.spec != "" && was.spec == string(o.spec) && was.size == o.size:
		return was
	}
	next := compileScope(o.object)
	if next.valid == nil && was.valid != nil {
		next.use, next.valid = was.valid, was.valid
	}
	return next
}

// compileScope returns a scope without an earlier generation. One that is not valid or too large refuses its accounts,
// if it says Enforce.
func compileScope(o *object) *scope {
	next := &scope{spec: string(o.spec), size: o.size, code: Accepted, message: "the servers use this generation"}
	as := &v1alpha1.NodeScope{ObjectMeta: o.ObjectMeta}
	err := json.Unmarshal(o.spec, &as.Spec, asKubernetes())
	switch {
	case o.tooLarge():
		next.code, as.Spec, err = TooLarge, readableSpec(o.spec), errTooLarge(o)
	case err != nil:
		next.code, as.Spec, err = Invalid, readableSpec(o.spec), fmt.Errorf("spec: %w", strictjson.Explain(err))
	default:
		compiled, errs := nodescope.Compile(as)
		if len(errs) == 0 {
			next.use, next.valid, next.warned = compiled, compiled, &as.Spec
			return next
		}
		next.code, err = Invalid, errs.ToAggregate()
	}
	next.use = nodescope.Broken(as)
	next.message = clipped(fmt.Sprintf("%v; %s", err, lastValidScope))
	if len(o.spec) == 0 && o.tooLarge() {
		next.message += "; the subjects are not read either, so that their accounts are not refused"
	}
	return next
}

// leavesOpen says what does not hold the accounts of an enforced scope to their node, and which rules let pass less than
// they say; empty if there is nothing.
func leavesOpen(spec *v1alpha1.NodeScopeSpec, served *nodescope.Aggregation) string {
	warnings := attackpaths.ScopeWarnings(spec, served)
	if spec.Mode != v1alpha1.Enforce || len(warnings) == 0 {
		return ""
	}
	const named = 3 // of which the messages fit into a condition and an event
	text := "; but "
	for i, w := range warnings {
		if i == named {
			text += fmt.Sprintf("; and %d more", len(warnings)-named)
			break
		}
		if i > 0 {
			text += "; "
		}
		text += w.Message
	}
	return clipped(text)
}

// readableSpec returns the subjects and the mode of a spec of which other parts cannot be decoded.
// Parts that cannot be decoded stay empty.
func readableSpec(text []byte) v1alpha1.NodeScopeSpec {
	var subjects struct {
		Subjects []jsontext.Value `json:"subjects"`
	}
	var mode struct {
		Mode v1alpha1.Mode `json:"mode"`
	}
	_ = json.Unmarshal(text, &subjects, asKubernetes())
	_ = json.Unmarshal(text, &mode, asKubernetes())
	spec := v1alpha1.NodeScopeSpec{Mode: mode.Mode}
	for _, text := range subjects.Subjects {
		var s v1alpha1.Subject
		if json.Unmarshal(text, &s, asKubernetes()) == nil {
			spec.Subjects = append(spec.Subjects, s)
		}
	}
	return spec
}

const (
	exceedsMessage = "there are too many objects, or their specs are too large together, and the oldest ones count"
	lastValidScope = "the servers use the last valid generation that they have read; a server that has read none refuses the " +
		"accounts, if the mode is Enforce"
	lastValidQuarantine = "the servers use the last valid generation that they have read, if there is one"
)
