package v1alpha1

import (
	"strings"
	"testing"
)

func TestIdentityTokens(t *testing.T) {
	const config = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
webhook: {address: ""}
bootstrap:
  address: ":10443"
  certificateFile: tls.crt
  keyFile: tls.key
  attestor: oidc
  oidc: {`
	const (
		google = "preset: Google, google: {projects: [shop-prod-1]}"
		issuer = `issuerURL: "https://issuer.example.com", nodeName: claims.n, instanceID: claims.i`
		tenant = `conditions: [{expression: claims.tenant == "shop"}]`
	)
	for oidc, want := range map[string]string{
		google + `, clusterID: shop`: "",
		`preset: Google, google: {projects: ["example.com:shop-prod"], zones: [europe-west1-b, us-east1-b]}, clusterID: shop`: "",
		issuer + ", clusterID: shop, " + tenant:                                           "",
		issuer + ", audiences: [nodes], maxAge: 5m, " + tenant:                            "",
		"preset: Google, clusterID: shop":                                                 "google.projects: required",
		"preset: Google, google: {projects: [shop-prod-1, shop-prod-1]}, clusterID: shop": "is given twice",
		"preset: Google, google: {projects: [shop-prod-1], zones: [west]}, clusterID: s":  "want a zone",
		google + ", clusterID: shop, nodeName: claims.n":                                  "the preset Google sets it",
		google + ", clusterID: shop, maxAge: 11m":                                         "bootstrap.oidc.maxAge",
		google: "bootstrap.oidc.clusterID: want it if machines choose",
		google + ", clusterID: shop, audiences: [nodes]":                           "set one of both",
		google + ", clusterID: a/b":                                                "up to 63 letters",
		google + `, clusterID: shop, conditions: [{message: "m"}]`:                 "conditions[0].expression: required",
		issuer + ", audiences: [nodes], maxAge: 6m, " + tenant:                     "want 5m0s at most",
		issuer + ", clusterID: shop":                                               "conditions: required",
		issuer + ", google: {zones: [europe-west1-b]}, clusterID: shop, " + tenant: "has no effect without",
		`issuerURL: "http://issuer.example.com", clusterID: shop, ` + tenant:       "issuerURL: want the claim iss",
		`issuerURL: "https://issuer.example.com", clusterID: shop, ` + tenant:      "nodeName: required",
	} {
		_, err := Parse([]byte(config + oidc + "}"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", oidc, err, want)
		}
	}
}
