package server

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// An EC2 instance joins. The server runs on an instance itself, and reads from its metadata service
// where other instances have to be. Instances sign challenges of the server.
func TestInstancesJoin(t *testing.T) { // sets the environment of the SDK
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	own := cloud.Launch(fakeaws.Instance{Role: "control-plane"})
	worker := cloud.Launch(fakeaws.Instance{
		VPC: own.VPC, Region: own.Region, Account: own.Account, Role: "workers",
		Tags:       map[string]string{"KubernetesCluster": "shop.example.com"},
		Interfaces: []fakeaws.Interface{{Private: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}},
	})
	environment := func(instance fakeaws.Instance) {
		metadata, err := cloud.Metadata(instance.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, setting := range metadata.Environment() {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value)
		}
	}
	t.Setenv("AWS_REGION", own.Region)
	environment(own)

	certificates := filepath.Join(t.TempDir(), "aws.pem")
	var text []byte
	for _, certificate := range cloud.Certificates() {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})...)
	}
	write(t, certificates, text)
	s := newJoinServer(t, func(c *v1alpha1.ServerConfiguration) {
		c.Bootstrap.Attestor, c.Bootstrap.AcceptAlwaysAllow = v1alpha1.AWSAttestor, false
		c.Bootstrap.ClientCAFile = ""
		c.Bootstrap.AWS.ClusterName, c.Bootstrap.AWS.CertificatesFile = "shop.example.com", certificates
		c.Bootstrap.AWS.CallerIdentity = v1alpha1.CallerIdentity{Required: true, Endpoint: cloud.STS.URL}
	}).ready()
	if !strings.Contains(s.probe().body, "[+]attestor ok: aws\n") {
		t.Errorf("readyz: got %s", s.probe().body)
	}
	secret := &corev1.Secret{}
	if found, err := s.cluster.Get("/api/v1/namespaces/kube-system/secrets/node-authorizer-key", secret); err != nil || !found {
		t.Errorf("the key is not shared: %v", err)
	}

	environment(worker)
	collector, err := aws.NewCollector(t.Context(), aws.CollectorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name, err := collector.NodeName(ctx)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	for _, challenge := range []string{"", s.challenge()} {
		body, err := collector.Collect(ctx, attest.Binding{Challenge: challenge})
		if err != nil {
			t.Fatal(err)
		}
		bodies[challenge] = string(body)
		status, answer := s.ask(nil, name, string(body))
		if want := challenge != ""; answer.Status.Allowed != want {
			t.Errorf("with the challenge %q: got %d %+v\n%s", challenge, status, answer, s.log.String())
		}
		if challenge == "" && !strings.HasPrefix(answer.Status.Reason, "CallerIdentityMissing: ") {
			t.Errorf("without a challenge: got %+v", answer)
		}
	}
	log := s.log.String()
	for _, body := range bodies {
		document := body[strings.Index(body, ":")+2:][:64]
		if strings.Contains(log, document) {
			t.Error("the log has the evidence")
		}
	}
	if n := strings.Count(log, `"code"="CallerIdentityMissing"`); n != 1 {
		t.Errorf("the refusal is logged %d times", n)
	}
}

// challenge requests a challenge.
func (s *joinServer) challenge() string {
	s.t.Helper()
	got, err := read(s.testListeners.caller(nil).Get(at(s.listeners.bootstrap, "/challenge")))
	if err != nil || got.status != http.StatusOK {
		s.t.Fatalf("got %+v, %v", got, err)
	}
	challenge, ok := strings.CutPrefix(strings.TrimSpace(got.body), `{"Challenge":"`)
	if !ok {
		s.t.Fatalf("no challenge in %s", got.body)
	}
	return strings.TrimSuffix(challenge, `"}`)
}

// The metadata service is down when the server starts.
func TestAnAttestorIsWaitedFor(t *testing.T) { // sets the environment of the SDK
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	metadata, err := cloud.Metadata(cloud.Launch(fakeaws.Instance{}).ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range metadata.Environment() {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	metadata.Service.Break(fakeaws.Fault{Kind: fakeaws.Down})
	s := newJoinServer(t, func(c *v1alpha1.ServerConfiguration) {
		c.Bootstrap.Attestor, c.Bootstrap.AWS.ClusterName, c.Bootstrap.ClientCAFile = v1alpha1.AWSAttestor, "shop", ""
	})
	eventually(t, "it waits", func() bool { return strings.Contains(s.log.String(), "waiting for the attestor aws") })
	if got := s.probe(); got.status != 503 || !strings.Contains(got.body, "[-]attestor failed: waiting for the attestor aws: ") {
		t.Errorf("readyz: got %+v", got)
	}
	status, answer := s.ask(nil, "worker-1", `{"Document": "AAAA"}`)
	if status != 503 || !strings.HasPrefix(answer.Status.Reason, "BootstrapUnavailable: ") {
		t.Errorf("a machine meanwhile: got %d %+v, want an error", status, answer)
	}
	metadata.Service.Heal()
	s.ready()
}

func TestMistakesInAttestorsAreErrorsAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "aws.pem")
	write(t, broken, []byte("nothing"))
	for rule, tc := range map[string]struct {
		configure func(*v1alpha1.Bootstrap)
		want      string
	}{
		"no certificates": {
			func(b *v1alpha1.Bootstrap) { b.AWS.CertificatesFile = filepath.Join(dir, "none") },
			"read bootstrap.aws.certificatesFile: ",
		},
		"invalid certificates": {func(b *v1alpha1.Bootstrap) { b.AWS.CertificatesFile = broken }, "use bootstrap.aws.certificatesFile "},
		"one name for all": {
			func(b *v1alpha1.Bootstrap) { b.AWS.Naming = "{{.Region}}" }, "bootstrap.aws: naming ",
		},
	} {
		config := v1alpha1.Defaults()
		config.Bootstrap.Attestor, config.Bootstrap.AWS.ClusterName = v1alpha1.AWSAttestor, "shop"
		tc.configure(&config.Bootstrap)
		_, err := newPendingAttestor(&config.Bootstrap, nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", rule, err, tc.want)
		}
	}
}
