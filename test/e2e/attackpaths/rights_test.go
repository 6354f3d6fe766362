package attackpaths

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// rightsVariable is set to all to carry out each right of the table, and not a sample.
const (
	rightsVariable = "ATTACKPATHS_RIGHTS"
	// rightsBudget is how long the sample may take.
	rightsBudget = 20 * time.Second
)

// givenBy is a technique that uses a right.
type givenBy struct {
	right attackpaths.TableRight
	code  attackpaths.Code
}

func (g givenBy) String() string { return fmt.Sprintf("%s: %s", g.code, g.right) }

// givingRights are the rights of the table that give something, once for each technique. The first ones are one right
// for each technique, and are always in the sample.
func givingRights() (all []givenBy, sample int) {
	var first, others []givenBy
	seen := map[attackpaths.Code]bool{}
	for _, r := range attackpaths.TableOfRights() {
		for _, code := range r.Gives {
			if seen[code] {
				others = append(others, givenBy{r, code})
				continue
			}
			seen[code] = true
			first = append(first, givenBy{r, code})
		}
	}
	return slices.Concat(first, others), len(first)
}

// TestEachRightThatGivesHasACase: a new row of the table needs one.
func TestEachRightThatGivesHasACase(t *testing.T) {
	all, _ := givingRights()
	for _, g := range all {
		caseOf, ok := rightCases[g.code]
		if !ok || caseOf(g.right).target == "" {
			t.Errorf("%s: there is no case", g)
		}
	}
	if len(all) < 100 {
		t.Errorf("%d rights give something", len(all))
	}
}

// TestRightsThatGive carries out what each right of the table gives, with that right and the others that the technique
// needs. Without the right, these give nothing of it.
func TestRightsThatGive(t *testing.T) {
	begin, done := time.Now(), 0
	all, sample := givingRights()
	for _, g := range all {
		if os.Getenv(rightsVariable) != "all" && done >= sample && time.Since(begin) > rightsBudget {
			break
		}
		done++
		t.Run(g.String(), func(t *testing.T) { rightCases[g.code](g.right).run(t, g) })
	}
	t.Logf("%d of %d rights in %s", done, len(all), time.Since(begin).Round(time.Second))
}

// world is the control plane of a case.
func (c *rightCase) world(t *testing.T) *world {
	switch {
	case c.emulated:
		return emulated
	case c.scopes != "":
		t.Cleanup(func() { enforce(t, nil) })
		enforce(t, scopedCase{scopes: []string{c.scopes}}.specs(t))
		return scoped
	}
	return newest
}

// granted are the role and the binding of the right alone.
func (c *rightCase) granted(t *testing.T, r attackpaths.TableRight) []object {
	t.Helper()
	rule := c.rule
	if rule == "" {
		rule = r.Verb + " " + strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/") + "@" + r.Group
	}
	if c.who == "" {
		c.who = "shop/web"
	}
	objects, err := decode(roleOf("right", c.in, c.who, rule+" "+c.names))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func (c rightCase) run(t *testing.T, g givenBy) {
	ctx, w := t.Context(), c.world(t)
	if c.start == (holding{}) {
		c.start = accountWeb
	}
	w.begin(t, c.with)
	without := w.reach(t, c.start, nil, c.eks)
	want := map[bool]attackpaths.Certainty{true: attackpaths.Possible, false: attackpaths.Certain}[c.possible]
	if r := reachedAs(without, c.target); r != nil && (c.possible || r.Certainty == want) && c.because == "" {
		t.Fatalf("%s is reached without the right: %+v", c.target, r.Path)
	}
	if c.start.Kind == attackpaths.ServiceAccount {
		w.refuseAbsent(t, without)
	} else { // it has to get an identity first
		w.prove(t, without, nil, nil)
	}

	for _, o := range c.granted(t, g.right) {
		if err := w.admin.post(ctx, o.resource.in(o.namespace()), o.content).failure(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.settle(ctx); err != nil {
		t.Fatal(err)
	}
	result := w.reach(t, c.start, nil, c.eks)
	r := reachedAs(result, c.target)
	if r == nil {
		t.Fatalf("%s is not reached with the right", c.target)
	}
	if r.Certainty != want {
		t.Errorf("%s is %s, want %s", c.target, r.Certainty, want)
	}
	if !slices.ContainsFunc(r.Path, func(s attackpaths.Step) bool {
		return s.Technique == g.code && strings.HasPrefix(s.Because, c.because)
	}) {
		t.Errorf("%s is not reached by %s: %+v", c.target, g.code, r.Path)
	}
	if c.listed {
		return
	}
	far := toTheEnd
	if c.ends {
		far = stepsOnly
	}
	w.prove(t, result, nil, map[holding]extent{r.Holding: far})
}

// reachedAs finds a holding by its text.
func reachedAs(result attackpaths.Result, h string) *attackpaths.Reached {
	i := slices.IndexFunc(result.Reached, func(r attackpaths.Reached) bool { return text(r.Holding) == h })
	if i < 0 {
		return nil
	}
	return &result.Reached[i]
}

// refuseAbsent attempts the holdings that are not reached, with the credentials of the start.
func (w *world) refuseAbsent(t *testing.T, result attackpaths.Result) {
	t.Helper()
	e, err := w.newExecutor(t.Context(), result.Start, nil)
	if err != nil {
		t.Fatal(err)
	}
	failures, _ := e.attemptAbsent(t.Context(), result)
	for _, err := range failures {
		t.Errorf("without the right: %v", err)
	}
}
