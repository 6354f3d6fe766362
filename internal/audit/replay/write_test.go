package replay

import (
	"fmt"
	"testing"

	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func tokenFor(pod, uid string) entry {
	return entry{
		verb: "create", uri: "/api/v1/namespaces/shop/serviceaccounts/api/token",
		object: map[string]string{
			"resource": "serviceaccounts", "subresource": "token", "namespace": "shop", "name": "api", "apiVersion": "v1",
		},
		written: fmt.Sprintf(`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":{},`+
			`"spec":{"audiences":null,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":%q,"uid":%q}}}`,
			pod, uid),
	}
}

func TestWritesAreExaminedIfTheLogHasTheObject(t *testing.T) {
	pod := func(verb, name string) entry {
		return entry{
			verb: verb, uri: "/api/v1/namespaces/shop/pods/" + name,
			object: map[string]string{"resource": "pods", "namespace": "shop", "name": name, "apiVersion": "v1"},
		}
	}
	create := func(uri string, object map[string]string, written string) entry {
		object["apiVersion"] = "v1"
		return entry{verb: "create", uri: uri, object: object, written: written}
	}
	node := func(labels string) entry {
		return create("/api/v1/nodes", map[string]string{"resource": "nodes", "name": "worker-1"},
			`{"kind":"Node","apiVersion":"v1","metadata":{"name":"worker-1","labels":{`+labels+`}}}`)
	}
	nodeAtMetadata := node("")
	nodeAtMetadata.written = ""
	mirror := func(written string) entry {
		return create("/api/v1/namespaces/shop/pods", map[string]string{"resource": "pods", "namespace": "shop", "name": "static"}, written)
	}
	lease := func(name string) entry {
		return create("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
			map[string]string{"resource": "leases", "apiGroup": "coordination.k8s.io", "namespace": "kube-node-lease", "name": name}, "")
	}
	tokenAtMetadata := tokenFor("api", "p1")
	tokenAtMetadata.written = ""
	tokenInAnotherOrder := tokenFor("api", "p1")
	tokenInAnotherOrder.written = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",` +
		`"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"api","uid":"p1"}}}`
	for name, test := range map[string]struct {
		entry      entry
		refused    verdict.Code
		unexamined Unexamined
		unwatched  bool // no rule applies
	}{
		"a token for a pod of its own":       {entry: tokenFor("api", "p1")},
		"the same, written in another order": {entry: tokenInAnotherOrder},
		"an unbound token": {entry: func() entry {
			e := tokenFor("", "")
			e.written = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{}}`
			return e
		}(), refused: noderestriction.TokenNotBoundToPod},
		"a token for a pod that was deleted":  {entry: tokenFor("old", "p9"), unexamined: OtherState},
		"a token for a pod that was replaced": {entry: tokenFor("api", "p9"), unexamined: OtherState},
		"a token without a logged object":     {entry: tokenAtMetadata, unexamined: NoObject},
		"an object of another kind": {
			entry:      func() entry { e := tokenFor("", ""); e.written = `{"kind":"Pod","apiVersion":"v1"}`; return e }(),
			unexamined: UnreadableObject,
		},
		"an object without a kind": {
			entry: func() entry { e := tokenFor("", ""); e.written = `[]`; return e }(), unexamined: UnreadableObject,
		},
		"its node": {entry: node("")},
		"its node, with a label that is not its own": {
			entry: node(`"node-restriction.kubernetes.io/team":"a"`), refused: noderestriction.LabelNotAllowed,
		},
		"its node, with only the name in the log": {entry: nodeAtMetadata, unexamined: NoObject},
		"its status": {entry: patchStatus("worker-1"), unexamined: PatchOnly},
		"a pod that is not a mirror pod": {
			entry: mirror(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"static"}}`), refused: noderestriction.NotAMirrorPod,
		},
		"its lease":                        {entry: renewLease("worker-1")},
		"its new lease, at level Metadata": {entry: lease("worker-1")},
		"a pod of its own":                 {entry: pod("delete", "api")},
		"a pod that was deleted":           {entry: pod("delete", "old"), unexamined: OtherState},
		"a read":                           {entry: getSecret("db"), unwatched: true},
		"an event, to which no rule applies": {unwatched: true, entry: create("/api/v1/namespaces/shop/events",
			map[string]string{"resource": "events", "namespace": "shop", "name": "api.1"}, `{"kind":"Event","apiVersion":"v1"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			report := replayed(t, evaluators(t), logOf(test.entry.node("worker-1")))
			if got := report.Totals.Writes == 0; got != test.unwatched {
				t.Errorf("got %+v", report.Totals)
			}
			switch {
			case test.refused != "":
				if len(report.WouldBeRefused) != 1 || report.WouldBeRefused[0].By != ByNodeRestriction ||
					report.WouldBeRefused[0].Code != test.refused {
					t.Errorf("got %+v", report.WouldBeRefused)
				}
			case test.unexamined != "":
				if report.Totals.NotExamined != 1 || report.NotExamined[0].Why != test.unexamined || report.Totals.WouldBeRefused != 0 {
					t.Errorf("got %+v, %+v", report.NotExamined, report.WouldBeRefused)
				}
			case report.Totals.NotExamined != 0 || report.Totals.WouldBeRefused != 0:
				t.Errorf("got %+v, %+v", report.NotExamined, report.WouldBeRefused)
			}
		})
	}
}

func TestRefusalsByAdmissionHaveTheNameOfTheObject(t *testing.T) {
	e := entry{
		verb: "create", uri: "/api/v1/nodes", object: map[string]string{"resource": "nodes", "name": "worker-1", "apiVersion": "v1"},
		written: `{"kind":"Node","apiVersion":"v1","metadata":{"name":"worker-1","labels":{"node-restriction.kubernetes.io/a":"b"}}}`,
	}
	report := replayed(t, evaluators(t), logOf(e.node("worker-1")))
	if len(report.WouldBeRefused) != 1 || report.WouldBeRefused[0].Name != "worker-1" {
		t.Errorf("got %+v", report.WouldBeRefused)
	}
}

func TestWriteToPodOfAnotherNodeIsRefusedWithACaveat(t *testing.T) {
	e := entry{
		verb: "delete", uri: "/api/v1/namespaces/shop/pods/api",
		object: map[string]string{"resource": "pods", "namespace": "shop", "name": "api", "apiVersion": "v1"},
	}
	report := replayed(t, evaluators(t), logOf(e.node("worker-2")))
	if len(report.WouldBeRefused) != 1 {
		t.Fatalf("got %+v", report)
	}
	if got := report.WouldBeRefused[0]; got.Code != noderestriction.PodNotOnNode || got.Caveat != ObjectNotInState {
		t.Errorf("got %+v", got)
	}
}
