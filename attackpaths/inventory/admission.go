package inventory

import (
	"cmp"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Admission is one webhook or one admission policy that may refuse writes.
type Admission struct {
	// Kind is ValidatingWebhookConfiguration, MutatingWebhookConfiguration or
	// ValidatingAdmissionPolicy.
	Kind string
	// Name is that of the configuration or policy, and Webhook that of the webhook in it or of
	// the policy's binding.
	Name, Webhook string
	// Rules are the requests that it is asked about, and Excluded those that it is not.
	Rules, Excluded []admissionv1.RuleWithOperations
	// Narrowed are, if there are any, rules of which one has to match too.
	Narrowed []admissionv1.RuleWithOperations
	// Namespaces selects the namespaces in which it counts; nil selects all.
	Namespaces labels.Selector
	// AlsoNamespaces is a second selection of namespaces.
	AlsoNamespaces labels.Selector
	// Policy and Binding are what a ValidatingAdmissionPolicy and its binding say; nil for
	// webhooks. They must not be changed.
	Policy  *admissionv1.ValidatingAdmissionPolicySpec
	Binding *admissionv1.ValidatingAdmissionPolicyBindingSpec
}

// String names it for people.
func (a Admission) String() string {
	if a.Webhook != "" {
		return a.Kind + " " + a.Name + " (" + a.Webhook + ")"
	}
	return a.Kind + " " + a.Name
}

// Write is a request that admission is asked about.
type Write struct {
	Operation                    admissionv1.OperationType
	Group, Resource, Subresource string
	Namespaced                   bool
}

// Covers reports whether the request comes before the webhook or policy, in a namespace with
// these labels, or to the namespace itself.
func (a *Admission) Covers(w Write, namespace map[string]string) bool {
	if w.Namespaced || w.Group == "" && w.Resource == "namespaces" {
		for _, selector := range [...]labels.Selector{a.Namespaces, a.AlsoNamespaces} {
			if selector != nil && !selector.Matches(labels.Set(namespace)) {
				return false
			}
		}
	}
	matches := func(r admissionv1.RuleWithOperations) bool { return covers(r, w) }
	return slices.ContainsFunc(a.Rules, matches) && !slices.ContainsFunc(a.Excluded, matches) &&
		(len(a.Narrowed) == 0 || slices.ContainsFunc(a.Narrowed, matches))
}

func covers(r admissionv1.RuleWithOperations, w Write) bool {
	operation := slices.Contains(r.Operations, w.Operation) || slices.Contains(r.Operations, admissionv1.OperationAll)
	group := slices.Contains(r.APIGroups, w.Group) || slices.Contains(r.APIGroups, "*")
	scope := r.Scope == nil || *r.Scope == admissionv1.AllScopes || (*r.Scope == admissionv1.NamespacedScope) == w.Namespaced
	return operation && group && scope && slices.ContainsFunc(r.Resources, func(pattern string) bool {
		if w.Subresource == "" {
			return pattern == w.Resource || pattern == "*" || pattern == "*/*"
		}
		return pattern == w.Resource+"/"+w.Subresource || pattern == w.Resource+"/*" || pattern == "*/"+w.Subresource || pattern == "*/*"
	})
}

// WebhookConfigurations lists the names of ValidatingWebhookConfigurations or MutatingWebhookConfigurations,
// those without webhooks too.
func (i *Inventory) WebhookConfigurations(kind string) []string {
	return slices.Sorted(maps.Keys(i.configurations[kind]))
}

func (i *Inventory) setConfiguration(kind, name string) {
	if i.configurations[kind] == nil {
		i.configurations[kind] = map[string]bool{}
	}
	i.configurations[kind][name] = true
}

// SetValidatingWebhooks adds the webhooks of a configuration.
func (i *Inventory) SetValidatingWebhooks(c *admissionv1.ValidatingWebhookConfiguration) {
	i.setConfiguration("ValidatingWebhookConfiguration", c.Name)
	for _, w := range c.Webhooks {
		i.setAdmission(Admission{
			Kind: "ValidatingWebhookConfiguration", Name: c.Name, Webhook: w.Name,
			Rules: w.Rules, Namespaces: selector(w.NamespaceSelector),
		})
	}
}

// SetMutatingWebhooks adds the webhooks of a configuration.
func (i *Inventory) SetMutatingWebhooks(c *admissionv1.MutatingWebhookConfiguration) {
	i.setConfiguration("MutatingWebhookConfiguration", c.Name)
	for _, w := range c.Webhooks {
		i.setAdmission(Admission{
			Kind: "MutatingWebhookConfiguration", Name: c.Name, Webhook: w.Name, Rules: w.Rules, Namespaces: selector(w.NamespaceSelector),
		})
	}
}

func (i *Inventory) setAdmission(a Admission) {
	i.admission[Name{a.Kind, a.Name + "/" + a.Webhook}] = a
}

// selector parses a selector; one that is invalid selects all namespaces, so that nothing is
// taken for unguarded because of it.
func selector(s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	return parsed
}

// Admission lists the webhooks and policies by kind and name.
func (i *Inventory) Admission() []Admission {
	return slices.SortedFunc(maps.Values(i.admission), func(a, b Admission) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Webhook, b.Webhook))
	})
}
