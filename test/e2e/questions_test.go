package e2e

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// question is a request of a node, in the terms of both sides.
type question struct {
	node, verb, group, resource, subresource, namespace, name, nodeNameSelector string
	path                                                                        string // instead of a resource
	notInGroup                                                                  bool   // the user is not in system:nodes
}

func (q question) groups() []string {
	if q.notInGroup {
		return []string{"system:authenticated"}
	}
	return []string{"system:nodes", "system:authenticated"}
}

func (q question) String() string {
	s := []string{q.node + ":", q.verb, q.target()}
	for flag, value := range map[string]string{"-n": q.namespace, "--subresource": q.subresource} {
		if value != "" {
			s = append(s, flag, value)
		}
	}
	if q.nodeNameSelector != "" {
		s = append(s, "spec.nodeName="+q.nodeNameSelector)
	}
	return strings.Join(s, " ")
}

// target returns TYPE or TYPE/NAME for the command line.
func (q question) target() string {
	if q.path != "" {
		return q.path
	}
	target := q.resource
	if q.group != "" {
		target += "." + q.group
	}
	if q.name != "" {
		target += "/" + q.name
	}
	return target
}

// args returns the command line of the question.
func (q question) args(kubeconfig string) []string {
	args := []string{
		"node-authorizer", "can-i", q.verb, q.target(), "--kubeconfig", kubeconfig,
		"--as", "system:node:" + q.node,
	}
	for _, group := range q.groups() {
		args = append(args, "--as-group", group)
	}
	if q.path != "" {
		return args
	}
	if q.namespace != "" {
		args = append(args, "-n", q.namespace)
	} else {
		args = append(args, "-A")
	}
	if q.subresource != "" {
		args = append(args, "--subresource", q.subresource)
	}
	if q.nodeNameSelector != "" {
		args = append(args, "--field-selector", "spec.nodeName="+q.nodeNameSelector)
	}
	return args
}

// review returns the question as an access review for the API server.
func (q question) review() *authorizationv1.SubjectAccessReview {
	spec := authorizationv1.SubjectAccessReviewSpec{User: "system:node:" + q.node, Groups: q.groups()}
	if q.path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: q.path, Verb: q.verb}
		return &authorizationv1.SubjectAccessReview{Spec: spec}
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: q.verb, Group: q.group, Version: "*", Resource: q.resource, Subresource: q.subresource,
		Namespace: q.namespace, Name: q.name,
	}
	if q.nodeNameSelector != "" {
		spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
			{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{q.nodeNameSelector}},
		}}
	}
	return &authorizationv1.SubjectAccessReview{Spec: spec}
}

var allVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// questions returns a question of every class about live objects: every verb on every
// resource that the Node authorizer decides by relation, for an object related to web-1,
// for one of another node, and for one that does not exist; subresources; rights of all
// nodes; and selectors.
func questions(t *testing.T, c kubernetes.Interface) []question {
	t.Helper()
	var qs []question
	for _, r := range liveResources(t, c) {
		for _, name := range []string{r.own, r.foreign, "no-such-object"} {
			for _, verb := range allVerbs {
				qs = append(qs,
					question{node: "web-1", verb: verb, group: r.group, resource: r.resource, namespace: r.namespace, name: name})
			}
		}
		for _, subresource := range r.subresources {
			for _, verb := range []string{"get", "create", "update", "patch"} {
				qs = append(qs,
					question{
						node: "web-1", verb: verb, group: r.group, resource: r.resource, subresource: subresource,
						namespace: r.namespace, name: r.own,
					})
				qs = append(qs,
					question{
						node: "web-1", verb: verb, group: r.group, resource: r.resource, subresource: subresource,
						namespace: r.namespace, name: r.foreign,
					})
			}
		}
		qs = append(qs, question{node: "ghost", verb: "get", group: r.group, resource: r.resource, namespace: r.namespace, name: r.own})
		qs = append(qs, question{node: "pay-1", verb: "get", group: r.group, resource: r.resource, namespace: r.namespace, name: r.own})
	}
	for _, path := range []string{"/healthz", "/version", "/api", "/metrics", "/debug/pprof"} {
		qs = append(qs, question{node: "web-1", verb: "get", path: path}, question{node: "web-1", verb: "post", path: path})
	}
	for _, resource := range []string{"pods", "secrets", "configmaps", "services", "nodes"} {
		qs = append(qs, question{node: "web-1", verb: "list", resource: resource, namespace: "shop", notInGroup: true})
		qs = append(qs, question{node: "", verb: "list", resource: resource, namespace: "shop"})
	}
	return append(qs, wideQuestions()...)
}

// liveResource is a resource with an object of web-1 and one of another node.
type liveResource struct {
	group, resource, namespace, own, foreign string
	subresources                             []string
}

func liveResources(t *testing.T, c kubernetes.Interface) []liveResource {
	return []liveResource{
		{"", "secrets", "shop", "session-key", "log-shipper-nobody", nil},
		{"", "secrets", "shop", "image-disk", "log-shipper", nil},
		{"", "configmaps", "shop", "theme", "unused", []string{"status"}},
		{"", "persistentvolumeclaims", "shop", "catalog-images", "other", []string{"status"}},
		{"", "persistentvolumes", "", "catalog-images", "other", []string{"status"}},
		{"", "serviceaccounts", "shop", "default", "other", []string{"token"}},
		{"", "serviceaccounts", "payments", "default", "payments", []string{"token"}},
		{"", "pods", "shop", podOn(t, c, "web-1"), podOn(t, c, "pay-1"), []string{"status", "eviction", "log", "exec"}},
		{"", "nodes", "", "web-1", "pay-1", []string{"status", "proxy"}},
		{"coordination.k8s.io", "leases", "kube-node-lease", "web-1", "pay-1", nil},
		{"storage.k8s.io", "csinodes", "", "web-1", "pay-1", []string{"status"}},
		{"storage.k8s.io", "volumeattachments", "", "web-disk", "other", []string{"status"}},
		{"resource.k8s.io", "resourceclaims", "shop", "accelerator", "other", []string{"status"}},
		{"resource.k8s.io", "resourceslices", "", "web-devices", "pay-devices", nil},
		{"certificates.k8s.io", "podcertificaterequests", "shop", "one", "other", []string{"status"}},
	}
}

// podOn returns the name of a pod of the shop on a node.
func podOn(t *testing.T, c kubernetes.Interface, node string) string {
	t.Helper()
	pods, err := c.CoreV1().Pods("shop").List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) == 0 {
		t.Fatalf("no pod of the shop runs on %s", node)
	}
	return pods.Items[0].Name
}

func wideQuestions() []question {
	var qs []question
	for _, r := range []question{
		{group: "authentication.k8s.io", resource: "tokenreviews"},
		{group: "authorization.k8s.io", resource: "subjectaccessreviews"},
		{group: "authorization.k8s.io", resource: "localsubjectaccessreviews", namespace: "shop"},
		{resource: "services", namespace: "shop"},
		{resource: "endpoints", namespace: "shop"},
		{resource: "events", namespace: "shop"},
		{group: "events.k8s.io", resource: "events", namespace: "shop"},
		{group: "certificates.k8s.io", resource: "certificatesigningrequests"},
		{group: "certificates.k8s.io", resource: "clustertrustbundles"},
		{group: "storage.k8s.io", resource: "csidrivers"},
		{group: "node.k8s.io", resource: "runtimeclasses"},
		{group: "apps", resource: "deployments", namespace: "shop"},
		{group: "rbac.authorization.k8s.io", resource: "clusterroles"},
		{resource: "namespaces"},
	} {
		for _, verb := range []string{"get", "list", "create", "delete"} {
			r.node, r.verb = "web-1", verb
			qs = append(qs, r)
		}
	}
	for _, r := range []question{
		{resource: "pods"},
		{group: "resource.k8s.io", resource: "resourceslices"},
		{group: "certificates.k8s.io", resource: "podcertificaterequests"},
		{resource: "nodes"},
		{resource: "secrets"},
		{resource: "secrets", namespace: "shop"},
	} {
		for _, verb := range []string{"list", "watch", "deletecollection"} {
			for _, selector := range []string{"", "web-1", "pay-1"} {
				r.node, r.verb, r.nodeNameSelector = "web-1", verb, selector
				qs = append(qs, r)
			}
		}
	}
	return qs
}
