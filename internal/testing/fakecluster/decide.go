package fakecluster

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const audienceVerb = "request-serviceaccounts-token-audience"

// request is what an authorizer is asked.
type request struct {
	verb, resource, name string
}

func (r request) String() string { return r.verb + " " + r.resource }

func (c *Cluster) review(w http.ResponseWriter, r *http.Request) {
	if c.lacks("create subjectaccessreviews") {
		c.refuse(w, http.StatusForbidden, `User "ada" cannot create resource "subjectaccessreviews"`, nil)
		return
	}
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		c.refuse(w, http.StatusBadRequest, err.Error(), nil)
		return
	}
	what := request{}
	switch spec := review.Spec; {
	case spec.ResourceAttributes != nil:
		what = request{spec.ResourceAttributes.Verb, spec.ResourceAttributes.Resource, spec.ResourceAttributes.Name}
		if sub := spec.ResourceAttributes.Subresource; sub != "" {
			what.resource += "/" + sub
		}
		if what.verb == audienceVerb { // the resource is an audience
			what.resource = "*"
		}
	case spec.NonResourceAttributes != nil:
		what = request{spec.NonResourceAttributes.Verb, spec.NonResourceAttributes.Path, ""}
	}
	review.Status.Allowed, review.Status.Reason = c.authorize(user{review.Spec.User, review.Spec.Groups}, what)
	if c.Silent {
		review.Status.Reason = ""
	}
	if !review.Status.Allowed && c.AuthorizerFails {
		review.Status.EvaluationError = "the webhook timed out"
	}
	review.Kind, review.APIVersion = "SubjectAccessReview", authorizationv1.SchemeGroupVersion.String()
	reply(w, http.StatusCreated, review)
}

// authorize asks AlwaysAllow, the Node authorizer and RBAC.
func (c *Cluster) authorize(u user, r request) (bool, string) {
	if c.AlwaysAllow {
		return true, ""
	}
	reason := ""
	if node, ok := u.node(); ok && !c.WithoutNodeAuthorizer {
		allowed := false
		if allowed, reason = c.authorizeNode(node, r); allowed {
			return true, ""
		}
	}
	if slices.Contains(u.groups, "system:nodes") && slices.Contains(c.Group, r.String()) {
		return true, `RBAC: allowed by ClusterRoleBinding "old" of ClusterRole "nodes" to Group "system:nodes"`
	}
	if u.name == "system:anonymous" && slices.Contains(c.AnonymousMay, r.String()) {
		return true, `RBAC: allowed by ClusterRoleBinding "open" of ClusterRole "open" to User "system:anonymous"`
	}
	return false, reason
}

func (c *Cluster) authorizeNode(node string, r request) (bool, string) {
	switch r.String() {
	case "get nodes":
		return r.name == node || c.WithoutSelectors, fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", node, r.name)
	case "list pods":
		return c.WithoutSelectors, "can only list/watch pods with spec.nodeName field selector"
	case "create nodes", "create pods", "create certificatesigningrequests", "create resourceslices":
		return true, ""
	case "create serviceaccounts/token":
		return node == "worker-1", ""
	case "get secrets":
		return false, fmt.Sprintf("no relationship found between node '%s' and this object", node)
	}
	return false, ""
}

// create decides about a write in the order of kube-apiserver: impersonation, authorization, dryRun,
// NodeRestriction, webhooks, validation.
func (c *Cluster) create(w http.ResponseWriter, r *http.Request) {
	u := user{r.Header.Get("Impersonate-User"), r.Header.Values("Impersonate-Group")}
	resource, name := kindOf(r.URL.Path)
	if c.Constrained && len(u.groups) == 0 {
		u.groups = []string{"system:nodes"}
	} else if u.name == "" || c.lacks("impersonate") {
		c.refuse(w, http.StatusForbidden, fmt.Sprintf(`users %q is forbidden: User "ada" cannot impersonate resource "users"`, u.name), nil)
		return
	}
	if allowed, _ := c.authorize(u, request{"create", resource, name}); !allowed {
		c.refuse(w, http.StatusForbidden, fmt.Sprintf("%s is forbidden: User %q cannot create resource", resource, u.name), nil)
		return
	}
	if d := dryRun(r.URL.Query()); d != "" && d != metav1.DryRunAll {
		c.refuse(w, http.StatusUnprocessableEntity, `CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value`,
			&metav1.StatusDetails{Kind: "CreateOptions", Group: "meta.k8s.io"})
		return
	}
	node, _ := u.node()
	stored, refusal := c.admit(r, resource, node)
	switch {
	case refusal != "":
		c.refuse(w, http.StatusForbidden, refusal, nil)
		return
	case c.WithoutDryRuns:
		c.refuse(w, http.StatusBadRequest, `admission webhook "old.example.com" does not support dry run`, nil)
		return
	case c.Webhook != "" && (strings.HasPrefix(resource, "pods") || !strings.HasPrefix(c.Webhook, "pods: ")):
		c.refuse(w, http.StatusForbidden, strings.TrimPrefix(c.Webhook, "pods: "), nil)
		return
	case resource == "serviceaccounts/token" && c.IssuesTokens:
		reply(w, http.StatusCreated, authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: Issued}})
		return
	case resource == "serviceaccounts/token":
		c.refuse(w, http.StatusUnprocessableEntity, `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds`,
			&metav1.StatusDetails{Kind: "TokenRequest", Causes: []metav1.StatusCause{{Field: "spec.expirationSeconds"}}})
		return
	}
	if dryRun(r.URL.Query()) == "" || c.IgnoresDryRun {
		c.stored = append(c.stored, r.URL.Path+"/"+stored)
	}
	reply(w, http.StatusCreated, metav1.PartialObjectMetadata{})
}

// admit returns the name of the object, and the message with which NodeRestriction refuses it.
func (c *Cluster) admit(r *http.Request, resource, node string) (name, refusal string) {
	switch resource {
	case "nodes":
		var object corev1.Node
		_ = json.NewDecoder(r.Body).Decode(&object)
		name, refusal = object.Name, admitNode(&object, node)
	case "pods":
		var object corev1.Pod
		_ = json.NewDecoder(r.Body).Decode(&object)
		name = object.Name
		refusal = fmt.Sprintf(
			`pods %q is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node %q can only create mirror pods`,
			name, node)
	case "certificatesigningrequests":
		var object certificatesv1.CertificateSigningRequest
		_ = json.NewDecoder(r.Body).Decode(&object)
		name, refusal = object.Name, c.admitRequest(&object, node)
	case "serviceaccounts/token":
		var object authenticationv1.TokenRequest
		_ = json.NewDecoder(r.Body).Decode(&object)
		refusal = c.admitToken(&object, node)
	}
	if c.WithoutNodeRestriction {
		refusal = ""
	}
	return name, refusal
}

func admitNode(object *corev1.Node, node string) string {
	if object.Name != node {
		return fmt.Sprintf("nodes %q is forbidden: node %q is not allowed to modify node %q", object.Name, node, object.Name)
	}
	for label := range object.Labels {
		return fmt.Sprintf("nodes %q is forbidden: node %q is not allowed to set the following labels: %s", node, node, label)
	}
	return ""
}

func (c *Cluster) admitRequest(object *certificatesv1.CertificateSigningRequest, node string) string {
	block, _ := pem.Decode(object.Spec.Request)
	if block == nil {
		return "unable to parse csr"
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || csr.Subject.CommonName == "system:node:"+node || c.InsecureRequests {
		return ""
	}
	return fmt.Sprintf("certificatesigningrequests %q is forbidden: can only create a node CSR with CN=system:node:%s", object.Name, node)
}

func (c *Cluster) admitToken(object *authenticationv1.TokenRequest, node string) string {
	switch {
	case object.Spec.BoundObjectRef == nil:
		return `serviceaccounts "web" is forbidden: node requested token not bound to a pod`
	case len(object.Spec.Audiences) > 0 && !c.WithoutAudiences:
		if allowed, _ := c.authorize(user{"system:node:" + node, []string{"system:nodes"}},
			request{audienceVerb, "*", ""}); allowed {
			return ""
		}
		return fmt.Sprintf(
			`serviceaccounts "web" is forbidden: system:node:%s is not authorized to request tokens for audience %q`,
			node, object.Spec.Audiences[0])
	}
	return ""
}
