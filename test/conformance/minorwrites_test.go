package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestWritesInOlderMinors compares ours with the in-tree NodeRestriction of each
// older minor, under random settings of the gates that the minor lets one set.
func TestWritesInOlderMinors(t *testing.T) {
	b := readBudget(t)
	for _, m := range selectedMinors(t) {
		if m == kubeversion.Latest {
			continue // TestRandomWrites
		}
		t.Run(m.String(), func(t *testing.T) {
			o := startOracle(t, m).(*process)
			covered := newMinorCoverage()
			for _, seed := range b.seeds(b.clusters) {
				newMinorWrites(t, o, m, seed).run(t, max(b.writes/4, 1), covered)
				if covered.divergences > maxDivergences {
					break
				}
			}
			covered.check(t)
			t.Logf("Kubernetes %s: %d writes over %d states: %d divergences", m, covered.total, b.clusters, covered.divergences)
		})
	}
}

// minorWrites is one comparison of one state with an older minor.
type minorWrites struct {
	oracle   *process
	seed     uint64
	features kubeversion.Features
	gates    map[string]bool
	state    *generate.State
	ours     *noderestriction.Restriction
	asked    *ourGrants
}

func newMinorWrites(t *testing.T, o *process, m kubeversion.Minor, seed uint64) *minorWrites {
	t.Helper()
	features, gates := randomFeatures(t, rand.New(rand.NewPCG(seed, 1)), m)
	return newMinorWritesWith(t, o, seed, features, gates)
}

func newMinorWritesWith(t *testing.T, o *process, seed uint64, features kubeversion.Features, gates map[string]bool) *minorWrites {
	t.Helper()
	s := generate.NewState(seed)
	tr := &minorWrites{oracle: o, seed: seed, features: features, gates: gates, state: s, asked: &ourGrants{policy: rbac.NewPolicy()}}
	fill(tr.asked.policy, s.Policy)
	tr.ours = noderestriction.New(newKnown(s), tr.asked, features)
	state := writeState(t, s)
	state.Gates = gates
	o.ask(t, protocol.Question{WriteState: state})
	return tr
}

// run puts n writes to both.
func (tr *minorWrites) run(t *testing.T, n int, covered *minorCoverage) {
	t.Helper()
	writer, versions := generate.NewWriter(tr.seed, tr.state), rand.New(rand.NewPCG(tr.seed, 4))
	writes, q := make([]*generate.Write, n), protocol.Question{}
	for i := range writes {
		writes[i] = writeServed(t, versions, writer.Next(), tr.features.Minor())
		q.Writes = append(q.Writes, protocolWrite(t, writes[i]))
	}
	for i, theirs := range tr.oracle.ask(t, q).Admitted {
		tr.asked.asked = nil
		ours := tr.ours.Decide(context.Background(), writeRequest(writes[i]))
		covered.count(writes[i], ours, theirs)
		if difference := tr.listedDifference(writes[i], ours, theirs); difference != "" {
			covered.listed[difference]++
			continue
		}
		problem := tr.compare(ours, theirs)
		if problem == "" {
			continue
		}
		if covered.divergences++; covered.divergences <= maxDivergences {
			tr.report(t, writes[i], ours, theirs, problem)
		}
	}
}

func (tr *minorWrites) report(t *testing.T, w *generate.Write, ours noderestriction.Answer, theirs protocol.Admitted, problem string) {
	t.Helper()
	t.Errorf("seed %d, Kubernetes %s, gates %v\n  asked: %s\n  differs: %s\n  in-tree: %d %s %s\n  ours: %d %s %s: %s "+
		"(%s; %v)\n  object: %s\n  old object: %s",
		tr.seed, tr.features.Minor(), tr.gates, w, problem, theirs.Status, theirs.Reason, theirs.Message,
		ours.Status, ours.StatusReason, ours.Code, ours.Reason.Message, ours.Rule, ours.Err, text(w.Object), text(w.OldObject))
}

func (tr *minorWrites) compare(ours noderestriction.Answer, theirs protocol.Admitted) string {
	var asked *protocol.Access
	if a := tr.asked.asked; a != nil {
		asked = &protocol.Access{
			User: a.User, UID: a.UID, Groups: a.Groups, Extra: a.Extra, Verb: a.Verb,
			Group: a.Group, Resource: a.Resource, Namespace: a.Namespace, Name: a.Name,
			Version: "v1", // before 1.37, for any version of the service account
		}
	}
	switch allowed := ours.Decision == verdict.Allow; {
	case allowed != (theirs.Status == 200):
		return "the decision"
	case ours.Status != theirs.Status:
		return "the HTTP status"
	case string(ours.StatusReason) != theirs.Reason:
		return "the status reason"
	case !reflect.DeepEqual(asked, theirs.Asked):
		return fmt.Sprintf("what the authorizer is asked: in-tree %+v, ours %+v", theirs.Asked, asked)
	}
	return ""
}

// listedDifference names the difference between both answers, if it is one that
// is meant to be.
func (tr *minorWrites) listedDifference(w *generate.Write, ours noderestriction.Answer, theirs protocol.Admitted) string {
	if theirs.Panicked {
		return "csi-translation-lib panics on an inline vSphere volume with a storage policy"
	}
	if minor := tr.features.Minor(); theirs.Status == 200 && (minor == 31 || minor == 32) {
		pod, _ := w.Object.(*corev1.Pod)
		switch {
		case ours.Code == noderestriction.OwnerReferencesChanged:
			return "1.31.0 and 1.32.0 let a node change its owners (CVE-2025-5187); we refuse, as their later patches do"
		case minor == 32 && ours.Code == noderestriction.MirrorPodRefersToObject && pod != nil && len(pod.Spec.ResourceClaims) > 0:
			return "1.32.0 lets a mirror pod have resource claims (CVE-2025-4563); we refuse, as its later patches do"
		}
	}
	return listedDifference(w, ours, intree.Admitted{Status: theirs.Status})
}

// minorCoverage counts what a run of writes to a minor has covered.
type minorCoverage struct {
	total, divergences int
	resources          shares
	codes              map[verdict.Code]int
	listed             map[string]int
}

func newMinorCoverage() *minorCoverage {
	return &minorCoverage{resources: make(shares), codes: make(map[verdict.Code]int), listed: make(map[string]int)}
}

func (m *minorCoverage) count(w *generate.Write, ours noderestriction.Answer, theirs protocol.Admitted) {
	m.total++
	m.codes[ours.Code]++
	decision := protocol.Deny
	if theirs.Status == 200 {
		decision = protocol.Allow
	}
	m.resources.count(&generate.Request{Group: w.Group, Resource: w.Resource}, decision)
}

// check prints how often each of our codes was covered. It fails if a restricted resource
// was covered too rarely or with one outcome only.
func (m *minorCoverage) check(t *testing.T) {
	t.Helper()
	var table strings.Builder
	for _, code := range slices.Sorted(maps.Keys(m.codes)) {
		fmt.Fprintf(&table, "%-30s %7d\n", code, m.codes[code])
	}
	for _, key := range [][2]string{
		{"", "pods"},
		{"", "nodes"},
		{"", "persistentvolumeclaims"},
		{"", "serviceaccounts"},
		{"coordination.k8s.io", "leases"},
		{"storage.k8s.io", "csinodes"},
		{"resource.k8s.io", "resourceslices"},
	} {
		s := m.resources[key]
		if s == nil || s.allowed == 0 || s.allowed == s.asked {
			t.Errorf("%s: the writes exercise one outcome only: %+v", key[1], s)
			continue
		}
		fmt.Fprintf(&table, "%-30s %7d asked %7d allowed\n", key[1], s.asked, s.allowed)
	}
	t.Logf("our codes, and the in-tree answers by resource:\n%s", table.String())
	for _, difference := range slices.Sorted(maps.Keys(m.listed)) {
		t.Logf("difference that is meant to be, %d times: %s", m.listed[difference], difference)
	}
}

func writeState(t *testing.T, s *generate.State) *protocol.WriteState {
	t.Helper()
	return &protocol.WriteState{
		Nodes: marshalAll(t, s.Nodes), Pods: marshalAll(t, s.Pods), ServiceAccounts: marshalAll(t, s.ServiceAccounts),
		PersistentVolumeClaims: marshalAll(t, s.PersistentVolumeClaims), PersistentVolumes: marshalAll(t, s.PersistentVolumes),
		CSIDrivers: marshalAll(t, s.CSIDrivers), Roles: marshalAll(t, s.Policy.Roles), RoleBindings: marshalAll(t, s.Policy.RoleBindings),
		ClusterRoles: marshalAll(t, s.Policy.ClusterRoles), ClusterRoleBindings: marshalAll(t, s.Policy.ClusterRoleBindings),
	}
}

func marshalAll[T any](t *testing.T, objects []T) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw)
	}
	return all
}

func protocolWrite(t *testing.T, w *generate.Write) protocol.Write {
	t.Helper()
	raw := func(o runtime.Object) json.RawMessage {
		if o == nil {
			return nil
		}
		return rawObject(t, o.DeepCopyObject()).Raw
	}
	return protocol.Write{
		User: w.User, UID: w.UID, Groups: w.Groups, Extra: w.Extra, Operation: w.Operation,
		Group: w.Group, Version: w.Version, Resource: w.Resource, Subresource: w.Subresource, Namespace: w.Namespace, Name: w.Name,
		Object: raw(w.Object), OldObject: raw(w.OldObject), Undefaulted: w.Undefaulted,
	}
}
