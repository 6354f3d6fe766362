package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

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

// namespacesIn lists the namespaces that a state has, and the namespaces of its objects.
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
