package attackpaths

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// testCase is a cluster and a start.
type testCase struct {
	// rule is what the case shows.
	rule string
	// start defaults to the service account shop/web; groups are those of a user.
	start  holding
	groups []string
	// add are the objects of the case beside those of every case.
	add string
	// want are the certain holdings. The accounts of Kubernetes' own controllers in kube-system
	// are left out.
	want []string
	// possible are holdings that are possible only, whose paths are carried out too.
	possible []string
	// eks makes the engine take the cluster for one of EKS.
	eks bool
}

// everyCase are the objects of every case.
var everyCase = namespace("shop", enforceLabel+": restricted") + account("shop", "web") + account("shop", "db")

var accountWeb = holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "web"}

// run carries out a case on a control plane.
func (c testCase) run(t *testing.T, w *world) {
	ctx := t.Context()
	if c.start == (holding{}) {
		c.start = accountWeb
	}
	objects, err := decode(everyCase + c.add)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.reset(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	result := w.reach(t, c.start, c.groups, c.eks)
	if got := w.certain(result); !slices.Equal(got, slices.Sorted(slices.Values(c.want))) {
		t.Errorf("reached\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
	}
	w.prove(t, result, c.groups, func(r attackpaths.Reached) bool { return slices.Contains(c.possible, text(r.Holding)) })
	for _, h := range c.possible {
		possible := func(r attackpaths.Reached) bool { return text(r.Holding) == h && r.Certainty == attackpaths.Possible }
		if !slices.ContainsFunc(result.Reached, possible) {
			t.Errorf("%s is not possible", h)
		}
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

// figures count what was done.
type figures struct{ holdings, steps, refused int }

// prove carries out the path to each certain holding, and to those that also selects, and
// attempts what is absent.
func (w *world) prove(t *testing.T, result attackpaths.Result, groups []string, also func(attackpaths.Reached) bool) figures {
	t.Helper()
	ctx := t.Context()
	e, err := w.newExecutor(ctx, result.Start, groups)
	if err != nil {
		t.Fatal(err)
	}
	var f figures
	for _, r := range result.Reached {
		if r.Certainty != attackpaths.Certain && !also(r) {
			continue
		}
		f.holdings++
		if err := e.carryOut(ctx, r); err != nil {
			t.Errorf("%s %s: %v", r.Certainty, r.Holding, err)
		}
	}
	f.steps = e.steps
	if result.ClusterAdmin == attackpaths.Certain {
		return f // nothing is absent
	}
	failures, refused := e.attemptAbsent(ctx, result)
	for _, err := range failures {
		t.Error(err)
	}
	if f.refused = refused; refused == 0 {
		t.Error("nothing was attempted")
	}
	return f
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
