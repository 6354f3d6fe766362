package machines

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestDaemonSetOfTheOrigin runs the server and the client like the DaemonSet and the
// units of kops: with these flags, and with nothing else but the address of
// kube-apiserver, which a pod has anyway.
func TestDaemonSetOfTheOrigin(t *testing.T) {
	replica := origin(t, "origin-flags", func(r *Replica) (arguments, env []string) {
		return []string{
			"server",
			"--authorizer=aws",
			"--cluster-name=" + Name,
			"--cluster-tag=KubernetesCluster",
			"--listen=" + r.Address,
			"--tls-cert=" + r.File("tls.crt"),
			"--tls-private-key=" + r.File("tls.key"),
			"--tls-client-ca=" + r.File("ca.crt"),
			"--client-common-name=node-authorizer-client",
			// The fake does not have AWS's keys.
			"--feature=verify-signature=false",
			"--feature=verify-registration",
			"--feature=verify-ip=true",
			"--feature=verify-iam-profile",
			"--token-ttl=5m",
			"--authorization-timeout=15s",
			"--certificate-ttl=1h",
			"--metrics-address=" + r.MetricsAddress,
			"--kubeconfig=" + r.Kubeconfig(),
		}, nil
	})
	t.Run("a machine joins with the unit's flags", func(t *testing.T) {
		m := launch(t, blue)
		certificate, key := clientFiles(t, m, "node-authorizer-client")
		outcome, err := m.Run(t.Context(), nil,
			"client",
			"--authorizer=aws",
			"--node-url=https://"+replica.Address,
			"--kubeapi-url="+blue.Server(),
			"--kubeconfig="+m.Kubeconfig(),
			"--tls-client-ca="+blue.CAFile(),
			"--tls-cert="+certificate,
			"--tls-private-key="+key,
			"--interval=3s",
			"--timeout=30s",
			// Here the client connects from 127.0.0.1, which is not its address.
		)
		orFatal(t, err)
		if outcome.Status != 1 || !strings.Contains(outcome.Output, "WrongSourceAddress") {
			t.Errorf("from another address: %d %s", outcome.Status, outcome.Output)
		}
		outcome = joinThrough(t, m, replica, "--tls-cert="+certificate, "--tls-private-key="+key)
		if outcome.Status != 0 {
			t.Fatalf("the client ended with status %d: %s", outcome.Status, outcome.Output)
		}
		joinedOnce(t, m)
	})
	t.Run("a machine with another certificate, or none, is refused", func(t *testing.T) {
		m := launch(t, blue)
		for name, test := range map[string]struct {
			flags []string
			code  verdict.Code
		}{
			"none":           {nil, bootstrap.ClientCertificateRequired},
			"another name's": {filesAsFlags(clientFiles(t, m, "somebody-else")), bootstrap.ClientNameNotAllowed},
		} {
			t.Run(name, func(t *testing.T) {
				if outcome := joinThrough(t, m, replica, test.flags...); outcome.Status != 1 ||
					!strings.Contains(outcome.Output, string(test.code)) {
					t.Errorf("the client ended with status %d: %s", outcome.Status, outcome.Output)
				}
			})
		}
		nothingWritten(t, blue, m)
	})
}

// TestEnvironmentOfTheOrigin is the same with environment variables.
func TestEnvironmentOfTheOrigin(t *testing.T) {
	replica := origin(t, "origin-environment", func(r *Replica) (arguments, env []string) {
		return []string{"server", "--kubeconfig=" + r.Kubeconfig()}, []string{
			"AUTHORIZER=alwaysallow",
			"CLUSTER_NAME=" + Name,
			"CLUSTER_TAG=KubernetesCluster",
			"LISTEN=" + r.Address,
			"TLS_CERT=" + r.File("tls.crt"),
			"TLS_PRIVATE_KEY=" + r.File("tls.key"),
			"TOKEN_TTL=5m",
			"AUTHORIZATION_TIMEOUT=15s",
			"CERTIFICATE_TTL=1h",
			"METRICS_ADDRESS=" + r.MetricsAddress,
		}
	})
	m := launch(t, blue)
	outcome, err := m.Run(t.Context(), []string{
		"AUTHORIZER=alwaysallow",
		"NODE_AUTHORIZER_URL=https://" + replica.Address,
		"KUBEAPI_URL=" + blue.Server(),
		"KUBECONFIG_BOOTSTRAP=" + m.Kubeconfig(),
		"TLS_CLIENT_CA=" + blue.CAFile(),
		"INTERVAL=3s",
		"TIMEOUT=30s",
	}, "client", "--node-name=believed-1")
	orFatal(t, err)
	if outcome.Status != 0 {
		t.Fatalf("the client ended with status %d: %s", outcome.Status, outcome.Output)
	}
	given, err := m.token()
	orFatal(t, err)
	issued(t, blue, withToken(blue, given), clientRequest("believed-1"), newKey(t))
	t.Run("it keeps the ledger and binds the name", func(t *testing.T) {
		entry, err := blue.Ledger.Get(t.Context(), "alwaysallow-believed-1")
		orFatal(t, err)
		if entry.Spec.NodeName != "believed-1" || entry.Spec.Provider != "alwaysallow" {
			t.Errorf("the entry is %+v", entry.Spec)
		}
		answer := ask(t, m, replica, "believed-1", []byte(`{}`))
		if answer.parse(t).Status.Allowed {
			t.Error("a name was given twice")
		}
	})
	t.Run("a machine of the origin, without a body", func(t *testing.T) {
		m := launch(t, blue)
		answer := ask(t, m, replica, "believed-2", nil)
		given := answer.parse(t).Status
		if answer.Status != http.StatusOK || !given.Allowed {
			t.Fatalf("answered %d %s", answer.Status, answer.Body)
		}
		issued(t, blue, withToken(blue, given.Token), clientRequest("believed-2"), newKey(t))
	})
	t.Run("names that can be read as addresses are refused", func(t *testing.T) {
		for _, name := range []string{"10.0.0.7", "10.7", "167772167"} {
			refused(t, ask(t, launch(t, blue), replica, name, nil), http.StatusForbidden, attest.ReservedName)
		}
	})
	t.Run("it warns", func(t *testing.T) {
		text, err := replica.Log()
		orFatal(t, err)
		if !strings.Contains(text, "alwaysallow") {
			t.Errorf("the log has no warning about the attestor:\n%s", text)
		}
	})
}

// TestAMachineAsksByItsHostname: the original client does. The token is for the name in
// the evidence, and a certificate for the short name is denied.
func TestAMachineAsksByItsHostname(t *testing.T) {
	m := launch(t, blue)
	short, _, _ := strings.Cut(m.NodeName(), ".")
	if short == m.NodeName() {
		t.Fatalf("%s has no short form", short)
	}
	answer := ask(t, m, blue.Replicas[0], short, evidence(t, m))
	given := answer.parse(t).Status
	if answer.Status != http.StatusOK || !given.Allowed {
		t.Fatalf("answered %d %s", answer.Status, answer.Body)
	}
	denied(t, blue, withToken(blue, given.Token), clientRequest(short), approve.WrongNodeName)
	issued(t, blue, withToken(blue, given.Token), clientRequest(m.NodeName()), newKey(t))
}

// TestFiftyRequestsOfOneMachine: all requests get the same token.
func TestFiftyRequestsOfOneMachine(t *testing.T) {
	replica, err := blue.AddReplica(t.Context(), "fifty", WithConfig(
		"attestor: aws\n", "attestor: aws\n  rateLimit: {perSecond: 1000, burst: 1000, perSource: {perSecond: 1000, burst: 1000}}\n",
	))
	orFatal(t, err)
	t.Cleanup(func() { orFatal(t, errors.Join(replica.Stop(), replica.APIProxy.Close())) })
	m := launch(t, blue)
	body := evidence(t, m)
	answers := make([]Answer, 50)
	var running sync.WaitGroup
	for i := range answers {
		running.Go(func() {
			var err error
			if answers[i], err = m.Ask(t.Context(), replica, m.NodeName(), body); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if t.Failed() {
		return
	}
	first := answers[0].parse(t).Status.Token
	for i, answer := range answers {
		if given := answer.parse(t).Status; answer.Status != http.StatusOK || given.Token != first {
			t.Errorf("request %d: answered %d %s", i, answer.Status, given.Reason)
		}
	}
}

// TestAnswersOfTheOrigin compares every field of an answer.
func TestAnswersOfTheOrigin(t *testing.T) {
	m := launch(t, blue)
	body := evidence(t, m)
	answer := ask(t, m, blue.Replicas[0], m.NodeName(), body)
	fields := func(of map[string]any) []string {
		var names []string
		for name := range of {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	t.Run("allowed", func(t *testing.T) {
		var got map[string]map[string]any
		orFatal(t, json.Unmarshal([]byte(answer.Body), &got))
		spec, status := got["Spec"], got["Status"]
		if len(got) != 2 || !slices.Equal(fields(spec), []string{"NodeName", "RemoteAddr", "Request"}) ||
			!slices.Equal(fields(status), []string{"Allowed", "Reason", "Token"}) {
			t.Fatalf("the fields are %v %v", fields(spec), fields(status))
		}
		given, err := base64.StdEncoding.DecodeString(spec["Request"].(string))
		orFatal(t, err)
		if answer.Status != http.StatusOK || spec["NodeName"] != m.NodeName() || spec["RemoteAddr"] != m.Address.String() ||
			string(given) != string(body) || status["Allowed"] != true || status["Reason"] != "" {
			t.Errorf("answered %d, spec %v", answer.Status, spec)
		}
	})
	t.Run("refused", func(t *testing.T) {
		answer := ask(t, m, blue.Replicas[0], "another", body)
		var got map[string]map[string]any
		orFatal(t, json.Unmarshal([]byte(answer.Body), &got))
		status := got["Status"]
		if answer.Status != http.StatusForbidden || !slices.Equal(fields(status), []string{"Allowed", "Reason", "Token"}) ||
			status["Allowed"] != false || status["Token"] != "" {
			t.Errorf("answered %d %v", answer.Status, status)
		}
	})
	t.Run("health", func(t *testing.T) {
		response, err := blue.Replicas[0].Get(t.Context(), "/health")
		orFatal(t, err)
		if response.Status != http.StatusOK || response.Body != "OK" || response.Header.Get("Node-Authorizer-Version") == "" {
			t.Errorf("answered %d %q, version %q", response.Status, response.Body, response.Header.Get("Node-Authorizer-Version"))
		}
	})
}

// origin starts a server with flags and variables, without a config file.
func origin(t *testing.T, name string, how func(*Replica) (arguments, env []string)) *Replica {
	t.Helper()
	replica, err := blue.AddReplica(t.Context(), name, func(r *Replica) error {
		arguments, env := how(r)
		return WithArguments(arguments, env)(r)
	})
	orFatal(t, err)
	t.Cleanup(func() {
		orFatal(t, replica.Stop())
		orFatal(t, replica.APIProxy.Close())
	})
	return replica
}

// joinThrough runs the machine's client against one server, from the machine's
// address.
func joinThrough(t *testing.T, m *Machine, replica *Replica, flags ...string) Outcome {
	t.Helper()
	url, closeWire, err := m.through(replica)
	orFatal(t, err)
	defer func() { orFatal(t, closeWire()) }()
	outcome, err := m.Client(t.Context(), append([]string{"--node-url=" + url, "--timeout=5s"}, flags...)...)
	orFatal(t, err)
	return outcome
}

func clientFiles(t *testing.T, m *Machine, name string) (certificate, key string) {
	t.Helper()
	certificate, key, err := blue.ClientCertificate(m.Instance.ID+"-"+name, name)
	orFatal(t, err)
	return certificate, key
}

func filesAsFlags(certificate, key string) []string {
	return []string{"--tls-cert=" + certificate, "--tls-private-key=" + key}
}
