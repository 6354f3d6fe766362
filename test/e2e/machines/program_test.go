package machines

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeprovider"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// asProgram is the first argument with which this test is the program of a provider.
const asProgram = "as-program"

// programs are two servers that let a program verify evidence. Config has more lines of the section bootstrap.
func programs(t *testing.T, config string, words ...string) (self string, replicas []*Replica) {
	self, err := os.Executable()
	orFatal(t, err)
	command, err := json.Marshal(append([]string{self, asProgram, "attest"}, words...))
	orFatal(t, err)
	config = fmt.Sprintf(`attestor: exec
  rateLimit: {perSecond: 1000, burst: 1000, perSource: {perSecond: 1000, burst: 1000}}
  exec: {provider: fake, command: %s, maxConcurrent: 4}
`, command) + config
	for n := range 2 {
		name := fmt.Sprintf("programs-%d-%s", n, strings.ToLower(t.Name()))
		replica, err := blue.AddReplica(t.Context(), name, WithConfig("attestor: aws\n", config))
		orFatal(t, err)
		t.Cleanup(func() {
			if err := errors.Join(replica.Stop(), replica.APIProxy.Close()); err != nil {
				t.Error(err)
			}
		})
		replicas = append(replicas, replica)
	}
	return self, replicas
}

// joinWithProgram runs the client of a machine until it ends.
func joinWithProgram(t *testing.T, self string, replica *Replica, name string) error {
	_, port, err := net.SplitHostPort(replica.Address)
	if err != nil {
		return err
	}
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), blue.Program, "client", "--authorizer=exec",
		"--collector-command="+strings.Join([]string{self, asProgram, "collect", name}, " "), "--credential=certificate",
		"--node-url=https://localhost:"+port, "--kubeapi-url="+blue.Server(), "--tls-client-ca="+blue.CAFile(),
		"--kubeconfig="+filepath.Join(dir, "kubelet.conf"), "--cert-dir="+filepath.Join(dir, "pki"), "--interval=500ms")
	command.Env = server.Environment()
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, output)
	}
	return nil
}

// TestTwentyMachinesJoinWithAProgram: each shows two rounds of evidence, and has one certificate for the key in it.
func TestTwentyMachinesJoinWithAProgram(t *testing.T) {
	self, replicas := programs(t, "", "rounds")
	var joining errgroup.Group
	for n := range atOnce {
		joining.Go(func() error {
			return joinWithProgram(t, self, replicas[n%len(replicas)], fmt.Sprintf("program-%d", n))
		})
	}
	orFatal(t, joining.Wait())
	for n := range atOnce {
		name := fmt.Sprintf("program-%d", n)
		entry, err := blue.Ledger.Get(t.Context(), "fake-"+name)
		orFatal(t, err)
		all := requestsFor(t, name)
		if len(all) != 1 || approve.PublicKey(all[0].Spec.Request) != entry.Spec.PublicKey {
			t.Errorf("%s: %d requests, the key of the evidence is %s", name, len(all), entry.Spec.PublicKey)
		}
	}
}

// TestStolenEvidenceForAProgram: what a thief copies from a machine gives no certificate for the thief's key.
func TestStolenEvidenceForAProgram(t *testing.T) {
	_, replicas := programs(t, "")
	i := &identityTokens{replicas: replicas}
	own, thiefs := newKey(t), newKey(t)
	show := func(replica *Replica, challenge, publicKey string, evidence fakeprovider.Evidence) Answer {
		text, err := json.Marshal(evidence)
		orFatal(t, err)
		body, err := json.Marshal(map[string]any{"challenge": challenge, "publicKey": publicKey, "evidence": json.RawMessage(text)})
		orFatal(t, err)
		answer, err := server.Post(t.Context(), i.client(t), "https://"+replica.Address+"/authorize/stolen-1", "application/json", body)
		orFatal(t, err)
		return Answer(answer)
	}
	challenge, key, thiefsKey := i.challenge(t), hashOf(t, own), hashOf(t, thiefs)
	evidence := fakeprovider.New("stolen-1", challenge, key)
	answer := show(replicas[0], challenge, key, evidence).parse(t)
	if !answer.Status.Allowed {
		t.Fatalf("%+v", answer)
	}
	t.Run("the same evidence for another key", func(t *testing.T) {
		for _, replica := range replicas {
			refused(t, show(replica, challenge, thiefsKey, evidence), http.StatusForbidden, "PublicKeyNotInEvidence")
		}
	})
	t.Run("the same evidence for a newer challenge", func(t *testing.T) {
		refused(t, show(replicas[1], i.challenge(t), key, evidence), http.StatusForbidden, "ChallengeInvalid")
	})
	t.Run("new evidence of the same machine for another key", func(t *testing.T) {
		challenge := i.challenge(t)
		again := show(replicas[1], challenge, thiefsKey, fakeprovider.New("stolen-1", challenge, thiefsKey))
		refused(t, again, http.StatusForbidden, bootstrap.PublicKeyChanged)
	})
	config := withToken(blue, answer.Status.Token)
	t.Run("the bootstrap token with another key", func(t *testing.T) {
		deniedWith(t, blue, config, clientRequest("stolen-1"), thiefs, approve.KeyNotAttested)
	})
	t.Run("the machine itself", func(t *testing.T) { issued(t, blue, config, clientRequest("stolen-1"), own) })
}
