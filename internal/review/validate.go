package review

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
