package nodeidentity_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		user   string
		groups []string
		want   nodeidentity.Identity
	}{
		{"prefix and group", "system:node:worker-1", []string{"system:nodes"}, nodeidentity.Identity{IsNode: true, Name: "worker-1"}},
		{
			"the group among others", "system:node:worker-1",
			[]string{"a", "system:nodes", "b"},
			nodeidentity.Identity{IsNode: true, Name: "worker-1"},
		},
		{
			"the name is everything after the prefix, unchanged", "system:node: Worker:1/x ",
			[]string{"system:nodes"},
			nodeidentity.Identity{IsNode: true, Name: " Worker:1/x "},
		},
		{
			"the prefix twice", "system:node:system:node:a",
			[]string{"system:nodes"},
			nodeidentity.Identity{IsNode: true, Name: "system:node:a"},
		},
		{"a node that cannot be named", "system:node:", []string{"system:nodes"}, nodeidentity.Identity{IsNode: true}},
		{"no group", "system:node:worker-1", nil, nodeidentity.Identity{}},
		{
			"other groups", "system:node:worker-1",
			[]string{"system:authenticated", "system:node", "system:nodes:eu", "SYSTEM:NODES", ""},
			nodeidentity.Identity{},
		},
		{"no prefix", "worker-1", []string{"system:nodes"}, nodeidentity.Identity{}},
		{"half a prefix", "system:node", []string{"system:nodes"}, nodeidentity.Identity{}},
		{"the prefix inside", "x-system:node:worker-1", []string{"system:nodes"}, nodeidentity.Identity{}},
		{"the prefix in another case", "System:node:worker-1", []string{"system:nodes"}, nodeidentity.Identity{}},
		{"nobody", "", []string{"system:nodes"}, nodeidentity.Identity{}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := nodeidentity.Of(tc.user, tc.groups); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestUserIsTheInverseOfOf(t *testing.T) {
	for _, name := range []string{"worker-1", "", "a:b"} {
		user, groups := nodeidentity.User(name)
		if got := nodeidentity.Of(user, groups); !got.IsNode || got.Name != name {
			t.Errorf("the user of node %q is %q, which is node %+v", name, user, got)
		}
		if len(groups) != 2 || groups[1] != "system:authenticated" {
			t.Errorf("groups of a node are %v", groups)
		}
	}
}
