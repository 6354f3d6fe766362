// Package fakecluster is a fake API server for tests of probes. Each protection of nodes can be
// switched off. It decides about the few requests that probes send as kube-apiserver does, with the
// same messages, and stores nothing unless it ignores dryRun.
package fakecluster

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Token is the bearer token of the only user.
	Token = "probes"
	// Issued is the token that is issued with IssuesTokens.
	Issued = "issued-to-nobody"
)

// Cluster is the configuration of the fake. The zero value has all protections.
type Cluster struct {
	// WithoutNodeAuthorizer, WithoutNodeRestriction and so on switch a protection off.
	WithoutNodeAuthorizer, WithoutNodeRestriction, WithoutSelectors, WithoutAudiences, InsecureRequests, AlwaysAllow bool
	// Group are rights that RBAC gives the group system:nodes, such as "get secrets". AnonymousMay
	// are the rights of the user system:anonymous.
	Group, AnonymousMay []string
	// Anonymous is how requests without a credential are authenticated: "" as system:anonymous,
	// "off" not at all, "health" only for health, "proxy" by a page to log in.
	Anonymous string
	// Lacks are rights that the user does not have, such as "create subjectaccessreviews".
	Lacks []string
	// Constrained lets a user who lacks "impersonate" impersonate nodes, whose groups the user may not name.
	Constrained bool
	// Webhook is the message with which a webhook refuses writes that NodeRestriction allows; of pods
	// only, if it begins with "pods: ".
	Webhook string
	// WithoutDryRuns has a webhook that does not support dry runs.
	WithoutDryRuns bool
	// Failing are parts of paths that are answered with 500.
	Failing []string
	// DropsQuery stores what is sent, because something drops the query.
	DropsQuery bool
	// IgnoresDryRun stores what is sent with dryRun=All.
	IgnoresDryRun bool
	// IssuesTokens issues tokens of any expiration.
	IssuesTokens bool
	// NodesExist answers that each node exists.
	NodesExist bool
	// NoPods has no pod with a token.
	NoPods bool
	// AuthorizerFails adds an error to each refusal.
	AuthorizerFails bool
	// Silent gives no reasons and no messages.
	Silent bool

	mu sync.Mutex
	// requests lists what was sent: "METHOD PATH user". stored has the paths of objects.
	requests, stored []string
}

// Stored returns what was stored.
func (c *Cluster) Stored() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.stored)
}

// Requests returns the requests in order: method, path and impersonated user.
func (c *Cluster) Requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

type user struct {
	name   string
	groups []string
}

func (u user) node() (string, bool) {
	name, ok := strings.CutPrefix(u.name, "system:node:")
	return name, ok && slices.Contains(u.groups, "system:nodes")
}

// ServeHTTP implements http.Handler.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Impersonate-User")))
	if slices.ContainsFunc(c.Failing, func(part string) bool { return strings.Contains(r.URL.Path, part) }) {
		c.refuse(w, http.StatusInternalServerError, "etcd is gone", nil)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+Token {
		c.withoutCredential(w, r)
		return
	}
	if c.DropsQuery {
		r.URL.RawQuery = ""
	}
	switch path := r.URL.Path; {
	case path == "/version":
		reply(w, http.StatusOK, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.0"})
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		reply(w, http.StatusCreated, authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectAccessReview"},
			Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: !c.lacks("impersonate")},
		})
	case strings.HasSuffix(path, "/subjectaccessreviews"):
		c.review(w, r)
	case r.Method == http.MethodPost:
		c.create(w, r)
	case path == "/api/v1/pods":
		c.pods(w)
	default:
		c.get(w, path)
	}
}

func (c *Cluster) withoutCredential(w http.ResponseWriter, r *http.Request) {
	health := r.URL.Path == "/version" || r.URL.Path == "/healthz"
	switch {
	case c.Anonymous == "proxy":
		_, _ = io.WriteString(w, "<html>log in</html>")
	case c.Anonymous == "off", c.Anonymous == "health" && !health:
		c.refuse(w, http.StatusUnauthorized, "Unauthorized", nil)
	case r.URL.Path == "/version":
		reply(w, http.StatusOK, map[string]string{"gitVersion": "v1.37.0"})
	case r.URL.Path == "/healthz":
		_, _ = io.WriteString(w, "ok")
	case slices.Contains(c.AnonymousMay, "get /api"):
		reply(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	default:
		c.refuse(w, http.StatusForbidden, `forbidden: User "system:anonymous" cannot get path "/api"`, nil)
	}
}

func (c *Cluster) lacks(right string) bool { return slices.Contains(c.Lacks, right) }

func (c *Cluster) get(w http.ResponseWriter, path string) {
	switch {
	case strings.Contains(path, "/nodes/") && c.lacks("get nodes"):
		c.refuse(w, http.StatusForbidden, `nodes is forbidden: User "ada" cannot get resource "nodes"`, nil)
	case strings.Contains(path, "/nodes/") && c.NodesExist, slices.Contains(c.stored, path):
		reply(w, http.StatusOK, metav1.PartialObjectMetadata{})
	default:
		c.refuse(w, http.StatusNotFound, path+" not found", nil)
	}
}

func (c *Cluster) pods(w http.ResponseWriter) {
	if c.lacks("list pods") {
		c.refuse(w, http.StatusForbidden, `pods is forbidden: User "ada" cannot list resource "pods"`, nil)
		return
	}
	list := `{"kind": "PodList", "apiVersion": "v1", "items": []}`
	if !c.NoPods {
		list = `{"kind": "PodList", "apiVersion": "v1", "items": [
			{"metadata": {"name": "static", "namespace": "shop"}, "spec": {"nodeName": "worker-1"}},
			{"metadata": {"name": "web", "namespace": "shop", "uid": "11111111"}, "spec": {
				"nodeName": "worker-1", "serviceAccountName": "web",
				"volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}}]}`
	}
	reply(w, http.StatusOK, json.RawMessage(list))
}

// refuse answers with a Status.
func (c *Cluster) refuse(w http.ResponseWriter, code int, message string, details *metav1.StatusDetails) {
	if c.Silent {
		message = ""
	}
	reply(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Message: message,
		Details: details,
	})
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// kindOf returns the resource of a path with its subresource, and the name in the path.
func kindOf(path string) (resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if i := slices.Index(parts, "serviceaccounts"); i >= 0 && len(parts) == i+3 {
		return "serviceaccounts/" + parts[i+2], parts[i+1]
	}
	return parts[len(parts)-1], ""
}

func dryRun(query url.Values) string { return query.Get("dryRun") }
