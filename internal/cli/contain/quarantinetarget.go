package contain

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// quarantineTarget is what is cut off: a node or a credential.
type quarantineTarget struct {
	// Node is the name of the node; empty for a credential.
	Node string `json:"node,omitempty"`
	// Credential is the id of the credential; empty for a node.
	Credential string `json:"credential,omitempty"`
}

func targetOf(q *policyv1alpha1.Quarantine) quarantineTarget {
	return quarantineTarget{q.Spec.Node, q.Spec.Credential}
}

// String writes the target as the commands take it.
func (t quarantineTarget) String() string {
	if t.Node != "" {
		return "node/" + t.Node
	}
	return "credential/" + t.Credential
}

// The kinds of targets, as people write them.
const (
	targetNode       = "node"
	targetCredential = "credential"
)

// targetKind returns the kind for a word; empty if it is none.
func targetKind(word string) string {
	switch strings.ToLower(word) {
	case targetNode, "nodes", "no":
		return targetNode
	case targetCredential, "credentials":
		return targetCredential
	}
	return ""
}

// parseTarget reads KIND/NAME, or the user of a node.
func parseTarget(text string) (quarantineTarget, error) {
	kind, name, ok := strings.Cut(text, "/")
	switch known := targetKind(kind); {
	case strings.HasPrefix(text, nodeidentity.UserPrefix):
		return nodeTarget(command.NodeName(text))
	case !ok && known != "":
		return quarantineTarget{}, command.Usagef("the name of the %s is missing", known)
	case !ok || known == "":
		return quarantineTarget{}, command.Usagef("%q is not node/NAME or credential/ID%s", text, meant(text))
	case known == targetNode:
		return nodeTarget(command.NodeName(name))
	}
	target := quarantineTarget{Credential: name}
	errs := quarantine.Validate(&policyv1alpha1.Quarantine{Spec: policyv1alpha1.QuarantineSpec{Credential: name}})
	if len(errs) > 0 {
		return target, command.Usagef("%.253q is not the id of a credential: it %s; audit logs have it as %s",
			name, errs[0].Detail, nodeidentity.ExtraCredential)
	}
	return target, nil
}

// meant guesses what a text without a kind stands for.
func meant(text string) string {
	switch {
	case strings.Contains(text, "/"):
		return ""
	case strings.HasPrefix(text, "X509SHA256=") || strings.HasPrefix(text, "JTI="):
		return "; did you mean credential/" + text + "?"
	case command.DidYouMean(text, []string{"list"}) != "":
		return "; did you mean quarantine list?"
	}
	return "; did you mean node/" + text + "?"
}

func nodeTarget(name string) (quarantineTarget, error) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return quarantineTarget{}, command.Usagef("%.253q is not the name of a node: %s", name, problems[0])
	}
	return quarantineTarget{Node: name}, nil
}
func (t quarantineTarget) objectName() string {
	if t.Node == "" {
		return "credential-" + shortHash(t.Credential)
	}
	name := "node-" + t.Node
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	const begin = 200
	return strings.TrimRight(name[:begin], ".-") + "-" + shortHash(t.Node)
}

func shortHash(text string) string {
	const digits = 12
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

func quarantinesOf(all []policyv1alpha1.Quarantine, target quarantineTarget) []*policyv1alpha1.Quarantine {
	var found []*policyv1alpha1.Quarantine
	for i := range all {
		if targetOf(&all[i]) == target {
			found = append(found, &all[i])
		}
	}
	return found
}

// completeTarget offers KIND/ and then the names of nodes.
func completeTarget(nodes *command.StateFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		kind, begin, named := strings.Cut(text, "/")
		switch {
		case len(args) > 0:
			return nil, command.NoFiles
		case !named:
			return []string{targetNode + "/", targetCredential + "/"}, command.NoFilesOrSpace
		case targetKind(kind) == targetNode:
			names, directive := nodes.NodeNames(cmd, nil, begin)
			return command.Prefixed(kind+"/", names), directive
		}
		return nil, command.NoFiles
	}
}
