package v1alpha1

import (
	"strings"
	"testing"
)

func TestKeysOfMachines(t *testing.T) {
	const config = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
webhook: {address: ""}
bootstrap: {address: ":10443", certificateFile: tls.crt, keyFile: tls.key, `
	for key, want := range map[string]string{
		"attestor: key, key: {clusterID: shop, certificateAuthorityFile: a}": "",
		"attestor: key, key: {clusterID: shop}, approval: Manual":            "",
		"attestor: key":                                                       "bootstrap.key.clusterID: want a name of the cluster",
		"attestor: key, key: {clusterID: a/b}":                                "bootstrap.key.clusterID: want a name of the cluster",
		"attestor: key, key: {clusterID: shop}, approval: Maybe":              "bootstrap.approval",
		"attestor: alwaysallow, acceptAlwaysAllow: true, approval: Manual":    "Manual has no effect with bootstrap.attestor: alwaysallow",
		"attestor: key, key: {clusterID: shop}, reattestation: NewerEvidence": "NewerEvidence means Always",
	} {
		_, err := Parse([]byte(config + key + "}"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
}
