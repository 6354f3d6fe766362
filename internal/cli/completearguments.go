package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const (
	noFiles          = cobra.ShellCompDirectiveNoFileComp
	noFilesOrSpace   = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	accountUser      = "system:serviceaccount:"
	nodeNameSelector = "spec.nodeName="
)

// builtIn is a resource of Kubernetes' core group.
func builtIn(name string, namespaced bool, kind string) resources.Resource {
	return resources.Resource{Name: name, Kind: kind, Namespaced: namespaced, Versions: []string{"v1"}}
}

// prefixed puts a text before each name.
func prefixed(prefix string, names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = prefix + name
	}
	return all
}

// nodeNames offers the names of nodes.
func (f *stateFlags) nodeNames(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	return f.names(cmd.Context(), builtIn("nodes", false, "Node"), "", text), noFiles
}

// nodeArgument offers the names of nodes for the only argument.
func (f *stateFlags) nodeArgument(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return f.nodeNames(cmd, args, text)
}

func (f *stateFlags) namespaceNames(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	return f.names(cmd.Context(), builtIn("namespaces", false, "Namespace"), "", text), noFiles
}

// userNames offers the users of nodes and service accounts, part by part, and the users that bindings name.
func (f *stateFlags) userNames(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if begin, ok := strings.CutPrefix(text, nodeidentity.UserPrefix); ok {
		names, directive := f.nodeNames(cmd, args, begin)
		return prefixed(nodeidentity.UserPrefix, names), directive
	}
	rest, ok := strings.CutPrefix(text, accountUser)
	if !ok {
		return append([]string{nodeidentity.UserPrefix, accountUser}, f.subjects(cmd.Context(), rbacv1.UserKind, text)...), noFilesOrSpace
	}
	namespace, begin, ok := strings.Cut(rest, ":")
	if !ok {
		names, _ := f.namespaceNames(cmd, args, namespace)
		for i := range names {
			names[i] += ":"
		}
		return prefixed(accountUser, names), noFilesOrSpace
	}
	names := f.names(cmd.Context(), builtIn("serviceaccounts", true, "ServiceAccount"), namespace, begin)
	return prefixed(accountUser+namespace+":", names), noFiles
}

func (f *stateFlags) groupNames(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	usual := []string{"system:authenticated", "system:masters", nodeidentity.Group, "system:serviceaccounts"}
	return beginningWith(text, append(usual, f.subjects(cmd.Context(), rbacv1.GroupKind, text)...)), noFiles
}

// question offers the next part of VERB TYPE/NAME or VERB TYPE NAME.
func (f *stateFlags) question(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if list := cmd.Flags().Lookup("list"); list != nil && list.Value.String() == "true" {
		return nil, noFiles
	}
	switch len(args) {
	case 0:
		return resourceVerbs[:len(resourceVerbs)-1], noFiles
	case 1:
		if typeName, begin, named := strings.Cut(text, "/"); named {
			return prefixed(typeName+"/", f.objectNames(cmd, typeName, begin)), noFiles
		}
		return resources.Offline().Names(), noFiles
	case 2:
		if !strings.Contains(args[1], "/") {
			return f.objectNames(cmd, args[1], text), noFiles
		}
	}
	return nil, noFiles
}

// completeAsked adds completion of the arguments, the subresource and the field selector of a question.
func (f *stateFlags) completeAsked(cmd *cobra.Command) {
	cmd.ValidArgsFunction = f.question
	must(cmd.RegisterFlagCompletionFunc("subresource", complete(func() []string { return subresources })))
	must(cmd.RegisterFlagCompletionFunc("field-selector", f.fieldSelectors))
}

// objectNames lists the names of objects of a type, in the namespace of -n.
func (f *stateFlags) objectNames(cmd *cobra.Command, typeName, begin string) []string {
	found, err := resources.Offline().Resolve(typeName)
	if err != nil {
		return nil
	}
	namespace := ""
	if found.Namespaced {
		namespace = f.defaultNamespace()
	}
	return f.namesFrom(cmd.Context(), found.Resource, namespace, begin, namesAbout)
}

// fieldSelectors offers the fields that nodes select by.
func (f *stateFlags) fieldSelectors(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if begin, ok := strings.CutPrefix(text, nodeNameSelector); ok {
		names, directive := f.nodeNames(cmd, args, begin)
		return prefixed(nodeNameSelector, names), directive
	}
	return []string{"metadata.name=", nodeNameSelector}, noFilesOrSpace
}

// namedObject completes NAME or NAMESPACE/NAME after KIND/.
func (f *stateFlags) namedObject(cmd *cobra.Command, of resources.Resource, word, rest string) []string {
	namespace, prefix, begin := "", word+"/", rest
	if of.Namespaced {
		namespace = f.defaultNamespace()
		if inner, name, given := strings.Cut(rest, "/"); given {
			namespace, prefix, begin = inner, prefix+inner+"/", name
		}
	}
	return prefixed(prefix, f.names(cmd.Context(), of, namespace, begin))
}

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
func (f *stateFlags) completeHolding(starts bool, otherWords ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		word, rest, named := strings.Cut(text, "/")
		if !named {
			words := slices.Clone(otherWords)
			for _, k := range completableHoldings {
				if k.start || !starts {
					words = append(words, k.word+"/")
				}
			}
			return words, noFilesOrSpace
		}
		kind := holdingWords[strings.ToLower(word)]
		for _, k := range completableHoldings {
			if k.kind == kind {
				return f.namedObject(cmd, builtIn(k.resource, k.namespaced, k.kind), word, rest), noFiles
			}
		}
		switch kind {
		case attackpaths.User:
			return prefixed(word+"/", f.subjects(cmd.Context(), rbacv1.UserKind, rest)), noFiles
		case attackpaths.Group:
			return prefixed(word+"/", f.subjects(cmd.Context(), rbacv1.GroupKind, rest)), noFiles
		}
		return nil, noFiles
	}
}

// completeRemovable offers kinds of objects that can be removed, and then their names.
func (f *stateFlags) completeRemovable() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		word, rest, named := strings.Cut(text, "/")
		if !named {
			var words []string
			for _, r := range source.Removable() {
				words = append(words, r+"/")
			}
			return words, noFilesOrSpace
		}
		found, err := resources.Offline().Resolve(word)
		if err != nil {
			return nil, noFiles
		}
		return f.namedObject(cmd, found.Resource, word, rest), noFiles
	}
}
