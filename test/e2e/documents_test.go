package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// aWrite is a write of a mirror pod by the kubelet of web-1.
const aWrite = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE",
	"kind": {"version": "v1", "kind": "Pod"}, "resource": {"version": "v1", "resource": "pods"}, "namespace": "shop", "name": "a",
	"userInfo": {"username": "system:node:web-1", "groups": ["system:nodes"]},
	"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "web-1"}}}}`

// selecting is a review of a list with a selector.
func selecting(selector, value string) string {
	return strings.Replace(aboutAnotherNode, `"verb": "get"`, fmt.Sprintf(`"verb": "list", %q: %s`, selector, value), 1)
}

// attackDocument is a document that could end the server or exhaust it.
type attackDocument struct {
	name, path, body string
	status           int
}

func attackDocuments() []attackDocument {
	const large = 6 << 20
	var all []attackDocument
	add := func(status int, path, name, body string) { all = append(all, attackDocument{name, path, body, status}) }
	for _, selector := range []string{"fieldSelector", "labelSelector"} {
		for value, status := range map[string]int{
			`{"requirements": null}`: http.StatusOK, `{}`: http.StatusOK, `{"requirements": [null]}`: http.StatusOK, `null`: http.StatusOK,
			`{"requirements": "a"}`: http.StatusBadRequest, `{"requirements": 5}`: http.StatusBadRequest,
			`{"requirements": {}}`: http.StatusBadRequest, `{"requirements": [[]]}`: http.StatusBadRequest, `7`: http.StatusBadRequest,
		} {
			add(status, "/authorize", selector+" "+value, selecting(selector, value))
		}
		add(http.StatusOK, "/authorize", selector+" with millions of empty requirements",
			selecting(selector, `{"requirements": [`+strings.Repeat("{},", large/3)+`{}]}`))
	}
	within := strings.Replace(aWrite, `"spec": {`, `"spec": {%s, `, 1)
	for path, valid := range map[string]string{"/authorize": aboutAnotherNode, "/admit": aWrite, "/mutate": aWrite} {
		add(http.StatusBadRequest, path, "nothing", "")
		add(http.StatusBadRequest, path, "null", "null")
		add(http.StatusBadRequest, path, "a list", "[]")
		add(http.StatusBadRequest, path, "a deep document", strings.Repeat(`{"a":`, 1_000_000))
		add(http.StatusBadRequest, path, "an unknown version", strings.Replace(valid, "k8s.io/v1", "k8s.io/v9", 1))
		add(http.StatusBadRequest, path, "two documents", valid+valid)
	}
	add(http.StatusBadRequest, "/authorize", "a name twice", strings.Replace(aboutAnotherNode, `"user"`, `"user": "a", "user"`, 1))
	add(http.StatusBadRequest, "/admit", "a huge number", fmt.Sprintf(within, `"priority": `+strings.Repeat("9", large)))
	add(http.StatusBadRequest, "/admit", "millions of owners", strings.Replace(aWrite, `"metadata": {`,
		`"metadata": {"ownerReferences": [`+strings.Repeat("{},", large/3)+`{}], `, 1))
	add(http.StatusOK, "/admit", "millions of containers", fmt.Sprintf(within, `"containers": [`+strings.Repeat("{},", large/3)+`{}]`))
	return all
}

// TestNoDocumentEndsTheServer: with the failure policy NoOpinion, an end of the server lifts its refusals. The
// documents come from a caller that is allowed, and from a kubelet, which the handshake refuses.
func TestNoDocumentEndsTheServer(t *testing.T) {
	kubelet, apiServer := httpClient(t, ours.nodeConfig(t, "web-1")), asAPIServer(t)
	for _, replica := range oursReplicas.Replicas {
		started := startTime(t, replica.Server)
		post := func(client *http.Client, path string, body []byte) server.Answer {
			answer, err := server.Post(t.Context(), client, "https://"+replica.Address+path, "application/json", body)
			if err != nil {
				t.Fatalf("%s gets no answer to %.300s: %v", path, body, err)
			}
			return answer
		}
		for _, d := range attackDocuments() {
			if answer := post(apiServer, d.path, []byte(d.body)); answer.Status != d.status {
				t.Errorf("%s, %s: %d %.300s", d.path, d.name, answer.Status, answer.Body)
			}
			answer, err := server.Post(t.Context(), kubelet, "https://"+replica.Address+d.path, "application/json", []byte(d.body))
			if err == nil {
				t.Errorf("%s, %s by a kubelet: %d %.300s; want a refused handshake", d.path, d.name, answer.Status, answer.Body)
			}
		}
		odd := func(path, base string, places []oddjson.Place) {
			for name, body := range oddjson.Documents(base, places) {
				if s := post(apiServer, path, body).Status; s != http.StatusOK && s != http.StatusBadRequest {
					t.Errorf("%s, %s: %d", path, name, s)
				}
			}
		}
		odd("/authorize", aboutAnotherNode, oddjson.Places(authorizationv1.SubjectAccessReview{}))
		beta := strings.Replace(aboutAnotherNode, "k8s.io/v1", "k8s.io/v1beta1", 1)
		odd("/authorize", beta, oddjson.Places(authorizationv1beta1.SubjectAccessReview{}))
		for _, path := range []string{"/admit", "/mutate"} {
			odd(path, aWrite, oddjson.Places(admissionv1.AdmissionReview{}))
			odd(path, aWrite, oddjson.Below(oddjson.Places(corev1.Pod{}.ObjectMeta), "request", "object", "metadata"))
		}
		if now := startTime(t, replica.Server); now != started {
			t.Errorf("the server has ended: it was started at %s, now at %s", started, now)
		}
	}
	_, err := ours.as(t, "web-1").CoreV1().Secrets("payments").Get(t.Context(), "card-processor", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a node reads the secret of another one: %v", err)
	}
}

var startTimeMetric = regexp.MustCompile(`(?m)^process_start_time_seconds (.*)$`)

// startTime returns when a server was started.
func startTime(t *testing.T, s *server.Server) string {
	t.Helper()
	metrics, err := s.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := startTimeMetric.FindStringSubmatch(metrics)
	if found == nil {
		t.Fatal("the metrics have no time of start")
	}
	return found[1]
}
