package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const (
	NoFiles          = cobra.ShellCompDirectiveNoFileComp
	NoFilesOrSpace   = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	AccountUser      = "system:serviceaccount:"
	nodeNameSelector = "spec.nodeName="
)

// builtIn is a resource of Kubernetes' core group.
func builtIn(name string, namespaced bool, kind string) resources.Resource {
	return resources.Resource{Name: name, Kind: kind, Namespaced: namespaced, Versions: []string{"v1"}}
}

// Prefixed puts a text before each name.
func Prefixed(prefix string, names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = prefix + name
	}
	return all
}

// NodeNames offers the names of nodes.
func (f *StateFlags) NodeNames(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	return f.Names(cmd.Context(), builtIn("nodes", false, "Node"), "", text), NoFiles
}

// NodeArgument offers the names of nodes for the only argument.
func (f *StateFlags) NodeArgument(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, NoFiles
	}
	return f.NodeNames(cmd, args, text)
}

func (f *StateFlags) namespaceNames(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	return f.Names(cmd.Context(), builtIn("namespaces", false, "Namespace"), "", text), NoFiles
}

// UserNames offers the users of nodes and service accounts, part by part, and the users that bindings name.
func (f *StateFlags) UserNames(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if begin, ok := strings.CutPrefix(text, nodeidentity.UserPrefix); ok {
		names, directive := f.NodeNames(cmd, args, begin)
		return Prefixed(nodeidentity.UserPrefix, names), directive
	}
	rest, ok := strings.CutPrefix(text, AccountUser)
	if !ok {
		return append([]string{nodeidentity.UserPrefix, AccountUser}, f.subjects(cmd.Context(), rbacv1.UserKind, text)...), NoFilesOrSpace
	}
	namespace, begin, ok := strings.Cut(rest, ":")
	if !ok {
		names, _ := f.namespaceNames(cmd, args, namespace)
		for i := range names {
			names[i] += ":"
		}
		return Prefixed(AccountUser, names), NoFilesOrSpace
	}
	names := f.Names(cmd.Context(), builtIn("serviceaccounts", true, "ServiceAccount"), namespace, begin)
	return Prefixed(AccountUser+namespace+":", names), NoFiles
}

// GroupNames completes the groups that bindings name.
func (f *StateFlags) GroupNames(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	usual := []string{"system:authenticated", "system:masters", nodeidentity.Group, "system:serviceaccounts"}
	return BeginningWith(text, append(usual, f.subjects(cmd.Context(), rbacv1.GroupKind, text)...)), NoFiles
}

// question offers the next part of VERB TYPE/NAME or VERB TYPE NAME.
func (f *StateFlags) question(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if list := cmd.Flags().Lookup("list"); list != nil && list.Value.String() == "true" {
		return nil, NoFiles
	}
	switch len(args) {
	case 0:
		return resourceVerbs[:len(resourceVerbs)-1], NoFiles
	case 1:
		if typeName, begin, named := strings.Cut(text, "/"); named {
			return Prefixed(typeName+"/", f.objectNames(cmd, typeName, begin)), NoFiles
		}
		return resources.Offline().Names(), NoFiles
	case 2:
		if !strings.Contains(args[1], "/") {
			return f.objectNames(cmd, args[1], text), NoFiles
		}
	}
	return nil, NoFiles
}

// CompleteAsked adds completion of the arguments, the subresource and the field selector of a question.
func (f *StateFlags) CompleteAsked(cmd *cobra.Command) {
	cmd.ValidArgsFunction = f.question
	Must(cmd.RegisterFlagCompletionFunc("subresource", Complete(func() []string { return subresources })))
	Must(cmd.RegisterFlagCompletionFunc("field-selector", f.fieldSelectors))
}

func (f *StateFlags) objectNames(cmd *cobra.Command, typeName, begin string) []string {
	found, err := resources.Offline().Resolve(typeName)
	if err != nil {
		return nil
	}
	namespace := ""
	if found.Namespaced {
		namespace = f.DefaultNamespace()
	}
	return f.namesFrom(cmd.Context(), found.Resource, namespace, begin, namesAbout)
}

func (f *StateFlags) fieldSelectors(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if begin, ok := strings.CutPrefix(text, nodeNameSelector); ok {
		names, directive := f.NodeNames(cmd, args, begin)
		return Prefixed(nodeNameSelector, names), directive
	}
	return []string{"metadata.name=", nodeNameSelector}, NoFilesOrSpace
}

// namedObject completes NAME or NAMESPACE/NAME after KIND/.
func (f *StateFlags) namedObject(cmd *cobra.Command, of resources.Resource, word, rest string) []string {
	namespace, prefix, begin := "", word+"/", rest
	if of.Namespaced {
		namespace = f.DefaultNamespace()
		if inner, name, given := strings.Cut(rest, "/"); given {
			namespace, prefix, begin = inner, prefix+inner+"/", name
		}
	}
	return Prefixed(prefix, f.Names(cmd.Context(), of, namespace, begin))
}

// CompleteHolding offers KIND/ and then the names of such objects, live or from --from.
func (f *StateFlags) CompleteHolding(starts bool, otherWords ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		word, rest, named := strings.Cut(text, "/")
		if !named {
			words := slices.Clone(otherWords)
			for _, k := range holdings {
				if k.resource != "" && (k.start || !starts) {
					words = append(words, k.word+"/")
				}
			}
			return words, NoFilesOrSpace
		}
		at := holdingAt(word)
		if at < 0 {
			return nil, NoFiles
		}
		of := holdings[at]
		if of.resource == "" {
			return Prefixed(word+"/", f.subjects(cmd.Context(), of.kind, rest)), NoFiles
		}
		return f.namedObject(cmd, builtIn(of.resource, of.namespaced, of.kind), word, rest), NoFiles
	}
}

func (f *StateFlags) completeRemovable() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		word, rest, named := strings.Cut(text, "/")
		if !named {
			var words []string
			for _, r := range source.Removable() {
				words = append(words, r+"/")
			}
			return words, NoFilesOrSpace
		}
		found, err := resources.Offline().Resolve(word)
		if err != nil {
			return nil, NoFiles
		}
		return f.namedObject(cmd, found.Resource, word, rest), NoFiles
	}
}

// known are the contexts, clusters or users of the kubeconfigs, as the flag names one.
func (c *Connection) known(flag string) []string {
	config, err := c.loader().RawConfig()
	switch {
	case err != nil:
		return nil
	case flag == "context":
		return slices.Sorted(maps.Keys(config.Contexts))
	case flag == "cluster":
		return slices.Sorted(maps.Keys(config.Clusters))
	}
	return slices.Sorted(maps.Keys(config.AuthInfos))
}

// contextNames offers contexts, after a comma those that are not named before it.
func (c *Connection) contextNames(_ *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
	named := ""
	if c.several {
		named = text[:strings.LastIndex(text, ",")+1]
	}
	before := strings.Split(named, ",")
	return Prefixed(named, slices.DeleteFunc(c.known("context"), func(name string) bool { return slices.Contains(before, name) })), NoFiles
}

func (c *Connection) addCompletions(cmd *cobra.Command) {
	Must(cmd.RegisterFlagCompletionFunc("context", c.contextNames))
	for _, flag := range []string{"cluster", "user"} {
		Must(cmd.RegisterFlagCompletionFunc(flag, Complete(func() []string { return c.known(flag) })))
	}
	for _, flag := range []string{"as", "as-group", "as-uid"} {
		if slices.Contains(c.names, flag) {
			CompleteNothing(cmd, flag)
		}
	}
	CompleteNothing(cmd, "server", "tls-server-name", "token", "username", "password", "proxy-url", "request-timeout")
	for _, flag := range []string{"kubeconfig", "certificate-authority", "client-certificate", "client-key"} {
		Must(cmd.MarkFlagFilename(flag))
	}
}
