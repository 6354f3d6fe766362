package contain

import (
	"maps"
	"reflect"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// The words of --allow.
const (
	allowLook  = "look"
	allowDrain = "drain"
)

// allowances are the rules of each word of --allow, for the credential of a node.
func allowances(node string) map[string][]policyv1alpha1.QuarantineRule {
	core := []string{""}
	return map[string][]policyv1alpha1.QuarantineRule{
		// The kubelet asks these before it serves logs and exec.
		allowLook: {
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

func allowWords() []string { return []string{allowDrain, allowLook} }

func allowRules(words []string, target quarantineTarget) ([]policyv1alpha1.QuarantineRule, error) {
	all := allowances(target.Node)
	var rules []policyv1alpha1.QuarantineRule
	for _, word := range slices.Compact(slices.Sorted(slices.Values(words))) {
		given, ok := all[word]
		if !ok {
			return nil, command.Usagef("--allow %q: want %s or %s%s", word, allowDrain, allowLook, command.DidYouMean(word, allowWords()))
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
