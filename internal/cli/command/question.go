package command

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

// QuestionFlags are the flags that complete VERB TYPE/NAME.
type QuestionFlags struct {
	Subresource   string
	FieldSelector string
	AllNamespaces bool
}

func AddQuestion(cmd *cobra.Command) *QuestionFlags {
	q := &QuestionFlags{}
	cmd.Flags().StringVar(&q.Subresource, "subresource", "", "subresource: status, token, log …")
	cmd.Flags().StringVar(&q.FieldSelector, "field-selector", "", "field selector of a list or watch, for example spec.nodeName=worker-1")
	cmd.Flags().BoolVarP(&q.AllNamespaces, "all-namespaces", "A", false, "ask about all namespaces at once")
	return q
}

// Question is the request, without the user.
type Question struct {
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
	Namespaced bool                `json:"-"`
	Selector   fields.Requirements `json:"-"`
}

// QuestionArgs accepts VERB TYPE, VERB TYPE/NAME, VERB TYPE/NAMESPACE/NAME, VERB TYPE NAME and VERB URL.
func QuestionArgs(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return Usagef("VERB and TYPE/NAME are missing")
	case len(args) == 1:
		return Usagef("TYPE/NAME is missing after the verb %q", args[0])
	case len(args) > 3:
		return Usagef("unexpected argument %q: want VERB TYPE/NAME", args[3])
	case len(args) == 3 && strings.Contains(args[1], "/"):
		return Usagef("unexpected argument %q: %q has a name already", args[2], args[1])
	}
	return nil
}

// ParseSelector validates the selector before anything is read.
func (f *QuestionFlags) ParseSelector() (fields.Requirements, error) {
	if f.FieldSelector == "" {
		return nil, nil
	}
	selector, err := fields.ParseSelector(f.FieldSelector)
	if err != nil {
		return nil, Usagef("--field-selector %q: %w; want FIELD=VALUE, for example spec.nodeName=worker-1", f.FieldSelector, err)
	}
	return selector.Requirements(), nil
}

// Question parses the arguments with the resource names of the state. Namespace is the value of -n; empty if it is not given.
func (s *Session) Question(a *App, args []string, f *QuestionFlags, namespace string) (Question, error) {
	q := Question{Verb: args[0], Subresource: f.Subresource, FieldSelector: f.FieldSelector}
	target := args[1]
	if strings.HasPrefix(target, "/") {
		return s.urlQuestion(a, q, target, f)
	}
	if !slices.Contains(resourceVerbs, q.Verb) {
		a.Warn("%q is not a known verb%s", q.Verb, DidYouMean(strings.ToLower(q.Verb), resourceVerbs))
	}
	typeName, name, _ := strings.Cut(target, "/")
	if len(args) == 3 {
		name = args[2]
	}
	found, err := s.Names.Resolve(typeName)
	if err != nil {
		return q, err
	}
	q.Group, q.Resource, q.kind, q.Namespaced = found.Group, found.Name, found.Kind, found.Namespaced
	warnAboutNames(a, typeName, name, found, f)
	var parseErr error
	if q.Selector, parseErr = f.ParseSelector(); parseErr != nil {
		return q, parseErr
	}
	switch {
	case !found.Namespaced && namespace != "":
		a.Warn("%s have no namespace: -n is ignored", found)
	case found.Namespaced && !f.AllNamespaces:
		q.Namespace = s.Namespace
	}
	if err := q.setName(name, namespace, f.AllNamespaces); err != nil {
		return q, err
	}
	s.warnAbsent(a, q)
	return q, s.State.ReadErr()
}

func (s *Session) urlQuestion(a *App, q Question, url string, f *QuestionFlags) (Question, error) {
	if f.Subresource != "" || f.FieldSelector != "" {
		return q, Usagef("--subresource and --field-selector do not go with the URL %s", url)
	}
	if !slices.Contains(urlVerbs, q.Verb) {
		a.Warn("%q is not a known verb for URLs%s", q.Verb, DidYouMean(strings.ToLower(q.Verb), urlVerbs))
	}
	q.URL = url
	return q, nil
}

func warnAboutNames(a *App, typeName, name string, found resources.Resolution, f *QuestionFlags) {
	if len(found.Others) > 0 {
		alternatives := make([]string, len(found.Others))
		for i, r := range found.Others {
			alternatives[i] = r.String()
		}
		a.Warn("%q is taken for %s; it could also be %s", typeName, found, strings.Join(alternatives, ", "))
	}
	if !found.Known && found.Group != "" {
		a.Warn("%s is not built in, and taken as written", found)
	}
	if f.Subresource == "" && slices.Contains(subresources, name) {
		a.Warn("%q is taken for the name of an object; for the subresource, use --subresource=%s", name, name)
	}
}

// String returns the question as text: "get secrets/db in namespace shop".
func (q Question) String() string {
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

// Request returns the question as a request of a user.
func (q Question) Request(who Identity) *access.Request {
	version := "*" // all versions, as in a SubjectAccessReview without a version
	if q.URL != "" {
		version = ""
	}
	return &access.Request{
		User: who.User, UID: who.UID, Groups: who.Groups, Extra: who.extra(),
		Verb: q.Verb, Group: q.Group, Version: version, Resource: q.Resource, Subresource: q.Subresource,
		Namespace: q.Namespace, Name: q.Name, FieldSelector: q.Selector,
		ResourceRequest: q.URL == "", Path: q.URL,
	}
}
