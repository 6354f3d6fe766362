package source

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

const containment = `
apiVersion: policy.node-authorizer.io/v1alpha1
kind: NodeScope
metadata: {name: agent, creationTimestamp: "2026-01-02T03:04:05Z", labels: {a: b}}
spec:
  subjects: [{namespace: kube-system, name: agent}]
  mode: Enforce
  podsOnNode: [{resources: [pods], verbs: [get]}]
status: {observedGeneration: 7}
---
apiVersion: policy.node-authorizer.io/v1alpha1
kind: Quarantine
metadata: {name: bad, creationTimestamp: "2026-01-02T03:04:05Z"}
spec:
  node: worker
  reason: confidential
  expirationTime: "2027-01-02T03:04:05Z"
  allow: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
`

// checkContainment checks that a state has the objects above.
func checkContainment(t *testing.T, s *State) {
	t.Helper()
	scopes, quarantines := s.NodeScopes(), s.Quarantines()
	if len(scopes) != 1 || len(quarantines) != 1 {
		t.Fatalf("%d NodeScopes and %d Quarantines", len(scopes), len(quarantines))
	}
	scope, q := scopes[0], quarantines[0]
	if scope.Name != "agent" || scope.CreationTimestamp.IsZero() || scope.Labels != nil || scope.Status.ObservedGeneration != 0 ||
		len(scope.Spec.PodsOnNode) != 1 || scope.Spec.Mode != policyv1alpha1.Enforce {
		t.Errorf("the NodeScope is %+v", scope)
	}
	if q.Name != "bad" || q.CreationTimestamp.IsZero() || q.Spec.Node != "worker" || q.Spec.Reason != "" ||
		q.Spec.ExpirationTime == nil || len(q.Spec.Allow) != 1 {
		t.Errorf("the Quarantine is %+v", q)
	}
	if missing := s.Missing(); len(missing) > 0 {
		t.Errorf("missing is %v", missing)
	}
}

func TestContainmentOfFiles(t *testing.T) {
	s := mustLoad(t, "a.yaml", containment)
	checkContainment(t, s)
	for _, parts := range []bool{false, true} {
		checkContainment(t, loadSnapshot(t, s, FileOptions{Parts: parts}))
	}
}

func TestContainmentOfAList(t *testing.T) {
	docs := strings.Split(containment, "---")
	list := "apiVersion: v1\nkind: List\nitems:\n"
	for _, doc := range docs {
		list += "- " + strings.ReplaceAll(strings.TrimSpace(doc), "\n", "\n  ") + "\n"
	}
	checkContainment(t, mustLoad(t, "a.yaml", list))
}

func liveContainment(t *testing.T) *stubServer {
	s := newStub(t)
	of := mustLoad(t, "a.yaml", containment)
	s.set("nodescopes", of.NodeScopes()[0].DeepCopy())
	s.set("quarantines", of.Quarantines()[0].DeepCopy())
	return s
}

func TestContainmentOfACluster(t *testing.T) {
	s := liveContainment(t)
	checkContainment(t, list(t, s, LiveOptions{}))
	opened, err := Open(t.Context(), s.config(), LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checkContainment(t, opened)
	if !opened.HasRead(Part{Kinds: NodeScopes | Quarantines}) {
		t.Error("an opened state has not read them")
	}
}

// Without the custom resources there are none. If they may not be read, they are missing.
func TestContainmentThatCannotBeRead(t *testing.T) {
	s := newStub(t)
	s.setAllowed("list nodescopes", false)
	s.unserve("policy.node-authorizer.io/v1alpha1", "quarantines")
	opened, err := Open(t.Context(), s.config(), LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]*State{"List": list(t, s, LiveOptions{}), "Open": opened} {
		missing := state.Missing()
		if len(missing) != 1 || missing[0].Kind != NodeScopes {
			t.Errorf("%s: missing is %v", name, missing)
		}
	}
	if n := s.count("GET /apis/policy.node-authorizer.io/v1alpha1/quarantines"); n > 0 {
		t.Errorf("quarantines were requested %d times, and are not served", n)
	}
}

// The server follows these kinds elsewhere.
func TestWatchDoesNotReadContainment(t *testing.T) {
	s := liveContainment(t)
	live := startWatch(t, s, LiveOptions{})
	waitSynced(t, live)
	for _, w := range live.Resources() {
		if w.Resource.Group == policyv1alpha1.Group {
			t.Errorf("%s is followed", w.Resource)
		}
	}
	if n := s.count("GET /apis/policy.node-authorizer.io/v1alpha1/"); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// An end that is not set is none.
func TestQuarantineWithoutAnEnd(t *testing.T) {
	q := &policyv1alpha1.Quarantine{Spec: policyv1alpha1.QuarantineSpec{Node: "worker", ExpirationTime: &metav1.Time{}}}
	trim(q, false)
	if q.Spec.ExpirationTime != nil {
		t.Errorf("the end is %v", q.Spec.ExpirationTime)
	}
}
