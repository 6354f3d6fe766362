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
  oidc: `
	for oidc, want := range map[string]string{
		`{preset: Google, google: {projects: [shop-prod-1, "example.com:shop-prod"]}, clusterID: shop}`:             "",
		`{preset: Google, google: {projects: [shop-prod-1], zones: [europe-west1-b, us-east1-b]}, clusterID: shop}`: "",
		`{issuerURL: "https://issuer.example.com", clusterID: shop, nodeName: claims.n, instanceID: claims.i}`:      "",
		`{preset: Google, clusterID: shop}`:                                  "google.projects: required",
		`{preset: Google, google: {projects: [shop-prod-1, shop-prod-1]}}`:   "is given twice",
		`{preset: Google, google: {projects: [shop-prod-1], zones: [west]}}`: "want a zone",
		`{maxAge: 11m}`: "bootstrap.oidc.maxAge",
	} {
		_, err := Parse([]byte(config + oidc))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", oidc, err, want)
		}
	}
}
