package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/verdict"
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

// plainNames are the types whose objects have names of DNS, as the API server requires.
var plainNames = map[string]func(string) []string{
	"pods": validation.IsDNS1123Subdomain, "secrets": validation.IsDNS1123Subdomain, "configmaps": validation.IsDNS1123Subdomain,
	"serviceaccounts": validation.IsDNS1123Subdomain, "persistentvolumeclaims": validation.IsDNS1123Subdomain,
	"persistentvolumes": validation.IsDNS1123Subdomain, "nodes": validation.IsDNS1123Subdomain, "namespaces": validation.IsDNS1123Label,
}

// setName sets the name of a question, and its namespace where the name is NAMESPACE/NAME. Given is the namespace
// of -n; empty if there is none.
func (q *Question) setName(name, given string, all bool) error {
	if inner, rest, ok := strings.Cut(name, "/"); ok && q.Namespaced {
		problems := validation.IsDNS1123Label(inner)
		switch {
		case len(problems) > 0:
			return Usagef("%q: no namespace can be named %q: %s; want TYPE/NAME or TYPE/NAMESPACE/NAME", name, inner, problems[0])
		case all:
			return Usagef("%q names a namespace: leave out -A", name)
		case given != "" && given != inner:
			return Usagef("%q names another namespace than -n %s: leave out one of them", name, given)
		}
		q.Namespace, name = inner, rest
	}
	q.Name = name
	if valid := plainNames[q.Resource]; q.Group == "" && valid != nil && name != "" && name != "*" {
		if problems := valid(name); len(problems) > 0 {
			return Usagef("no object of %s can be named %q: %s", q.Resource, name, problems[0])
		}
	}
	return nil
}

// warnAbsent warns about a namespace or object of a question that a snapshot shows not to exist.
func (s *Session) warnAbsent(a *App, q Question) {
	if !s.ofFiles || !s.State.Complete() {
		return
	}
	unread := map[string]bool{}
	for _, m := range s.State.Missing() {
		unread[m.Resource.String()] = true
	}
	if q.Namespace != "" && len(unread) == 0 {
		if _, found := s.State.ServiceAccount(q.Namespace, "default"); !found {
			var known []string
			for _, account := range s.State.ServiceAccountNames() {
				known = append(known, account.Namespace)
			}
			slices.Sort(known)
			a.Warn("there is no namespace %s in %s: each namespace has a service account default, and this has none%s",
				q.Namespace, s.State.Origin, DidYouMean(q.Namespace, slices.Compact(known)))
			return
		}
	}
	exists := map[string]func() bool{
		"pods":            func() bool { _, found := s.State.Pod(q.Namespace, q.Name); return found },
		"serviceaccounts": func() bool { _, found := s.State.ServiceAccount(q.Namespace, q.Name); return found },
		"persistentvolumeclaims": func() bool {
			_, found := s.State.PersistentVolumeClaim(q.Namespace, q.Name)
			return found
		},
		"persistentvolumes": func() bool { _, found := s.State.PersistentVolume(q.Name); return found },
		"nodes":             func() bool { return s.State.HasNode(q.Name) },
	}[q.Resource]
	made := q.Verb == "create" && q.Subresource == ""
	if exists == nil || q.Group != "" || q.Name == "" || q.Name == "*" || made || unread[q.Resource] || exists() {
		return
	}
	object, near := verdict.Object{Kind: q.kind, Namespace: q.Namespace, Name: q.Name}, ""
	if q.Resource == "nodes" {
		near = DidYouMean(q.Name, s.State.NodeNames())
	}
	a.Warn("%s is not in %s: the answer is about an object of this name%s", object, s.State.Origin, near)
}
