package cli

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// startWebhook starts an authorization webhook for a script and writes its kubeconfig:
//
//	webhook CONFIG...
//
// It replaces $WORK in the configurations by the script's folder, because paths of kubeconfigs
// must be absolute.
func startWebhook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: webhook CONFIG...")
	}
	server := httptest.NewTLSServer(http.HandlerFunc(answerByVerb))
	ts.Defer(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs("webhook.kubeconfig"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: webhook
  cluster: {server: %q, certificate-authority-data: %s}
users: [{name: me}]
contexts: [{name: webhook, context: {cluster: webhook, user: me}}]
current-context: webhook
`, server.URL, base64.StdEncoding.EncodeToString(authority)), 0o600))
	for _, name := range args {
		text := strings.ReplaceAll(ts.ReadFile(name), "$WORK", ts.MkAbs("."))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// answerByVerb allows create, denies delete, and both allows and denies patch.
func answerByVerb(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Spec.ResourceAttributes == nil {
		http.Error(w, "not for us", http.StatusBadRequest)
		return
	}
	switch review.Spec.ResourceAttributes.Verb {
	case "create":
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "anybody may create"}
	case "delete":
		review.Status = authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "nobody may delete"}
	case "patch":
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true, Reason: "perhaps"}
	}
	reply(w, &review)
}
