package server

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	ledgerv1alpha1 "github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// originClient behaves as the client of kops' node-authorizer: HTTP/1.1 with a transport of its own,
// one POST with the output of its attestor, which is empty for alwaysallow, and only status 200 is
// accepted.
type originClient struct{ http *http.Client }

func newOriginClient(s *joinServer) *originClient {
	return &originClient{http: &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			TLSClientConfig: &tls.Config{
				RootCAs: pool(s.testListeners.server), Certificates: []tls.Certificate{*s.callers.client("node-authorizer-client")},
			},
		},
	}}
}

// register posts evidence and returns the status, and the token if it is 200.
func (c *originClient) register(t *testing.T, url, hostname string, evidence []byte) (status int, token string) {
	t.Helper()
	url = strings.TrimSuffix(url, "/authorize") + "/authorize/" + hostname
	response, err := c.http.Post(url, "application/json", bytes.NewReader(evidence))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, ""
	}
	var registration struct {
		Spec struct {
			NodeName, RemoteAddr string
			Request              []byte
		}
		Status struct {
			Allowed       bool
			Token, Reason string
		}
	}
	if err := json.Unmarshal(content, &registration); err != nil {
		t.Fatal(err)
	}
	spec, answer := registration.Spec, registration.Status
	if response.Proto != "HTTP/1.1" || spec.NodeName != hostname || spec.RemoteAddr == "" || !answer.Allowed || answer.Reason != "" {
		t.Errorf("answered %s %+v", response.Proto, spec)
	}
	return response.StatusCode, registration.Status.Token
}

// The test runs the protocol of kops' client for alwaysallow, from the request without a body to the
// certificate.
func TestAMachineOfTheOriginJoins(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, nil).ready()
	c := newOriginClient(s)
	status, token := c.register(t, at(s.listeners.bootstrap, "/authorize"), "worker-1", []byte{})
	if status != http.StatusOK || token == "" {
		t.Fatalf("answered %d: %s", status, s.log.String())
	}
	if _, again := c.register(t, at(s.listeners.bootstrap, ""), "worker-1", []byte{}); again != token {
		t.Error("a retry got another token")
	}
	s.request("csr-1", token, "worker-1")
	if got := s.decided("csr-1"); got != "Approved ClientCertificateApproved" {
		t.Fatalf("the machine's request: %s", got)
	}
	s.issue("csr-1")
	eventually(t, "the ledger has the certificate", func() bool {
		return s.phase("alwaysallow-worker-1") == ledgerv1alpha1.Certified
	})
	for _, name := range []string{"10.0.0.7", "167772167", "kubernetes"} {
		if status, _ := c.register(t, at(s.listeners.bootstrap, ""), name, []byte{}); status != http.StatusForbidden {
			t.Errorf("%s: answered %d", name, status)
		}
	}
	s.checkNoToken(token)
}
