package admissionpolicy

import (
	"errors"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// criteria say which requests a policy or binding is asked about. A selector that is missing
// selects everything, as the API server's default does.
type criteria struct{ *registrationv1.MatchResources }

func (c criteria) GetMatchResources() registrationv1.MatchResources { return *c.MatchResources }

func (c criteria) GetParsedNamespaceSelector() (labels.Selector, error) {
	return parseSelector(c.NamespaceSelector)
}

func (c criteria) GetParsedObjectSelector() (labels.Selector, error) {
	return parseSelector(c.ObjectSelector)
}

func parseSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// matches says whether a policy or binding is asked about a request. What open names has to be
// known for an answer.
func matches(
	resources *registrationv1.MatchResources, r *attackpaths.Request, a admission.Attributes,
) (matched bool, open string, err error) {
	if resources == nil {
		return true, "", nil
	}
	if open := unmatchable(resources, r); open != "" {
		// A request that other parts of the criteria leave out needs no more.
		without := *resources
		without.NamespaceSelector, without.ObjectSelector = nil, nil
		if !unnamed(&without) {
			return false, open, nil
		}
		matched, _, err := matches(&without, r, a)
		if !matched {
			return false, "", err
		}
		return false, open, nil
	}
	matcher := matching.NewMatcher(onlyNamespace(r.NamespaceLabels), nil)
	matched, _, _, err = matcher.Matches(a, admission.NewObjectInterfacesFromScheme(nil), criteria{resources})
	return matched, "", err
}

// unmatchable names what criteria read of a request and is not known.
func unmatchable(resources *registrationv1.MatchResources, r *attackpaths.Request) string {
	ownLabels := r.Knows(attackpaths.Field{"metadata", "labels"}) && r.KnowsOld(attackpaths.Field{"metadata", "labels"})
	// A namespace that is created or updated is selected by its new labels, for other requests by those that it has.
	isNamespace := r.Resource.Group == "" && r.Resource.Resource == "namespaces" && r.Subresource == "" &&
		(r.Operation == registrationv1.Create || r.Operation == registrationv1.Update)
	switch {
	case !isEmpty(resources.ObjectSelector) && !ownLabels:
		return "selects objects by labels that are not known"
	case !isEmpty(resources.NamespaceSelector) && isNamespace && !ownLabels:
		return "selects namespaces by labels that are not known"
	case !isEmpty(resources.NamespaceSelector) && !isNamespace && r.Namespace != "" && r.NamespaceLabels == nil:
		return "selects namespaces by labels that are not known"
	case r.AnyName && !unnamed(resources):
		return "selects objects by name"
	}
	return ""
}

func isEmpty(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// unnamed reports whether no rule names objects.
func unnamed(resources *registrationv1.MatchResources) bool {
	for _, rules := range [...][]registrationv1.NamedRuleWithOperations{resources.ResourceRules, resources.ExcludeResourceRules} {
		for _, r := range rules {
			if len(r.ResourceNames) > 0 {
				return false
			}
		}
	}
	return true
}

// onlyNamespace is the namespace that a request is in, by its labels.
type onlyNamespace map[string]string

func (l onlyNamespace) Get(name string) (*corev1.Namespace, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l}}, nil
}

// List implements the interface of listers; the matcher of the API server gets one namespace.
func (l onlyNamespace) List(labels.Selector) ([]*corev1.Namespace, error) {
	return nil, errors.ErrUnsupported
}
