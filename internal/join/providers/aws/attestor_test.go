package aws_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	account     = fakeaws.DefaultAccount
	region      = "eu-west-1"
	vpc         = "vpc-0a1b2c3d4e5f60718"
	nodeProfile = "arn:aws:iam::111122223333:instance-profile/nodes.blue"
)

// fixture is a fake AWS with a server that uses it.
type fixture struct {
	*fakeaws.Cloud
	options aws.Options
}

// newFixture connects the AWS SDK of this process to a new fake AWS, as a user of its
// account.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	server := cloud.User(account, "server")
	environment := append(cloud.Environment(),
		"AWS_ACCESS_KEY_ID="+server.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+server.SecretAccessKey, "AWS_SESSION_TOKEN=",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_PROFILE=", "AWS_REGION=",
		"AWS_EC2_METADATA_DISABLED=false", "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1")
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	return &fixture{cloud, aws.Options{
		ClusterName: "blue", Accounts: []string{account}, Regions: []string{region}, VPCs: []string{vpc},
		Certificates: cloud.Certificates(),
	}}
}

// launch launches an instance that may join.
func (s *fixture) launch(change func(*fakeaws.Instance)) fakeaws.Instance {
	instance := fakeaws.Instance{
		Tags:    map[string]string{"KubernetesCluster": "blue"},
		Profile: nodeProfile, Role: "nodes.blue",
	}
	if change != nil {
		change(&instance)
	}
	return s.Launch(instance)
}

func (s *fixture) attestor(t *testing.T, change func(*aws.Options)) *aws.Attestor {
	t.Helper()
	options := s.options
	if change != nil {
		change(&options)
	}
	a, err := aws.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// request returns a request of an instance from its first address.
func (s *fixture) request(t *testing.T, instance fakeaws.Instance) *attest.Request {
	t.Helper()
	text := s.Signer().RSA2048(instance.Document(), instance.Signed())
	body, err := json.Marshal(map[string]any{"Document": []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return &attest.Request{NodeName: instance.PrivateDNSName, RemoteAddr: instance.Interfaces[0].Private[0], Body: body}
}

// couldNot requires an error that is not a refusal and contains a text.
func couldNot(t *testing.T, err error, text string) {
	t.Helper()
	var refusal *attest.Refusal
	switch {
	case err == nil:
		t.Fatal("it succeeds")
	case errors.As(err, &refusal):
		t.Errorf("a refusal: %v", err)
	case !strings.Contains(err.Error(), text):
		t.Errorf("error %q does not contain %q", err, text)
	}
}

func TestInstanceBecomesAnIdentity(t *testing.T) {
	s := newFixture(t)
	instance := s.launch(func(i *fakeaws.Instance) {
		i.PendingTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		i.Interfaces = []fakeaws.Interface{
			{Private: []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")}},
			{Private: []netip.Addr{netip.MustParseAddr("10.0.1.7")}, IPv6: []netip.Addr{netip.MustParseAddr("2001:db8::7")}},
		}
	})
	req := s.request(t, instance)
	identity, err := s.attestor(t, nil).Attest(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if identity.Digest == [32]byte{} {
		t.Error("no digest")
	}
	identity.Digest = [32]byte{}
	got, want := *identity, attest.Identity{
		Provider: "aws", InstanceID: instance.ID, NodeName: "ip-10-0-0-7.eu-west-1.compute.internal",
		Account: account, Region: region, Zone: "eu-west-1a", Issued: instance.PendingTime,
	}
	names := []string{
		"ip-10-0-0-7.eu-west-1.compute.internal", "ip-10-0-0-8.eu-west-1.compute.internal",
		"ip-10-0-1-7.eu-west-1.compute.internal",
	}
	if !slices.Equal(got.Names, names) {
		t.Errorf("names %q, want %q", got.Names, names)
	}
	addresses := []netip.Addr{
		netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8"),
		netip.MustParseAddr("10.0.1.7"), netip.MustParseAddr("2001:db8::7"),
	}
	if !slices.Equal(got.Addresses, addresses) {
		t.Errorf("addresses %v, want %v", got.Addresses, addresses)
	}
	got.Names, got.Addresses = nil, nil
	if got.Provider != want.Provider || got.InstanceID != want.InstanceID || got.NodeName != want.NodeName ||
		got.Account != want.Account || got.Region != want.Region || got.Zone != want.Zone || !got.Issued.Equal(want.Issued) {
		t.Errorf("identity\n%+v, want\n%+v", got, want)
	}
}

func TestAllFormsOfDocumentsAreAccepted(t *testing.T) {
	s := newFixture(t)
	instance := s.launch(nil)
	document, signer := instance.Document(), s.Signer()
	a := s.attestor(t, nil)
	for name, body := range map[string]map[string]any{
		"pkcs7":     {"Document": []byte(signer.PKCS7(document, instance.Signed()))},
		"rsa2048":   {"Document": []byte(signer.RSA2048(document, instance.Signed()))},
		"signature": {"Document": document, "Signature": signer.Signature(document)},
	} {
		req := s.request(t, instance)
		var err error
		if req.Body, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Attest(t.Context(), req); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDocumentIsReadWithoutSignature disables every check that can be disabled. All other checks use
// the values that the machine claims.
func TestDocumentIsReadWithoutSignature(t *testing.T) {
	s := newFixture(t)
	foreign, err := fakeaws.NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	unverified := func(o *aws.Options) { o.SkipSignature = true }
	a := s.attestor(t, unverified)
	instance := s.launch(nil)
	req := s.request(t, instance)
	claim := func(document []byte) *attest.Request {
		if req.Body, err = json.Marshal(map[string]any{"Document": document}); err != nil {
			t.Fatal(err)
		}
		return req
	}
	identity, err := a.Attest(t.Context(), claim([]byte(foreign.RSA2048(instance.Document(), instance.Signed()))))
	if err != nil || identity.InstanceID != instance.ID {
		t.Errorf("signed with another key: %+v, %v", identity, err)
	}
	identity, err = a.Attest(t.Context(), claim(instance.Document()))
	if err != nil || identity.NodeName != instance.PrivateDNSName {
		t.Errorf("not signed: %+v, %v", identity, err)
	}

	claimed := instance
	claimed.Account = "444455556666"
	_, err = a.Attest(t.Context(), claim(claimed.Document()))
	refused(t, err, aws.WrongAccount)
	_, err = s.attestor(t, func(o *aws.Options) {
		o.SkipSignature, o.Accounts = true, []string{account, "444455556666"}
	}).Attest(t.Context(), claim(claimed.Document()))
	refused(t, err, aws.DocumentContradicted)
	_, err = a.Attest(t.Context(), claim([]byte("anything")))
	refused(t, err, identitydocument.DocumentMalformed)
}

func TestConcurrentAttestation(t *testing.T) {
	s := newFixture(t)
	a := s.attestor(t, nil)
	const machines = 20
	names := make(chan string, machines)
	for range machines {
		instance := s.launch(nil)
		req := s.request(t, instance)
		go func() {
			identity, err := a.Attest(t.Context(), req)
			if err != nil {
				t.Error(err)
				names <- ""
				return
			}
			names <- identity.NodeName
		}()
	}
	seen := map[string]bool{}
	for range machines {
		name := <-names
		if seen[name] {
			t.Errorf("two machines have the name %q", name)
		}
		seen[name] = true
	}
}

// refused requires that an error is a refusal with a code.
func refused(t *testing.T, err error, code verdict.Code) *attest.Refusal {
	t.Helper()
	var refusal *attest.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal with %s", err, code)
	}
	if refusal.Code != code || refusal.Malformed != (code == identitydocument.DocumentMalformed) {
		t.Errorf("got %v, malformed %t, want %s", refusal, refusal.Malformed, code)
	}
	return refusal
}
