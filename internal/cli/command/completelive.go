package command

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

const (
	// completionBytes bounds each answer of an API server.
	completionBytes = 8 << 20
	// completionPages bounds how many pages are read to find names that begin with a text.
	completionPages = 10
)

// forCompletion returns the client configuration for requests that a shell waits for. A
// credential plugin may not ask the user anything.
func (c *Connection) forCompletion() (*rest.Config, error) {
	if several, err := c.contexts(false); err == nil && len(several) > 0 {
		c.overrides.CurrentContext = several[0]
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.Timeout = completionTime
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedAnswers{next} })
	if config.ExecProvider != nil {
		config.ExecProvider.InteractiveMode = api.NeverExecInteractiveMode
		config.ExecProvider.StdinUnavailable = true
	}
	return config, nil
}

// boundedAnswers fails to read answers that are too large.
type boundedAnswers struct{ next http.RoundTripper }

func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, completionBytes)
	}
	return answer, err
}

// objectNames lists the names of a cluster's objects that begin with a text. It asks for the metadata of
// objects only, so that no data of secrets is sent.
func (c *Connection) objectNames(ctx context.Context, of resources.Resource, namespace, begin string) []string {
	config, err := c.forCompletion()
	if err != nil {
		return nil
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	for _, version := range of.Versions {
		resource := client.Resource(schema.GroupVersionResource{Group: of.Group, Version: version, Resource: of.Name})
		names, err := pagesOfNames(ctx, resource.Namespace(namespace), begin)
		if !apierrors.IsNotFound(err) {
			return names
		}
	}
	return nil
}

func pagesOfNames(ctx context.Context, of metadata.ResourceInterface, begin string) ([]string, error) {
	var names []string
	options := metav1.ListOptions{Limit: completionNames}
	for range completionPages {
		list, err := of.List(ctx, options)
		if err != nil {
			return names, err
		}
		for i := range list.Items {
			if name := list.Items[i].Name; strings.HasPrefix(name, begin) && len(names) < completionNames {
				names = append(names, name)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" || len(names) == completionNames {
			break
		}
	}
	return names, nil
}

// subjects lists the users or groups of the bindings of a cluster.
func (c *Connection) subjects(ctx context.Context, kind string) []string {
	config, err := c.forCompletion()
	if err != nil {
		return nil
	}
	client, err := rbacclient.NewForConfig(config)
	if err != nil {
		return nil
	}
	var names []string
	add := func(subjects []rbacv1.Subject) {
		for _, s := range subjects {
			if s.Kind == kind {
				names = append(names, s.Name)
			}
		}
	}
	options := metav1.ListOptions{Limit: completionNames}
	if all, err := client.ClusterRoleBindings().List(ctx, options); err == nil {
		for i := range all.Items {
			add(all.Items[i].Subjects)
		}
	}
	if all, err := client.RoleBindings("").List(ctx, options); err == nil {
		for i := range all.Items {
			add(all.Items[i].Subjects)
		}
	}
	return names
}

const (
	// completionTime bounds how long a shell waits for names.
	completionTime = 3 * time.Second
	// completionNames bounds how many names are offered.
	completionNames = 500
)

// Names lists the names of objects that begin with a text. Completion offers nothing where they
// cannot be read, and prints no error.
func (f *StateFlags) Names(ctx context.Context, of resources.Resource, namespace, begin string) []string {
	return f.namesFrom(ctx, of, namespace, begin, namesIn)
}

// namesFrom is names with a function that finds the names in files.
func (f *StateFlags) namesFrom(
	ctx context.Context, of resources.Resource, namespace, begin string,
	in func(*source.State, resources.Resource, string) []string,
) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	if len(f.From) == 0 {
		return f.Connection.objectNames(ctx, of, namespace, begin)
	}
	state := f.fileState(ctx)
	if state == nil {
		return nil
	}
	return BeginningWith(begin, in(state, of, namespace))
}

// BeginningWith keeps a limited number of names that begin with a text, each once and sorted.
func BeginningWith(begin string, names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begin) })
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(completionNames, len(names))]
}

// fileState reads the files; nil if it cannot. Standard input is not read: it is the shell's.
func (f *StateFlags) fileState(ctx context.Context) *source.State {
	if slices.Contains(f.From, "-") {
		return nil
	}
	state, err := source.LoadFiles(ctx, f.From, source.FileOptions{Inventory: true})
	if err != nil {
		return nil
	}
	return state
}

func namesIn(state *source.State, of resources.Resource, namespace string) []string {
	switch {
	case of.Group == "" && of.Name == "nodes":
		return append(state.NodeNames(), state.Graph.Nodes()...)
	case of.Group == "" && of.Name == "namespaces":
		return namespacesIn(state)
	}
	return state.RemovableNames(source.ObjectRef{Kind: of.Kind, Group: of.Group, Namespace: namespace})
}

// namesAbout also lists the names of objects that pods refer to.
func namesAbout(state *source.State, of resources.Resource, namespace string) []string {
	names := namesIn(state, of, namespace)
	kind, related := nodeauthz.KindOf(of.Group, of.Name)
	if !related {
		return names
	}
	for _, node := range state.Graph.Nodes() {
		for _, o := range state.Graph.Objects(node, kind) {
			if o.Namespace == namespace {
				names = append(names, o.Name)
			}
		}
	}
	return names
}

func namespacesIn(state *source.State) []string {
	var names []string
	for _, n := range state.Inventory.Namespaces() {
		names = append(names, n.Name)
	}
	for _, p := range state.Inventory.Pods() {
		names = append(names, p.Namespace)
	}
	for _, a := range state.Inventory.ServiceAccounts() {
		names = append(names, a.Namespace)
	}
	for _, s := range state.Inventory.Secrets() {
		names = append(names, s.Namespace)
	}
	return names
}

func (f *StateFlags) subjects(ctx context.Context, kind, begin string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	if len(f.From) == 0 {
		return BeginningWith(begin, f.Connection.subjects(ctx, kind))
	}
	state := f.fileState(ctx)
	if state == nil {
		return nil
	}
	var names []string
	for _, b := range state.RBAC.Bindings() {
		for _, s := range b.Subjects {
			if s.Kind == kind {
				names = append(names, s.Name)
			}
		}
	}
	return BeginningWith(begin, names)
}
