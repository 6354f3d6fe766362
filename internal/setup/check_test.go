package setup

import (
	"errors"
	"testing"
)

// TestCheckRefusesWhatApplyRefuses: a dry run says so, and nothing is changed.
func TestCheckRefusesWhatApplyRefuses(t *testing.T) {
	m := newMachine(t)
	check := func(mode Mode) error {
		t.Helper()
		before := tree(t, m.dir)
		defer m.unchanged(before)
		p, err := Kubeadm(m.options(mode), ReadFrom(m.dir, m.dir), m.journal())
		return errors.Join(err, m.node.Check(t.Context(), p))
	}
	m.refuses(check(Replace), "this cannot be applied now: the mode replace needs a server on each control plane node")
	if err := check(Observe); err != nil {
		t.Error(err)
	}
	if left := m.left(); len(left) > 0 {
		t.Errorf("the cluster has %v", left)
	}
	m.installed(Observe)
	if err := check(Replace); err != nil {
		t.Error(err)
	}
	m.down.Store(true)
	m.refuses(check(Observe), "it is not known whether this can be applied: kube-apiserver is not ready")
}
