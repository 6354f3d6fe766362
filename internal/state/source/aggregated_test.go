package source

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
)

const (
	selectingRole = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: monitoring}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: monitoring}}]}
`
	selectedRole = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: endpoints, labels: {to: monitoring}}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: monitoring}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: monitoring}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada}]
`
)

// Manifests leave out the rules of an aggregated role, which are then computed. A
// dump of a cluster has the rules that the controller wrote. Other rules count too,
// with a warning.
func TestAggregatedRolesOfFiles(t *testing.T) {
	const warning = "ClusterRole monitoring: its rules differ from what its aggregationRule selects in this state (1 missing, 1 more)"
	for name, tc := range map[string]struct {
		rules     string
		gets, all bool // pods, everything
		warns     bool
	}{
		"manifests without rules":               {"", true, false, false},
		"manifests with an empty list of rules": {"rules: []\n", true, false, false},
		"a dump": {
			`rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]` + "\n", true, false, false,
		},
		"rules that the controller would replace": {
			`rules: [{apiGroups: [""], resources: [pods], verbs: [delete]}]` + "\n", false, true, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustLoad(t, "roles.yaml", selectingRole+tc.rules+selectedRole)
			may := func(s *State, verb string) bool {
				return s.RBAC.Evaluate(&access.Request{
					User: "ada", Verb: verb, Resource: "pods", Name: "api", Namespace: "shop", ResourceRequest: true,
				}).Allowed
			}
			if may(s, "get") != tc.gets || may(s, "delete") != tc.all {
				t.Errorf("may get: %t, may delete: %t", may(s, "get"), may(s, "delete"))
			}
			warned := func(s *State) bool {
				return slices.ContainsFunc(s.Warnings(), func(line string) bool { return strings.Contains(line, warning) })
			}
			if warned(s) != tc.warns {
				t.Errorf("warnings are %q", s.Warnings())
			}
			// A snapshot of these files gives the same answers.
			again := mustLoad(t, "roles.snapshot", string(takeSnapshot(t, s)))
			if may(again, "get") != tc.gets || may(again, "delete") != tc.all || warned(again) != tc.warns {
				t.Errorf("from the snapshot: may get: %t, may delete: %t, warnings %q", may(again, "get"), may(again, "delete"),
					again.Warnings())
			}
		})
	}
}

// The aggregated roles of a cluster are not compared: its controller may be about to
// update them.
func TestAggregatedRolesOfAClusterAreNotCompared(t *testing.T) {
	state := list(t, fullCluster(t), LiveOptions{Retain: true})
	for _, s := range []*State{state, mustLoad(t, "cluster.snapshot", string(bytes.Clone(takeSnapshot(t, state))))} {
		for _, line := range s.Warnings() {
			if strings.Contains(line, "aggregationRule") {
				t.Errorf("warns %q", line)
			}
		}
	}
}
