package attackpaths

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// testCase is a cluster and a start.
type testCase struct {
	// rule is the rule that the case shows.
	rule string
	// start defaults to the service account shop/web; groups are the groups of a user.
	start  holding
	groups []string
	// add are the objects of the case beside the objects of every case.
	add string
	// want are the certain holdings. The accounts of Kubernetes' own controllers in kube-system
	// are left out.
	want []string
	// possible are holdings that are possible only, whose paths are carried out too.
	possible []string
	// some makes want a part of the certain holdings, where Kubernetes' own roles give more.
	some bool
	// ends is true if the possible steps end before the holding is there.
	ends bool
	// closed are possible holdings whose paths an admission policy or a quota refuses.
	closed []string
	// eks makes the engine take the cluster for one of EKS.
	eks bool
}

// everyCase are the objects of every case.
var everyCase = namespace("shop", enforceLabel+": restricted") + account("shop", "web") + account("shop", "db")

var accountWeb = holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "web"}

// run carries out a case on a control plane.
func (c testCase) run(t *testing.T, w *world) {
	if c.start == (holding{}) {
		c.start = accountWeb
	}
	w.begin(t, c.add)
	result := w.reach(t, c.start, c.groups, c.eks)
	c.compare(t, w.certain(result))
	f, e := w.carryOut(t, result, c.groups, c.alsoPossible(t, result))
	if c.attempts() {
		w.attempt(t, result, e, &f)
	}
}

// attempts reports whether everything that the result does not contain is attempted: in the cases where nothing is
// reached, and in all if ATTACKPATHS_RIGHTS is all.
func (c testCase) attempts() bool {
	return len(c.want)+len(c.possible)+len(c.closed) == 0 || os.Getenv(rightsVariable) == "all"
}

// alsoPossible are the possible holdings of the case, and how far their paths are carried out.
func (c testCase) alsoPossible(t *testing.T, result attackpaths.Result) map[holding]extent {
	t.Helper()
	also := map[holding]extent{}
	for _, h := range slices.Concat(c.possible, c.closed) {
		i := slices.IndexFunc(result.Reached, func(r attackpaths.Reached) bool { return text(r.Holding) == h })
		if i < 0 || result.Reached[i].Certainty != attackpaths.Possible {
			t.Errorf("%s is not possible", h)
			continue
		}
		if also[result.Reached[i].Holding] = toTheEnd; c.ends {
			also[result.Reached[i].Holding] = stepsOnly
		}
		if slices.Contains(c.closed, h) {
			also[result.Reached[i].Holding] = toAPolicy
		}
	}
	return also
}

// extent says how far a path is carried out.
type extent int

const (
	notAtAll extent = iota
	stepsOnly
	toTheEnd
	toAPolicy
)

// about is the technique that the case is about.
func (c testCase) about() string {
	technique, _, _ := strings.Cut(c.rule, ":")
	return technique
}

// compare compares the certain holdings with the expected ones.
func (c testCase) compare(t *testing.T, got []string) {
	t.Helper()
	equal := slices.Equal(got, slices.Sorted(slices.Values(c.want)))
	if c.some {
		equal = !slices.ContainsFunc(c.want, func(h string) bool { return !slices.Contains(got, h) })
	}
	if !equal {
		t.Errorf("reached\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
	}
}

// reach asks the engine.
func (w *world) reach(t *testing.T, start holding, groups []string, eks bool) attackpaths.Result {
	t.Helper()
	var users []attackpaths.Identity
	if start.Kind == attackpaths.User && len(groups) > 0 {
		users = append(users, attackpaths.Identity{Name: start.Name, Groups: groups})
	}
	g, err := w.graph(t.Context(), eks, users...)
	if err != nil {
		t.Fatal(err)
	}
	result, err := g.From(start)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// figures count holdings, steps and attempts.
type figures struct{ holdings, steps, refused, tabled int }

// prove carries out the path to each certain holding, and to those that also selects, and
// attempts the absent holdings.
func (w *world) prove(t *testing.T, result attackpaths.Result, groups []string, also map[holding]extent) figures {
	t.Helper()
	f, e := w.carryOut(t, result, groups, also)
	w.attempt(t, result, e, &f)
	return f
}

// carryOut carries out the path to each certain holding, and to those that also selects.
func (w *world) carryOut(t *testing.T, result attackpaths.Result, groups []string, also map[holding]extent) (figures, *executor) {
	t.Helper()
	ctx := t.Context()
	e, err := w.newExecutor(ctx, result.Start, groups)
	if err != nil {
		t.Fatal(err)
	}
	var f figures
	for _, r := range result.Reached {
		far := also[r.Holding]
		if r.Certainty == attackpaths.Certain {
			far = toTheEnd
		}
		if far == notAtAll {
			continue
		}
		f.holdings++
		do := e.carryOut
		if far == stepsOnly {
			do = e.walk
		}
		err := do(ctx, r)
		switch {
		case far == toAPolicy && (err == nil ||
			!strings.Contains(err.Error(), "ValidatingAdmissionPolicy") && !strings.Contains(err.Error(), "exceeded quota")):
			t.Errorf("%s %s: no policy or quota refuses it: %v", r.Certainty, r.Holding, err)
		case far != toAPolicy && err != nil:
			t.Errorf("%s %s: %v", r.Certainty, r.Holding, err)
		}
	}
	f.steps = e.steps
	return f, e
}

// attempt attempts the absent holdings.
func (w *world) attempt(t *testing.T, result attackpaths.Result, e *executor, f *figures) {
	t.Helper()
	if result.ClusterAdmin == attackpaths.Certain {
		return // nothing is absent
	}
	failures, refused := e.attemptAbsent(t.Context(), result)
	for _, err := range failures {
		t.Error(err)
	}
	f.refused, f.tabled = refused, e.tabled
}

// certain renders the certain holdings without Kubernetes' own accounts.
func (w *world) certain(result attackpaths.Result) []string {
	var all []string
	for _, r := range result.Reached {
		_, own := w.baseline[serviceAccounts.at(r.Namespace, r.Name)]
		if r.Certainty == attackpaths.Certain && (r.Kind != attackpaths.ServiceAccount || !own) {
			all = append(all, text(r.Holding))
		}
	}
	slices.Sort(all)
	return all
}

func text(h holding) string {
	name := strings.TrimPrefix(h.Namespace+"/"+h.Name, "/")
	return strings.TrimSpace(h.Kind + " " + name)
}

// begin puts the objects of every case and of one more into an API server that has no others.
func (w *world) begin(t *testing.T, manifests string) {
	t.Helper()
	objects, err := decode(everyCase + manifests)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
}
