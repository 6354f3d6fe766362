package attackpaths

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// TestNamesOfNewObjects: authorization does not see the name of an object that is created, admission does.
func TestNamesOfNewObjects(t *testing.T) {
	ctx := t.Context()
	t.Cleanup(func() { enforce(t, nil) })
	scoped.begin(t, withAgent+roleOf("r", "shop", "shop/web", "create,get secrets@"))
	enforce(t, scopedCase{scopes: []string{
		`namedAsNode: [{apiGroups: [""], resources: [secrets], verbs: [create, get]}], anywhere: [` + asksAbout + "]",
	}}.specs(t))

	result := scoped.reach(t, podAgent, nil, false)
	i := slices.IndexFunc(result.Reached, func(r attackpaths.Reached) bool { return text(r.Holding) == "ServiceAccount shop/db" })
	if i < 0 || result.Reached[i].Certainty != attackpaths.Possible {
		t.Errorf("the account shop/db is not possible in %v", scoped.certain(result))
	}
	e := withToken(t, podAgent, accountWeb)
	create := func(name string) answer {
		return e.actor(accountWeb).post(ctx, secrets.in("shop"), named(name))
	}
	if got := create(pay1); !got.refused() || !strings.Contains(got.String(), nodescope.Webhook) {
		t.Errorf("a secret with the name of another node: %s", got)
	}
	if err := create(web1).failure(); err != nil {
		t.Errorf("a secret with the name of the node: %v", err)
	}
}
