package chain

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// hook is an authorization webhook over HTTPS that requires the token of its
// kubeconfig. The name of the requested object selects the answer:
//
//	allow, deny, none, both   what the status says
//	slow                      no answer before a caller with shortTimeout times out
//	garbage                   no SubjectAccessReview
//	500, 403                  this status
type hook struct {
	*httptest.Server
	kubeconfig string
	path       string
	silent     bool // gives no reasons
	// closed gets a value for each connection that ends, unless its buffer is full.
	closed chan struct{}

	mu    sync.Mutex
	asked []json.RawMessage
}

const hookToken = "a-token"

// shortTimeout is the timeout of callers that are to time out.
const shortTimeout = 20 * time.Millisecond

func newHook(t testing.TB) *hook {
	t.Helper()
	h := &hook{path: "/authorize", closed: make(chan struct{}, 1)}
	h.Server = httptest.NewUnstartedServer(h)
	h.EnableHTTP2 = true
	h.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			select {
			case h.closed <- struct{}{}:
			default:
			}
		}
	}
	h.StartTLS()
	t.Cleanup(h.Close)
	text := strings.Replace(
		kubeconfig(h.URL+"/authorize", "certificate-authority-data: "+base64.StdEncoding.EncodeToString(h.authority())),
		"- name: apiserver\n", "- name: apiserver\n  user: {token: "+hookToken+"}\n", 1)
	h.kubeconfig = filepath.Join(t.TempDir(), "webhook.kubeconfig")
	if err := os.WriteFile(h.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// authority returns the CA certificate of the webhook.
func (h *hook) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || json.Unmarshal(body, &review) != nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+hookToken || r.URL.Path != h.path {
		http.Error(w, "who is this?", http.StatusUnauthorized)
		return
	}
	h.mu.Lock()
	h.asked = append(h.asked, body)
	h.mu.Unlock()
	name := "none"
	if review.Spec.ResourceAttributes != nil {
		name = review.Spec.ResourceAttributes.Name
	}
	switch name {
	case "slow":
		// The client sends its timeout.
		if limit, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && limit <= shortTimeout {
			<-r.Context().Done()
			return
		}
	case "garbage":
		_, _ = w.Write([]byte("garbage"))
		return
	case "500":
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case "403":
		http.Error(w, "not you", http.StatusForbidden)
		return
	}
	review.Status.Allowed = name == "allow" || name == "both"
	review.Status.Denied = name == "deny" || name == "both"
	if !h.silent {
		review.Status.Reason = "the name\nis " + name
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&review)
}

// reviews returns the reviews that reached the webhook since the last call.
func (h *hook) reviews() []json.RawMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := h.asked
	h.asked = nil
	return asked
}

// hookOptions are the fields of a webhook's configuration that tests set.
type hookOptions struct {
	policy     string // default NoOpinion
	timeout    string // default 10s
	version    string // default v1
	cached     bool
	conditions []string
}

// yaml returns the entry of a webhook in a configuration.
func (h *hook) yaml(name string, o hookOptions) string {
	withDefault := func(value, other string) string {
		if value == "" {
			return other
		}
		return value
	}
	text := fmt.Sprintf(`- type: Webhook
  name: %s
  webhook:
    cacheAuthorizedRequests: %t
    cacheUnauthorizedRequests: %t
    timeout: %s
    subjectAccessReviewVersion: %s
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
`, name, o.cached, o.cached, withDefault(o.timeout, "10s"), withDefault(o.version, "v1"), withDefault(o.policy, "NoOpinion"), h.kubeconfig)
	if len(o.conditions) > 0 {
		text += "    matchConditions:\n"
	}
	for _, condition := range o.conditions {
		text += fmt.Sprintf("    - expression: %q\n", condition)
	}
	return text
}

// fastRetry retries once, immediately.
func fastRetry() wait.Backoff { return wait.Backoff{Duration: time.Microsecond, Factor: 1, Steps: 2} }

const configurationHeader = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"

// built returns the chain of a configuration with these authorizers.
func built(t testing.TB, parts Parts, authorizers ...string) Chain {
	t.Helper()
	c, err := Parse([]byte(configurationHeader + strings.Join(authorizers, "")))
	if err != nil {
		t.Fatal(err)
	}
	links, err := c.build(t.Context(), parts, fastRetry())
	if err != nil {
		t.Fatal(err)
	}
	return links
}
