package review

import (
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/node-authorizer/node-authorizer/access"
)

// Attributes returns the request of a valid spec, and the parts of its selectors that it
// dropped.
//
// A requirement that cannot be expressed is dropped, the others are kept. Requirements are
// joined by "and", so that dropping one only makes the request broader. In a field selector,
// In and NotIn with exactly one value become Equals and NotEquals, as in a parsed selector;
// all other operators are dropped. A raw selector that cannot be parsed, or is longer than
// 64 KiB, is dropped as a whole. A missing version means all versions, "*".
func Attributes(spec *authorizationv1.SubjectAccessReviewSpec) (access.Request, Ignored) {
	req := access.Request{User: spec.User, Groups: spec.Groups, UID: spec.UID, Extra: extra(spec.Extra)}
	if spec.ResourceAttributes == nil {
		req.Verb, req.Path = spec.NonResourceAttributes.Verb, spec.NonResourceAttributes.Path
		return req, nil
	}
	in := spec.ResourceAttributes
	req.ResourceRequest = true
	req.Verb, req.Group, req.Resource, req.Subresource = in.Verb, in.Group, in.Resource, in.Subresource
	req.Namespace, req.Name = in.Namespace, in.Name
	if req.Version = in.Version; req.Version == "" {
		req.Version = allVersions
	}

	var ignored Ignored
	if in.FieldSelector != nil {
		req.FieldSelector, ignored = fieldRequirements(in.FieldSelector)
	}
	if in.LabelSelector != nil {
		var labelsIgnored Ignored
		req.LabelSelector, labelsIgnored = labelRequirements(in.LabelSelector)
		ignored = append(ignored, labelsIgnored...)
	}
	return req, ignored
}

const allVersions = "*"

// extra returns nil for nil, so that a review without extra does not allocate.
func extra(in map[string]authorizationv1.ExtraValue) map[string][]string {
	if in == nil {
		return nil
	}
	out := make(map[string][]string, len(in))
	for key, values := range in {
		out[key] = values
	}
	return out
}

// Ignored lists the dropped parts of a review's selectors, one line each.
type Ignored []string

// String joins the lines for a status's evaluationError.
func (i Ignored) String() string { return strings.Join(i, "; ") }

// maxIgnored is the maximum number of lines, without the line that says that there are more.
const maxIgnored = 20

func (i *Ignored) add(format string, args ...any) {
	switch {
	case len(*i) < maxIgnored:
		*i = append(*i, fmt.Sprintf(format, args...))
	case len(*i) == maxIgnored:
		*i = append(*i, "more requirements are ignored")
	}
}

// maxRawSelector is the maximum length in bytes of a raw selector: parsing takes a hundred
// times its size. API servers send requirements, not raw selectors.
const maxRawSelector = 64 << 10

var errRawSelectorTooLong = fmt.Errorf("longer than %d bytes", maxRawSelector)

func fieldRequirements(in *authorizationv1.FieldSelectorAttributes) (fields.Requirements, Ignored) {
	if len(in.Requirements) == 0 {
		if len(in.RawSelector) > maxRawSelector {
			return nil, Ignored{fmt.Sprintf("fieldSelector.rawSelector ignored: %v", errRawSelectorTooLong)}
		}
		parsed, err := fields.ParseSelector(in.RawSelector)
		if err != nil {
			return nil, Ignored{fmt.Sprintf("fieldSelector.rawSelector ignored: %v", err)}
		}
		return parsed.Requirements(), nil
	}
	var kept fields.Requirements
	var ignored Ignored
	for i, r := range in.Requirements {
		operator, ok := fieldOperators[r.Operator]
		if !ok || len(r.Values) != 1 {
			ignored.add("fieldSelector.requirements[%d] ignored: only In and NotIn with one value are supported, not %.64s with %d",
				i, r.Operator, len(r.Values))
			continue
		}
		kept = append(kept, fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]})
	}
	return kept, ignored
}

var fieldOperators = map[metav1.FieldSelectorOperator]selection.Operator{
	metav1.FieldSelectorOpIn:    selection.Equals,
	metav1.FieldSelectorOpNotIn: selection.NotEquals,
}

// labelRequirements converts label selectors. Node and RBAC do not read them, but webhooks
// may.
func labelRequirements(in *authorizationv1.LabelSelectorAttributes) (labels.Requirements, Ignored) {
	if len(in.Requirements) == 0 {
		if len(in.RawSelector) > maxRawSelector {
			return nil, Ignored{fmt.Sprintf("labelSelector.rawSelector ignored: %v", errRawSelectorTooLong)}
		}
		parsed, err := labels.Parse(in.RawSelector)
		if err != nil {
			return nil, Ignored{fmt.Sprintf("labelSelector.rawSelector ignored: %v", err)}
		}
		requirements, _ := parsed.Requirements()
		return requirements, nil
	}
	var kept labels.Requirements
	var ignored Ignored
	for i, r := range in.Requirements {
		operator, ok := labelOperators[r.Operator]
		if !ok {
			ignored.add("labelSelector.requirements[%d] ignored: unknown operator %.64q", i, r.Operator)
			continue
		}
		requirement, err := labels.NewRequirement(r.Key, operator, r.Values)
		if err != nil {
			ignored.add("labelSelector.requirements[%d] ignored: %.500s", i, err.Error())
			continue
		}
		kept = append(kept, *requirement)
	}
	return kept, ignored
}

var labelOperators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn:           selection.In,
	metav1.LabelSelectorOpNotIn:        selection.NotIn,
	metav1.LabelSelectorOpExists:       selection.Exists,
	metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

// Validate returns all errors for which kube-apiserver refuses a review's spec.
func Validate(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	var errs field.ErrorList
	if (spec.ResourceAttributes == nil) == (spec.NonResourceAttributes == nil) {
		errs = append(errs,
			field.Invalid(specPath(), field.OmitValueType{}, "set exactly one of resourceAttributes and nonResourceAttributes"))
	}
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Required(specPath().Child("user"), "set user, groups or both"))
	}
	if in := spec.ResourceAttributes; in != nil && (in.FieldSelector != nil || in.LabelSelector != nil) {
		errs = append(errs, validateSelectors(in, specPath().Child("resourceAttributes"))...)
	}
	return errs
}

// specPath allocates, so that it is called only where the path may be used.
func specPath() *field.Path { return field.NewPath("spec") }

// validateSelectors accepts unknown operators: clients may be newer, and Attributes drops
// what it cannot use.
func validateSelectors(in *authorizationv1.ResourceAttributes, path *field.Path) field.ErrorList {
	return append(validateFields(in.FieldSelector, path.Child("fieldSelector")),
		validateLabels(in.LabelSelector, path.Child("labelSelector"))...)
}

func validateFields(s *authorizationv1.FieldSelectorAttributes, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	options := validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
	return append(validateForm(at, s.RawSelector, len(s.Requirements)),
		each(s.Requirements, at, func(r metav1.FieldSelectorRequirement, at *field.Path) field.ErrorList {
			return validation.ValidateFieldSelectorRequirement(r, options, at)
		})...)
}

func validateLabels(s *authorizationv1.LabelSelectorAttributes, at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	options := validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
	return append(validateForm(at, s.RawSelector, len(s.Requirements)),
		each(s.Requirements, at, func(r metav1.LabelSelectorRequirement, at *field.Path) field.ErrorList {
			return validation.ValidateLabelSelectorRequirement(r, options, at)
		})...)
}

// dropInvalidSelectors keeps the selectors that are valid, and says which are not.
func dropInvalidSelectors(in *authorizationv1.ResourceAttributes) (dropped Ignored) {
	if in == nil || in.FieldSelector == nil && in.LabelSelector == nil {
		return nil
	}
	if errs := validateFields(in.FieldSelector, field.NewPath("fieldSelector")); len(errs) > 0 {
		in.FieldSelector = nil
		dropped.add("fieldSelector ignored: %.500s", errs[0].Error())
	}
	if errs := validateLabels(in.LabelSelector, field.NewPath("labelSelector")); len(errs) > 0 {
		in.LabelSelector = nil
		dropped.add("labelSelector ignored: %.500s", errs[0].Error())
	}
	return dropped
}

func validateForm(at *field.Path, raw string, requirements int) field.ErrorList {
	if (raw == "") == (requirements == 0) {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "set exactly one of rawSelector and requirements")}
	}
	return nil
}

// maxErrors is the maximum number of errors about requirements in each selector.
const maxErrors = 10

func each[R any](requirements []R, at *field.Path, validate func(R, *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for i, r := range requirements {
		if len(errs) >= maxErrors {
			break
		}
		errs = append(errs, validate(r, at.Child("requirements").Index(i))...)
	}
	return errs
}
