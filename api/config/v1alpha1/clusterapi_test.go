package v1alpha1

import (
	"reflect"
	"strings"
	"testing"
)

func TestMachinesOfClusterAPI(t *testing.T) {
	const (
		config = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
webhook: {address: ""}
bootstrap: {address: ":10443", certificateFile: tls.crt, keyFile: tls.key, `
		aws     = "attestor: aws, aws: {clusterName: shop}, clusterAPI: "
		valid   = ", clusterAPI: {namespaces: [fleet, edge], clusterName: shop, kubeconfig: management.conf}"
		nothing = "bootstrap.clusterAPI: want bootstrap.attestor: aws or exec, or oidc with the preset Google"
	)
	want := ClusterAPI{Namespaces: []string{"fleet", "edge"}, ClusterName: "shop", Kubeconfig: "management.conf"}
	for text, problem := range map[string]string{
		"attestor: aws, aws: {clusterName: shop}" + valid:                                                    "",
		"attestor: exec, exec: {provider: other, command: [/bin/attest]}" + valid:                            "",
		"attestor: oidc, oidc: {preset: Google, clusterID: shop, google: {projects: [shop-prod-1]}}" + valid: "",
		"attestor: oidc, oidc: {preset: '', clusterID: shop, issuerURL: 'https://a'}" + valid:                nothing,
		"attestor: alwaysallow, acceptAlwaysAllow: true" + valid:                                             nothing,
		"attestor: key, key: {clusterID: shop}" + valid:                                                      nothing,
		"attestor: tpm" + valid:                              nothing,
		aws + "{namespaces: [fleet]}":                        "bootstrap.clusterAPI.clusterName: want the name of the Cluster, got nothing",
		aws + "{namespaces: [fleet], clusterName: a/b}":      "bootstrap.clusterAPI.clusterName",
		aws + "{namespaces: [fleet, fleet], clusterName: a}": "bootstrap.clusterAPI.namespaces[1]: \"fleet\" is given twice",
		aws + "{namespaces: [Fleet], clusterName: a}":        "bootstrap.clusterAPI.namespaces[0]: want a namespace",
		aws + "{namespaces: [''], clusterName: a}":           "bootstrap.clusterAPI.namespaces[0]: empty",
		aws + "{clusterName: shop}":                          "bootstrap.clusterAPI.namespaces: required with the other fields",
		aws + "{kubeconfig: management.conf}":                "bootstrap.clusterAPI.namespaces: required with the other fields",
	} {
		c, err := Parse([]byte(config + text + "}"))
		switch {
		case problem == "" && err == nil:
			if got := c.Bootstrap.ClusterAPI; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v", text, got)
			}
		case problem == "" || err == nil || !strings.Contains(err.Error(), problem):
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
}
