package replay

import "testing"

// TestPathTakesPrecedenceOverLoggedObject has events whose logged object differs from their
// path: the kubelet, the refusals and the counts follow the path.
func TestPathTakesPrecedenceOverLoggedObject(t *testing.T) {
	lease := renewLease("worker-1")
	otherLease := lease
	otherLease.object = map[string]string{"resource": "configmaps", "namespace": "kube-node-lease", "name": "worker-1"}
	notALease := lease
	notALease.uri = "/api/v1/namespaces/kube-node-lease/configmaps/worker-1"
	secret := getSecret("db")
	secret.object = map[string]string{"resource": "secrets", "namespace": "shop", "name": "none"}
	without := getSecret("none")
	without.object = nil
	escaped := getSecret("db")
	escaped.uri = "/api/v1/namespaces/shop/secrets%2Fnone"
	for _, test := range []struct {
		rule                       string
		entry                      entry
		suspects, requests, refuse int
		resource, name             string
	}{
		{"a lease by its path", otherLease.by("ada"), 1, 1, 1, "leases", "worker-1"},
		{"not a lease by its object alone", notALease.by("ada"), 0, 0, 0, "", ""},
		{"a read of the object in the path", secret.node("worker-1"), 0, 1, 0, "", ""},
		{"a read without a logged object", without.node("worker-1"), 0, 1, 1, "secrets", "none"},
		{"a read with an escaped slash", escaped.node("worker-1"), 0, 1, 1, "secrets", "none"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			test.entry.agent = "client"
			r := replayed(t, evaluators(t), logOf(test.entry))
			if len(r.Nonconforming) != test.suspects || r.Totals.Requests != test.requests || r.Totals.WouldBeRefused != test.refuse {
				t.Fatalf("got %+v, %+v", r.Totals, r.Nonconforming)
			}
			if test.refuse > 0 && (r.WouldBeRefused[0].Resource != test.resource || r.WouldBeRefused[0].Name != test.name) {
				t.Errorf("got %+v", r.WouldBeRefused[0])
			}
		})
	}
}
