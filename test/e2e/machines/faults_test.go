package machines

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/apiproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// TestFaults breaks one part while a machine joins. The client retries without help and
// gets its token, and no other token is created.
func TestFaults(t *testing.T) {
	for _, fault := range []struct {
		name string
		// happen causes a fault while the client runs, and repairs it.
		happen func(t *testing.T, m *Machine, client *running)
	}{
		{"kube-apiserver is away while the machine asks", apiServerAway},
		{"the service is killed between ledger and token", func(t *testing.T, m *Machine, client *running) {
			killedAt(t, client, (*apiproxy.Proxy).HoldRequest, isTokenCreation)
			inPhase(t, blue, m, v1alpha1.Issued)
		}},
		{"the service is killed between token and answer", func(t *testing.T, m *Machine, client *running) {
			killedAt(t, client, (*apiproxy.Proxy).HoldAnswer, isTokenCreation)
			if ids := tokensOf(t, blue, m); len(ids) != 1 {
				t.Errorf("the tokens are %v", ids)
			}
		}},
		{"EC2 throttles", func(t *testing.T, _ *Machine, client *running) {
			blue.Cloud.EC2.Break(fakeaws.Fault{Kind: fakeaws.Throttled, Times: 3})
			client.begin()
		}},
		{"EC2 is slow", func(t *testing.T, _ *Machine, client *running) {
			blue.Cloud.EC2.Break(fakeaws.Fault{Kind: fakeaws.Slow, Delay: 2 * time.Second, Times: 1})
			client.begin()
		}},
		{"EC2 is down", func(t *testing.T, _ *Machine, client *running) { ec2Fails(t, client, fakeaws.Down) }},
		{"EC2 does not answer", func(t *testing.T, _ *Machine, client *running) { ec2Fails(t, client, fakeaws.Hanging) }},
		{"the cloud's metadata is down", func(t *testing.T, m *Machine, client *running) {
			m.Metadata.Break(fakeaws.Fault{Kind: fakeaws.Down, Times: 4})
			client.begin()
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Cleanup(func() { recovered(t) })
			m := launch(t, blue)
			client := &running{t: t, machine: m, ended: make(chan Outcome, 1)}
			fault.happen(t, m, client)
			client.succeeds()
			joinedOnce(t, m)
		})
	}
}

// running is a client that may have been started.
type running struct {
	t       *testing.T
	machine *Machine
	ended   chan Outcome
}

func (r *running) begin() {
	go func() {
		outcome, err := r.machine.Client(r.t.Context(), "--timeout=2m")
		if err != nil {
			outcome = Outcome{Status: -1, Output: err.Error()}
		}
		r.ended <- outcome
	}()
}

func (r *running) succeeds() {
	r.t.Helper()
	outcome := <-r.ended
	r.t.Log(outcome.Output)
	if outcome.Status != 0 {
		r.t.Fatalf("the client ended with status %d", outcome.Status)
	}
}

// joinedOnce gets a certificate with the machine's token. It checks that there is no
// other token, and that the ledger has this one.
func joinedOnce(t *testing.T, m *Machine) {
	t.Helper()
	entry, err := blue.Entry(t.Context(), m)
	orFatal(t, err)
	if ids := tokensOf(t, blue, m); !slices.Equal(ids, []string{entry.Spec.TokenID}) {
		t.Errorf("the tokens are %v, the ledger says %s", ids, entry.Spec.TokenID)
	}
	written, err := m.token()
	orFatal(t, err)
	if id, _, _ := strings.Cut(written, "."); id != entry.Spec.TokenID {
		t.Errorf("the machine has the token %s, the ledger says %s", id, entry.Spec.TokenID)
	}
	issued(t, blue, withToken(blue, written), clientRequest(m.NodeName()), newKey(t))
	inPhase(t, blue, m, v1alpha1.Certified)
}

// recovered removes faults of EC2 and waits until both replicas are ready.
func recovered(t *testing.T) {
	blue.Cloud.EC2.Heal()
	// The test's own context has ended.
	ctx := context.WithoutCancel(t.Context())
	for _, replica := range blue.Replicas {
		if err := await.Until(ctx, "the replica is ready", replica.Ready); err != nil {
			t.Error(err)
		}
	}
}

func apiServerAway(t *testing.T, m *Machine, client *running) {
	orFatal(t, blue.Kill(localplane.APIServer))
	refused(t, ask(t, m, blue.Replicas[0], m.NodeName(), evidence(t, m)), http.StatusServiceUnavailable, bootstrap.BootstrapUnavailable)
	asked := blue.Cloud.EC2.Requests()
	client.begin()
	eventually(t, "the client has asked", func(context.Context) error {
		if blue.Cloud.EC2.Requests() == asked {
			return errors.New("EC2 was not asked about it")
		}
		return nil
	})
	orFatal(t, blue.StartComponent(t.Context(), localplane.APIServer))
}

func isTokenCreation(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets")
}

// killedAt starts a client, kills the replica that sends a matching request, and starts
// the replica again at the end of the test.
func killedAt(t *testing.T, client *running, hold func(*apiproxy.Proxy, func(*http.Request) bool) *apiproxy.Hold,
	match func(*http.Request) bool,
) *Replica {
	t.Helper()
	first, second := hold(blue.Replicas[0].APIProxy, match), hold(blue.Replicas[1].APIProxy, match)
	client.begin()
	killed, other := blue.Replicas[0], second
	select {
	case <-first.Held:
	case <-second.Held:
		killed, other = blue.Replicas[1], first
	case <-time.After(await.Timeout):
		t.Fatal("no replica sent such a request")
	}
	orFatal(t, killed.Kill())
	other.Release()
	t.Cleanup(func() {
		if err := killed.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return killed
}

func ec2Fails(t *testing.T, client *running, kind fakeaws.FaultKind) {
	blue.Cloud.EC2.Break(fakeaws.Fault{Kind: kind})
	asked := blue.Cloud.EC2.Requests()
	client.begin()
	eventually(t, "EC2 has been asked", func(context.Context) error {
		if blue.Cloud.EC2.Requests() == asked {
			return errors.New("not yet")
		}
		return nil
	})
	blue.Cloud.EC2.Heal()
}

// TestLeaderOfTheApproverKilled: the leader is killed after it has bound the token and
// before it has approved the request. The other replica takes over and approves that
// request, and no request with another key.
func TestLeaderOfTheApproverKilled(t *testing.T) {
	t.Cleanup(func() { recovered(t) })
	m := launch(t, blue)
	config := withToken(blue, token(t, m, blue.Replicas[0]))
	isApproval := func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/approval")
	}
	first, second := blue.Replicas[0].APIProxy.HoldRequest(isApproval), blue.Replicas[1].APIProxy.HoldRequest(isApproval)
	key := newKey(t)
	name := submit(t, config, clientRequest(m.NodeName()), key).Name
	leader, other := blue.Replicas[0], second
	select {
	case <-first.Held:
	case <-second.Held:
		leader, other = blue.Replicas[1], first
	case <-time.After(await.Timeout):
		t.Fatal("no replica approves")
	}
	orFatal(t, leader.Kill())
	other.Release()
	if condition := decided(t, blue, name); condition.Type != "Approved" {
		t.Errorf("%s %s: %s", condition.Type, condition.Reason, condition.Message)
	}
	deniedWith(t, blue, config, clientRequest(m.NodeName()), newKey(t), "TokenAlreadyUsed")
	inPhase(t, blue, m, v1alpha1.Certified)
	orFatal(t, leader.Start(t.Context()))
}

// TestFullDiskOfTheMachine: a client that cannot write its kubeconfig leaves
// nothing, and one that can, later, writes the token of the first.
func TestFullDiskOfTheMachine(t *testing.T) {
	m := launch(t, blue)
	disk := filepath.Join(t.TempDir(), "disk")
	orFatal(t, os.Mkdir(disk, 0o700))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4k,mode=0700"); err != nil {
		t.Skipf("a small disk cannot be mounted, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	ballast, kubeconfig := filepath.Join(disk, "ballast"), filepath.Join(disk, "bootstrap-kubeconfig")
	orFatal(t, os.WriteFile(ballast, make([]byte, 4096), 0o600))

	outcome, err := m.Client(t.Context(), "--kubeconfig="+kubeconfig)
	orFatal(t, err)
	if outcome.Status != 2 || !strings.Contains(outcome.Output, syscall.ENOSPC.Error()) {
		t.Errorf("the client ended with status %d: %s", outcome.Status, outcome.Output)
	}
	files, err := os.ReadDir(disk)
	orFatal(t, err)
	if len(files) != 1 {
		t.Errorf("the disk holds %v", files)
	}
	orFatal(t, os.Remove(ballast))
	orFatal(t, syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64k"))
	outcome, err = m.Client(t.Context(), "--kubeconfig="+kubeconfig)
	orFatal(t, err)
	if outcome.Status != 0 {
		t.Fatalf("the client ended with status %d: %s", outcome.Status, outcome.Output)
	}
	orFatal(t, server.CopyFiles(filepath.Dir(m.Kubeconfig()), map[string]string{filepath.Base(m.Kubeconfig()): kubeconfig}))
	joinedOnce(t, m)
}

// TestTokensThatNobodyUsesEnd: the machine may ask again, and gets another one.
func TestTokensThatNobodyUsesEnd(t *testing.T) {
	m := launch(t, blue)
	first := token(t, m, blue.Replicas[0])
	id, _, _ := strings.Cut(first, ".")
	if again := token(t, m, blue.Replicas[1]); again != first {
		t.Errorf("a second request got %s, not the same token", strings.Split(again, ".")[0])
	}
	secrets := blue.Client.CoreV1().Secrets(metav1.NamespaceSystem)
	secret, err := secrets.Get(t.Context(), "bootstrap-token-"+id, metav1.GetOptions{})
	orFatal(t, err)
	var keys []string
	for key := range secret.Data {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	want := []string{"auth-extra-groups", "description", "expiration", "token-id", "token-secret", "usage-bootstrap-authentication"}
	if !slices.Equal(keys, want) {
		t.Errorf("the Secret has the keys %v, want %v", keys, want)
	}

	// The token expires.
	entry, err := blue.Entry(t.Context(), m)
	orFatal(t, err)
	entry.Spec.TokenExpiration = metav1.NewTime(time.Now().Add(-time.Second))
	_, err = blue.Ledger.Update(t.Context(), entry)
	orFatal(t, err)
	secret.Data["expiration"] = []byte(time.Now().Add(-time.Second).UTC().Format(time.RFC3339))
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	second := token(t, m, blue.Replicas[0])
	if second == first {
		t.Error("it got the token that ended")
	}
	issued(t, blue, withToken(blue, second), clientRequest(m.NodeName()), newKey(t))
	if _, err := create(t, withToken(blue, first), clientRequest(m.NodeName()), newKey(t)); !apierrors.IsUnauthorized(err) {
		t.Errorf("kube-apiserver takes the token that ended: %v", err)
	}
}
