package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestMissingStateIsGrouped(t *testing.T) {
	refused := func(name string) Missing {
		return Missing{Resource: name, Reason: name + " no", refusal: "not allowed to list them (" + name + " no)"}
	}
	lacks := func(name string) Missing {
		return Missing{Resource: "pods", Lacks: name, Reason: "the input lacks " + name, get: "pods"}
	}
	other := Missing{Resource: "resourceslices", Reason: "only in a version that is not supported"}
	many := make([]Missing, namedLacks+2)
	for i := range many {
		many[i] = lacks(fmt.Sprintf("pod %d", i))
	}
	for _, tc := range []struct {
		rule string
		all  []Missing
		want []string
	}{
		{"nothing", nil, nil},
		{"one of each is as it is", []Missing{refused("pods"), lacks("pod a"), other}, []string{
			"resourceslices: only in a version that is not supported", "pods: pods no", "pods: the input lacks pod a",
		}},
		{"what may not be read, with the role", []Missing{refused("pods"), refused("nodes")}, []string{
			"could not read pods, nodes: not allowed to list them (pods no); effect; bind the cluster role " +
				"node-authorizer:reader (deploy/reader) to the user",
		}},
		{"secrets need a role of their own", []Missing{refused("pods"), refused("secrets")}, []string{
			"could not read pods, secrets: not allowed to list them (pods no); effect; bind the cluster roles " +
				"node-authorizer:reader and node-authorizer:reader-secrets (deploy/reader) to the user",
		}},
		{"what files lack, with what to add", []Missing{lacks("pod a"), {Lacks: "b", get: "roles,pods"}}, []string{
			"the input lacks pod a; b; effect; add what kubectl get pods,roles -A -o yaml prints with --from, or use a snapshot",
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := groupMissing(tc.all, "effect"); !slices.Equal(got, tc.want) {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
	t.Run("a line names a limited number", func(t *testing.T) {
		got := groupMissing(many, "effect")
		const named = "pod 9 and 2 more (-o json lists all); effect; add"
		if len(got) != 1 || strings.Contains(got[0], "pod 10") || !strings.Contains(got[0], named) {
			t.Errorf("got %q", got)
		}
	})
}
