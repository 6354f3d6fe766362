package nodeidentity_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func TestReserved(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost":                       true,
		"worker.localhost":                true,
		"kubernetes":                      true,
		"kubernetes.default":              true,
		"Kubernetes.example.com":          true,
		"db.shop.svc":                     true,
		"db.shop.svc.example.com":         true,
		"X.Cluster.Local":                 true,
		"x.cluster.local.":                true,
		"worker-1":                        false,
		"svc-1":                           false,
		"kubernetes-1.example.com":        false,
		"ip-10-0-0-7.ec2.internal":        false,
		"localhost.example.com":           false,
		"worker-1.cluster.local.internal": false,
	} {
		if got := nodeidentity.Reserved(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
