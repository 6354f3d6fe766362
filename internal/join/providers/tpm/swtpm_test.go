package tpm

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/testing/swtpm"
)

// registered has Machines by the hash of the endorsement key.
type registered map[string]*v1alpha1.Machine

func (r registered) Find(_ context.Context, req *attest.Request, proof *machines.Proof) (*v1alpha1.Machine, error) {
	if m := r[proof.EKHash]; m != nil {
		return m, nil
	}
	return nil, attest.Refuse(machines.MachineNotRegistered, "%s for %s: %s", proof.EKHash, req.NodeName, proof.Description)
}

func sealer(t testing.TB, clock func() time.Time) *attest.Challenges {
	t.Helper()
	c, err := attest.NewChallenges(make([]byte, attest.ChallengeKeySize), clock)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const attestedKey = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// join runs both rounds of a collector.
func join(t testing.TB, a *Attestor, c *Collector, name string) (*attest.Identity, error) {
	t.Helper()
	about := attest.Binding{PublicKey: attestedKey}
	body, err := c.Collect(t.Context(), about)
	if err != nil {
		t.Fatal(err)
	}
	req := &attest.Request{NodeName: name, RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: body}
	id, err := a.Attest(t.Context(), req)
	next, ok := errors.AsType[*attest.Continue](err)
	if !ok {
		return id, err
	}
	if req.Body, err = c.Respond(t.Context(), about, next.Challenge); err != nil {
		t.Fatal(err)
	}
	return a.Attest(t.Context(), req)
}

func TestSwtpm(t *testing.T) {
	authority := swtpm.NewAuthority(t)
	for _, tc := range []struct {
		name  string
		setup []string
	}{
		{"RSA endorsement key", nil},
		{"ECC endorsement key", []string{"--ecc"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			collector := NewCollector(CollectorOptions{Device: authority.Start(t, tc.setup...)})
			hash, err := collector.EKHash()
			if err != nil {
				t.Fatal(err)
			}
			options := Options{
				Authorities: authority.Pool(t), TPM: settings{NodeName: "tpm-{{.EKHash}}"},
				Machines: registered{}, Sealer: sealer(t, nil),
			}
			vouched, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			digits := strings.TrimPrefix(hash, "sha256:")
			id, err := join(t, vouched, collector, "tpm-"+digits[:20])
			if err != nil {
				t.Fatal(err)
			}
			if id.NodeName != "tpm-"+digits[:20] || id.InstanceID != digits[:40] || id.PublicKey != attestedKey || !id.SingleUse ||
				!strings.Contains(id.Description, "CN=swtpm-localca vouches for the TPM; clock ") ||
				!strings.Contains(id.Description, `it says that it is "IBM SWTPM firmware 8`) {
				t.Errorf("got %+v", id)
			}
			options.Authorities, options.NodeName = nil, ""
			options.Machines = registered{hash: {Spec: v1alpha1.MachineSpec{
				NodeName: "worker-1", Names: []string{"w1.example.com"}, Addresses: []string{"10.0.0.7"},
				TPM: &v1alpha1.MachineTPM{EKHashes: []string{hash}},
			}}}
			known, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			id, err = join(t, known, collector, "worker-1")
			if err != nil {
				t.Fatal(err)
			}
			if id.NodeName != "worker-1" || !slices.Equal(id.Names, []string{"worker-1", "w1.example.com"}) || len(id.Addresses) != 1 {
				t.Errorf("got %+v", id)
			}
			options.Machines = registered{}
			unknown, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			_, err = join(t, unknown, collector, "worker-1")
			if refused, ok := errors.AsType[*attest.Refusal](err); !ok || refused.Code != machines.MachineNotRegistered {
				t.Errorf("a TPM that is not registered: %v", err)
			}
		})
	}
}
