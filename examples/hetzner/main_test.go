package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli"
)

// cloud is a fake of the API and of the metadata service of server 42.
func cloud(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/metadata/instance-id", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "42") })
	mux.HandleFunc("/metadata/hostname", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "worker-42") })
	mux.HandleFunc("GET /v1/servers/{id}", func(w http.ResponseWriter, r *http.Request) {
		states := map[string]string{"42": "running", "43": "running", "44": "off"}
		id := r.PathValue("id")
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			http.Error(w, `{"error":{"code":"unauthorized"}}`, http.StatusUnauthorized)
		case id == "50":
			http.Error(w, `{"error":{"code":"rate_limit_exceeded"}}`, http.StatusTooManyRequests)
		case states[id] == "":
			http.Error(w, `{"error":{"code":"not_found"}}`, http.StatusNotFound)
		default:
			fmt.Fprintf(w, `{"server":{"id":%s,"name":"worker-%s","status":%q,"public_net":{"ipv4":{"ip":"192.0.2.%s"},
				"ipv6":{"ip":"2001:db8:%s::/64"}},"private_net":[{"network":1,"ip":"10.0.0.%s"}]}}`, id, id, states[id], id, id, id)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HCLOUD_TOKEN_FILE", token)
	return server
}

func request(t *testing.T, evidence, source string) []byte {
	text, err := json.Marshal(v1alpha1.AttestRequest{
		TypeMeta: header(v1alpha1.AttestRequestKind), NodeName: "worker-42", RemoteAddress: source, Challenge: "c",
		Evidence: json.RawMessage(evidence),
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestServersOfTheProject: "" is a server, a code a refusal, and everything else no decision.
func TestServersOfTheProject(t *testing.T) {
	url := cloud(t).URL + "/v1"
	for _, test := range []struct{ rule, evidence, source, want string }{
		{"its private address", `{"instanceID":42}`, "10.0.0.42", `"identity":{"instanceID":"42","nodeName":"worker-42"`},
		{"its public address", `{"instanceID":42}`, "192.0.2.42", `"addresses":["192.0.2.42","10.0.0.42"]`},
		{"its network of IPv6", `{"instanceID":42}`, "2001:db8:42::1", `"identity"`},
		{"the address of another server", `{"instanceID":42}`, "10.0.0.43", `"WrongSourceAddress"`},
		{"a server that is off", `{"instanceID":44}`, "10.0.0.44", `"InstanceNotRunning"`},
		{"a server of another project", `{"instanceID":45}`, "10.0.0.45", `"InstanceNotFound"`},
		{"no id", `{}`, "10.0.0.42", `"EvidenceMalformed"`},
		{"a path", `{"instanceID":"42/actions"}`, "10.0.0.42", `"EvidenceMalformed"`},
		{"the rate limit of the API", `{"instanceID":50}`, "10.0.0.50", "429 Too Many Requests"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var out bytes.Buffer
			if err := run([]string{"attest", url}, bytes.NewReader(request(t, test.evidence, test.source)), &out); err != nil {
				fmt.Fprint(&out, err)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("%s, want %s", out.String(), test.want)
			}
		})
	}
}

// TestConformance puts the cases of attest test-provider to both halves.
func TestConformance(t *testing.T) {
	url := cloud(t).URL
	program := filepath.Join(t.TempDir(), "hetzner")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, text)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, request(t, `{"instanceID":43}`, "10.0.0.43"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	status := cli.Main([]string{
		"node-authorizer", "attest", "test-provider", "--command", program + " attest " + url + "/v1",
		"--collector-command", program + " collect " + url + "/metadata", "--other-evidence", other, "--remote-address", "10.0.0.42",
		"--environment", "HCLOUD_TOKEN_FILE",
	}, strings.NewReader(""), &out, &errOut)
	if status != 0 {
		t.Errorf("status %d\n%s%s", status, out.String(), errOut.String())
	}
	for _, want := range []string{"NotBound   another challenge", "Passed     another source address", "Passed     a bit of the evidence"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
