package oidc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/oidc"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeissuer"
)

var anInstance = fakeissuer.Instance{Project: "shop-prod-1", Zone: "europe-west1-b", ID: "152986662232938449", Name: "worker-1"}

// TestGoogle: what the collector gets from the metadata service, the attestor accepts with the preset.
func TestGoogle(t *testing.T) {
	for _, tc := range []struct {
		rule     string
		instance func(*fakeissuer.Instance)
		accepted bool
	}{
		{"an instance of the project and zone", func(*fakeissuer.Instance) {}, true},
		{"an instance of another project", func(n *fakeissuer.Instance) { n.Project = "shop-dev-1" }, false},
		{"an instance of another zone", func(n *fakeissuer.Instance) { n.Zone = "us-east1-b" }, false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := newSituation(t, func(o *oidc.Options) {
				config := o.OIDC
				config.Preset, config.Conditions = v1alpha1.GooglePreset, nil
				config.Google = v1alpha1.GoogleInstances{Projects: []string{"shop-prod-1"}, Zones: []string{"europe-west1-b"}}
				google := oidc.NewOptions(&config)
				google.IssuerURL, google.Authorities, google.Challenger = o.IssuerURL, o.Authorities, o.Challenger
				*o = google
			})
			instance := anInstance
			tc.instance(&instance)
			t.Setenv("GCE_METADATA_HOST", s.Metadata(t, instance))
			collector, err := oidc.NewCollector(oidc.CollectorOptions{ClusterID: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			name, err := collector.NodeName(t.Context())
			if err != nil || name != "worker-1" {
				t.Errorf("%q %v", name, err)
			}
			body, err := collector.Collect(t.Context(), attest.Binding{Challenge: s.challenges.Challenge(), PublicKey: aKey})
			if err != nil {
				t.Fatal(err)
			}
			id, err := s.attestor.Attest(t.Context(), &attest.Request{NodeName: name, Body: body})
			if (err == nil) != tc.accepted {
				t.Fatal(err)
			}
			if tc.accepted && (id.InstanceID != instance.ID || id.NodeName != "worker-1" || id.PublicKey != aKey) {
				t.Errorf("%+v", id)
			}
			if _, err := collector.Collect(t.Context(), attest.Binding{}); err == nil || !strings.Contains(err.Error(), "clusterID") {
				t.Errorf("without a challenge: %v", err)
			}
		})
	}
}

func TestTokensOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	collector, err := oidc.NewCollector(oidc.CollectorOptions{TokenFile: path})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{" a.b.c\n": `{"identityToken":"a.b.c"}`, "\n": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if body, err := collector.Collect(t.Context(), attest.Binding{}); string(body) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s %v", text, body, err)
		}
	}
	for _, options := range []oidc.CollectorOptions{{}, {TokenFile: path, ClusterID: "shop"}} {
		if _, err := oidc.NewCollector(options); err == nil {
			t.Errorf("%+v is accepted", options)
		}
	}
}
