package noderestriction_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

func TestOwnLabel(t *testing.T) {
	for key, want := range map[string]bool{
		"disk":                                     true,
		"example.com/pool":                         true,
		"kubernetes.io/arch":                       true,
		"topology.kubernetes.io/zone":              true,
		"node.kubernetes.io/instance-type":         true,
		"node-role.kubernetes.io/control-plane":    false,
		"node-restriction.kubernetes.io/pool":      false,
		"team.node-restriction.kubernetes.io/pool": false,
		"example.k8s.io/x":                         false,
	} {
		if got := noderestriction.OwnLabel(key); got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}
