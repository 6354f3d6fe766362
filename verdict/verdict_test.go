package verdict_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestDecisionFailsClosed(t *testing.T) {
	var forgotten verdict.Decision
	if forgotten != verdict.Deny {
		t.Errorf("the zero decision is %v", forgotten)
	}
}

func TestDecisionAsText(t *testing.T) {
	for decision, text := range map[verdict.Decision]string{
		verdict.Deny: "Deny", verdict.Allow: "Allow", verdict.NoOpinion: "NoOpinion",
	} {
		got, err := json.Marshal(decision)
		if err != nil || string(got) != `"`+text+`"` {
			t.Errorf("%v is written as %s, %v", decision, got, err)
		}
		read := verdict.Decision(99)
		if err := json.Unmarshal(got, &read); err != nil || read != decision {
			t.Errorf("%s is read as %v, %v", got, read, err)
		}
	}
	if got := verdict.Decision(9).String(); got != "Decision(9)" {
		t.Errorf("an unknown decision is %q", got)
	}
}

func TestUnknownDecisionIsNotRead(t *testing.T) {
	for _, text := range []string{"", "allow", "Allow ", "yes", "Decision(1)"} {
		decision := verdict.NoOpinion
		if err := decision.UnmarshalText([]byte(text)); err == nil || decision != verdict.NoOpinion {
			t.Errorf("%q is read as %v, %v", text, decision, err)
		}
	}
}

var (
	node   = verdict.Object{Kind: "Node", Name: "worker-1"}
	pod    = verdict.Object{Kind: "Pod", Namespace: "shop", Name: "api"}
	claim  = verdict.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "orders"}
	secret = verdict.Object{Kind: "Secret", Namespace: "shop", Name: "db"}
)

func TestObjectAsText(t *testing.T) {
	for object, want := range map[verdict.Object]string{
		node:  "node worker-1",
		pod:   "pod shop/api",
		claim: "persistentvolumeclaim shop/orders",
	} {
		if got := object.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestObjectsAreInOrderOfKindNamespaceAndName(t *testing.T) {
	sorted := []verdict.Object{
		{Kind: "ConfigMap", Namespace: "z", Name: "z"},
		{Kind: "Pod", Namespace: "a", Name: "z"},
		{Kind: "Pod", Namespace: "b", Name: "a"},
		{Kind: "Pod", Namespace: "b", Name: "b"},
		{Kind: "Secret", Name: "a"},
	}
	shuffled := []verdict.Object{sorted[3], sorted[0], sorted[4], sorted[2], sorted[1]}
	slices.SortFunc(shuffled, verdict.Object.Compare)
	if !slices.Equal(shuffled, sorted) {
		t.Errorf("got %v, want %v", shuffled, sorted)
	}
	if pod.Compare(pod) != 0 {
		t.Error("an object differs from itself")
	}
}

func TestPathAsText(t *testing.T) {
	for _, tc := range []struct {
		rule string
		path verdict.Path
		want string
	}{
		{"no path", nil, ""},
		{"one edge", verdict.Path{{From: pod, To: node, Holder: pod, Field: "spec.nodeName"}}, "pod shop/api <- node worker-1"},
		{"the field says where an object is named; spec.nodeName goes without saying", verdict.Path{
			{From: secret, To: pod, Holder: pod, Field: "spec.containers[name=api].env"},
			{From: pod, To: node, Holder: pod, Field: "spec.nodeName"},
		}, "secret shop/db <- pod shop/api (spec.containers[name=api].env) <- node worker-1"},
	} {
		if got := tc.path.String(); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.rule, got, tc.want)
		}
	}
}

func TestReasonAsJSON(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		reason verdict.Reason
		want   string
	}{
		{
			"what is empty is left out",
			verdict.Reason{Code: "NotANode", Message: "user jane is not a node"},
			`{"code":"NotANode","message":"user jane is not a node"}`,
		},
		{
			"a path is a list of edges",
			verdict.Reason{
				Code: "PathToObject", Message: "on it", Hint: "none",
				Path: verdict.Path{{From: pod, To: node, Holder: pod, Field: "spec.nodeName"}},
			},
			`{"code":"PathToObject","message":"on it","path":[{"from":{"kind":"Pod","namespace":"shop","name":"api"},` +
				`"to":{"kind":"Node","name":"worker-1"},"holder":{"kind":"Pod","namespace":"shop","name":"api"},` +
				`"field":"spec.nodeName"}],"hint":"none"}`,
		},
	} {
		got, err := json.Marshal(tc.reason)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v, want %s", tc.rule, got, err, tc.want)
		}
	}
}

func TestObjectAsAppendedText(t *testing.T) {
	for _, object := range []verdict.Object{node, pod, claim, secret, {}} {
		if got, want := string(object.AppendTo([]byte("to "))), "to "+object.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
