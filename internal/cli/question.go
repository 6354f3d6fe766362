package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/resources"
)

// The verbs of API requests and of URLs, and the special verbs of RBAC. Other verbs are
// accepted with a warning, as in kubectl.
var (
	resourceVerbs = []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
		"use", "bind", "escalate", "impersonate", "approve", "sign", "attest", "*",
	}
	urlVerbs = []string{"get", "put", "post", "head", "options", "delete", "patch", "*"}
)

// subresources that users may write after a slash, although kubectl expects a name there.
var subresources = []string{
	"status", "scale", "log", "exec", "attach", "portforward", "proxy", "eviction",
	"binding", "ephemeralcontainers", "resize", "token", "approval", "finalize",
}

// questionFlags are the flags that complete VERB TYPE/NAME.
type questionFlags struct {
	subresource   string
	fieldSelector string
	allNamespaces bool
}

func addQuestion(cmd *cobra.Command) *questionFlags {
	q := &questionFlags{}
	cmd.Flags().StringVar(&q.subresource, "subresource", "", "subresource: status, token, log …")
	cmd.Flags().StringVar(&q.fieldSelector, "field-selector", "", "field selector of a list or watch, for example spec.nodeName=worker-1")
	cmd.Flags().BoolVarP(&q.allNamespaces, "all-namespaces", "A", false, "ask about all namespaces at once")
	return q
}

// question is the request, without the user.
type question struct {
	// Verb is the verb of the request.
	Verb string `json:"verb"`
	// Group, Resource and Subresource are what is asked about; an empty Group is the core group. They,
	// Namespace and Name are empty for a URL.
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	// Namespace is empty for all namespaces, and for resources without one. Name is empty for all objects.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// FieldSelector restricts a list or watch: spec.nodeName=worker-1.
	FieldSelector string `json:"fieldSelector,omitempty"`
	// URL is the path of a request that is not about a resource; empty for others.
	URL string `json:"url,omitempty"`

	kind       string
	namespaced bool                `json:"-"`
	selector   fields.Requirements `json:"-"`
}

// questionArgs accepts VERB TYPE, VERB TYPE/NAME, VERB TYPE/NAMESPACE/NAME, VERB TYPE NAME and VERB URL.
func questionArgs(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("VERB and TYPE/NAME are missing")
	case len(args) == 1:
		return usagef("TYPE/NAME is missing after the verb %q", args[0])
	case len(args) > 3:
		return usagef("unexpected argument %q: want VERB TYPE/NAME", args[3])
	case len(args) == 3 && strings.Contains(args[1], "/"):
		return usagef("unexpected argument %q: %q has a name already", args[2], args[1])
	}
	return nil
}

// parseSelector validates the selector before anything is read.
func (f *questionFlags) parseSelector() (fields.Requirements, error) {
	if f.fieldSelector == "" {
		return nil, nil
	}
	selector, err := fields.ParseSelector(f.fieldSelector)
	if err != nil {
		return nil, usagef("--field-selector %q: %w; want FIELD=VALUE, for example spec.nodeName=worker-1", f.fieldSelector, err)
	}
	return selector.Requirements(), nil
}

// question parses the arguments with the resource names of the state. Namespace is the value of -n; empty if it is not given.
func (s *session) question(a *app, args []string, f *questionFlags, namespace string) (question, error) {
	q := question{Verb: args[0], Subresource: f.subresource, FieldSelector: f.fieldSelector}
	target := args[1]
	if strings.HasPrefix(target, "/") {
		return s.urlQuestion(a, q, target, f)
	}
	if !slices.Contains(resourceVerbs, q.Verb) {
		a.warn("%q is not a known verb%s", q.Verb, didYouMean(strings.ToLower(q.Verb), resourceVerbs))
	}
	typeName, name, _ := strings.Cut(target, "/")
	if len(args) == 3 {
		name = args[2]
	}
	found, err := s.names.Resolve(typeName)
	if err != nil {
		return q, err
	}
	q.Group, q.Resource, q.kind, q.namespaced = found.Group, found.Name, found.Kind, found.Namespaced
	warnAboutNames(a, typeName, name, found, f)
	var parseErr error
	if q.selector, parseErr = f.parseSelector(); parseErr != nil {
		return q, parseErr
	}
	switch {
	case !found.Namespaced && namespace != "":
		a.warn("%s have no namespace: -n is ignored", found)
	case found.Namespaced && !f.allNamespaces:
		q.Namespace = s.namespace
	}
	if err := q.setName(name, namespace, f.allNamespaces); err != nil {
		return q, err
	}
	s.warnAbsent(a, q)
	return q, s.State.ReadErr()
}

func (s *session) urlQuestion(a *app, q question, url string, f *questionFlags) (question, error) {
	if f.subresource != "" || f.fieldSelector != "" {
		return q, usagef("--subresource and --field-selector do not go with the URL %s", url)
	}
	if !slices.Contains(urlVerbs, q.Verb) {
		a.warn("%q is not a known verb for URLs%s", q.Verb, didYouMean(strings.ToLower(q.Verb), urlVerbs))
	}
	q.URL = url
	return q, nil
}

func warnAboutNames(a *app, typeName, name string, found resources.Resolution, f *questionFlags) {
	if len(found.Others) > 0 {
		alternatives := make([]string, len(found.Others))
		for i, r := range found.Others {
			alternatives[i] = r.String()
		}
		a.warn("%q is taken for %s; it could also be %s", typeName, found, strings.Join(alternatives, ", "))
	}
	if !found.Known && found.Group != "" {
		a.warn("%s is not built in, and taken as written", found)
	}
	if f.subresource == "" && slices.Contains(subresources, name) {
		a.warn("%q is taken for the name of an object; for the subresource, use --subresource=%s", name, name)
	}
}

// String returns the question as text: "get secrets/db in namespace shop".
func (q question) String() string {
	if q.URL != "" {
		return q.Verb + " " + q.URL
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", q.Verb, resources.Resource{Group: q.Group, Name: q.Resource})
	if q.Name != "" {
		b.WriteString("/" + q.Name)
	}
	if q.Subresource != "" {
		b.WriteString(", subresource " + q.Subresource)
	}
	if q.Namespace != "" {
		b.WriteString(" in namespace " + q.Namespace)
	}
	if q.FieldSelector != "" {
		b.WriteString(" where " + q.FieldSelector)
	}
	return b.String()
}

// request returns the question as a request of a user.
func (q question) request(who identity) *access.Request {
	version := "*" // all versions, as in a SubjectAccessReview without a version
	if q.URL != "" {
		version = ""
	}
	return &access.Request{
		User: who.User, Groups: who.Groups, Extra: who.extra(),
		Verb: q.Verb, Group: q.Group, Version: version, Resource: q.Resource, Subresource: q.Subresource,
		Namespace: q.Namespace, Name: q.Name, FieldSelector: q.selector,
		ResourceRequest: q.URL == "", Path: q.URL,
	}
}
