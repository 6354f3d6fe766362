package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/source"
)

const (
	// completionTime bounds how long a shell waits for names.
	completionTime = 3 * time.Second
	// completionNames bounds how many names are offered.
	completionNames = 500
)

// completableHoldings are the kinds of which names are offered, by the word that is written.
var completableHoldings = []struct {
	word, kind, resource string
	namespaced, start    bool
}{
	{"node", attackpaths.Node, "nodes", false, true},
	{"pod", attackpaths.Pod, "pods", true, true},
	{"serviceaccount", attackpaths.ServiceAccount, "serviceaccounts", true, true},
	{"secret", attackpaths.Secret, "secrets", true, false},
	{"namespace", attackpaths.Namespace, "namespaces", false, false},
}

// completeHolding offers KIND/ and then the names of such objects, live or from --from.
func (f *stateFlags) completeHolding(starts bool, others ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		word, rest, named := strings.Cut(text, "/")
		if !named {
			words := slices.Clone(others)
			for _, k := range completableHoldings {
				if k.start || !starts {
					words = append(words, k.word+"/")
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		kind := holdingWords[strings.ToLower(word)]
		for _, k := range completableHoldings {
			if k.kind != kind {
				continue
			}
			namespace, prefix := "", word+"/"
			if k.namespaced {
				namespace = f.defaultNamespace()
				if inner, _, given := strings.Cut(rest, "/"); given {
					namespace, prefix = inner, prefix+inner+"/"
				}
			}
			var all []string
			for _, name := range f.names(cmd.Context(), k.resource, kind, namespace) {
				all = append(all, prefix+name)
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// names lists names of objects. Completion offers nothing where they cannot be read.
func (f *stateFlags) names(ctx context.Context, resource, kind, namespace string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	if len(f.from) > 0 {
		return namesInFiles(ctx, f.from, kind, namespace)
	}
	return f.liveNames(ctx, "", []string{"v1"}, resource, namespace)
}

// liveNames lists names of objects of a cluster.
func (f *stateFlags) liveNames(ctx context.Context, group string, versions []string, resource, namespace string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	config, err := f.connection.config()
	if err != nil || len(versions) == 0 {
		return nil
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	list, err := client.Resource(schema.GroupVersionResource{Group: group, Version: versions[0], Resource: resource}).Namespace(namespace).
		List(ctx, metav1.ListOptions{Limit: completionNames})
	if err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// namesInFiles lists names of objects in files. Standard input is not read: it is the shell's.
func namesInFiles(ctx context.Context, paths []string, kind, namespace string) []string {
	if slices.Contains(paths, "-") {
		return nil
	}
	state, err := source.LoadFiles(ctx, paths, source.FileOptions{Inventory: true})
	if err != nil {
		return nil
	}
	var names []string
	in := func(ns, name string) {
		if ns == namespace && len(names) < completionNames {
			names = append(names, name)
		}
	}
	switch kind {
	case attackpaths.Node:
		for _, name := range state.NodeNames() {
			in("", name)
		}
	case attackpaths.Pod:
		for _, p := range state.Inventory.Pods() {
			in(p.Namespace, p.Name.Name)
		}
	case attackpaths.ServiceAccount:
		for _, a := range state.Inventory.ServiceAccounts() {
			in(a.Namespace, a.Name)
		}
	case attackpaths.Secret:
		for _, s := range state.Inventory.Secrets() {
			in(s.Namespace, s.Name.Name)
		}
	case attackpaths.Namespace:
		for _, n := range state.Inventory.Namespaces() {
			in("", n.Name)
		}
	}
	return names
}
