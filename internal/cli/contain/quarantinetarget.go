package contain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
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

// oneTarget accepts one argument, or KIND NAME, which is KIND/NAME.
func oneTarget(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		names := []string{what}
		if len(args) > 1 && targetKind(args[0]) != "" {
			names = append(names, "")
		}
		return command.Exactly(names...)(cmd, args)
	}
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
		case len(args) == 1 && targetKind(args[0]) == targetNode:
			return nodes.NodeNames(cmd, nil, text)
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

// check returns an error if a target should not be quarantined without --force, or if that could
// not be found out.
func (c *quarantineClient) check(ctx context.Context, target quarantineTarget) error {
	if target.Node == "" {
		return c.checkCredential(target)
	}
	why := ""
	node, err := c.cluster.CoreV1().Nodes().Get(ctx, target.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.noSuchNode(ctx, target.Node)
	}
	if err == nil {
		why, err = c.controlPlane(ctx, node)
	}
	switch {
	case err != nil:
		return fmt.Errorf("find out whether node %s runs the control plane: %w", target.Node, err)
	case why != "":
		return runsControlPlane(target.Node, why)
	}
	return nil
}

// noSuchNode is the error for a node that does not exist. Its certificate may be valid nevertheless.
func (c *quarantineClient) noSuchNode(ctx context.Context, name string) error {
	var known []string
	if list, err := c.cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			known = append(known, list.Items[i].Name)
		}
	}
	return noNode(name, "", known)
}

// controlPlane returns what shows that a node runs the control plane; empty if nothing does.
func (c *quarantineClient) controlPlane(ctx context.Context, node *corev1.Node) (string, error) {
	if why := labelledControlPlane(node.Labels); why != "" {
		return why, nil
	}
	pods, err := c.cluster.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String(),
	})
	if err != nil {
		return "", fmt.Errorf("list its pods in %s: %w", metav1.NamespaceSystem, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; isControlPlane(pod) {
			return "pod " + pod.Namespace + "/" + pod.Name + " is on it", nil
		}
	}
	return "", nil
}

func isControlPlane(pod *corev1.Pod) bool {
	if pod.Labels["tier"] == "control-plane" {
		return true
	}
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return isMirror && isControlPlanePart(pod.Name)
}

// checkCredential returns an error if API servers do not name credentials of this kind.
func (c *quarantineClient) checkCredential(target quarantineTarget) error {
	what, _ := target.kindOfCredential()
	served, err := c.cluster.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("find out whether the API server names %s: %w", what, err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(served.Minor, "+"))
	if err != nil || served.Major != "1" {
		return fmt.Errorf("find out whether the API server names %s: its version is %s", what, served.GitVersion)
	}
	return target.namedSince(minor)
}

// kindOfCredential names the credentials of the target's kind, and the minor version since which API servers name
// them.
func (t quarantineTarget) kindOfCredential() (what string, since int) {
	if strings.HasPrefix(t.Credential, "X509SHA256=") {
		return "client certificates", 32
	}
	return "tokens of service accounts", 30
}

// namedSince returns an error if API servers of a minor version do not name credentials of the target's kind.
func (t quarantineTarget) namedSince(minor int) error {
	what, since := t.kindOfCredential()
	if minor >= since {
		return nil
	}
	return fmt.Errorf("the API server is of Kubernetes 1.%d, and API servers name %s since 1.%d: the credential cannot be told "+
		"from others of its user; quarantine the node instead", minor, what, since)
}

// The words of --allow.
const (
	allowLogs  = "logs"
	allowDrain = "drain"
)

// allowances are the rules of each word of --allow, for the credential of a node.
func allowances(node string) map[string][]policyv1alpha1.QuarantineRule {
	core := []string{""}
	return map[string][]policyv1alpha1.QuarantineRule{
		// The kubelet asks these before it serves logs and exec.
		allowLogs: {
			{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
			{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		},
		// With these the kubelet learns which pods end, and says when they have ended. It keeps its
		// node Ready, so that nothing is deleted before it has ended.
		allowDrain: {
			{APIGroups: core, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "delete"}},
			{APIGroups: core, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
			{APIGroups: core, Resources: []string{"nodes"}, ResourceNames: []string{node}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: core, Resources: []string{"nodes/status"}, ResourceNames: []string{node}, Verbs: []string{"patch"}},
			{
				APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{node},
				Verbs: []string{"get", "update", "patch"}, Namespaces: []string{"kube-node-lease"},
			},
		},
	}
}

func allowWords() []string { return []string{allowDrain, allowLogs} }

func allowRules(words []string, target quarantineTarget) ([]policyv1alpha1.QuarantineRule, error) {
	all := allowances(target.Node)
	var rules []policyv1alpha1.QuarantineRule
	for _, word := range slices.Compact(slices.Sorted(slices.Values(words))) {
		given, ok := all[word]
		if !ok {
			return nil, command.Usagef("--allow %q: want %s or %s%s", word, allowDrain, allowLogs, command.DidYouMean(word, allowWords()))
		}
		rules = append(rules, given...)
	}
	if len(rules) > 0 && target.Node == "" {
		return nil, command.Usagef("--allow is for what a kubelet does: it has no effect on a credential")
	}
	return rules, nil
}

// allowed describes the rules of a Quarantine by the words of --allow, and counts the rules that no word stands for.
func allowed(spec *policyv1alpha1.QuarantineSpec) ([]string, int) {
	words, rest, all := []string{}, slices.Clone(spec.Allow), allowances(spec.Node)
	for _, word := range slices.Sorted(maps.Keys(all)) {
		without, complete := rest, true
		for _, rule := range all[word] {
			at := slices.IndexFunc(without, func(r policyv1alpha1.QuarantineRule) bool { return reflect.DeepEqual(r, rule) })
			if complete = at >= 0; !complete {
				break
			}
			without = slices.Delete(slices.Clone(without), at, at+1)
		}
		if complete {
			words, rest = append(words, word), without
		}
	}
	return words, len(rest)
}
