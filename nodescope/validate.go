package nodescope

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// Bounds of a NodeScope. The schema of the custom resource has them too.
const (
	// MaxListed is the maximum length of each list.
	MaxListed = 64
	// MaxText is the maximum length of each text in a list, in bytes.
	MaxText = 253
)

// Validate returns what is not valid in a NodeScope. It does not rely on the schema of the custom
// resource.
func Validate(object *v1alpha1.NodeScope) field.ErrorList {
	spec, at := &object.Spec, field.NewPath("spec")
	errs := listed(at.Child("subjects"), spec.Subjects, validateSubject)
	if len(spec.Subjects) == 0 {
		errs = append(errs, field.Required(at.Child("subjects"), "name at least one service account"))
	}
	errs = append(errs, oneOf(at.Child("mode"), spec.Mode, v1alpha1.Observe, v1alpha1.Enforce)...)
	errs = append(errs, oneOf(at.Child("tokensWithoutNode"), spec.TokensWithoutNode, v1alpha1.Deny, v1alpha1.Allow, "")...)
	errs = append(errs, oneOf(at.Child("otherwise"), spec.Otherwise, v1alpha1.Deny, v1alpha1.Allow, "")...)
	errs = append(errs, listed(at.Child("namedAsNode"), spec.NamedAsNode, validateNamed)...)
	errs = append(errs, listed(at.Child("selectsNode"), spec.SelectsNode, validateSelected)...)
	errs = append(errs, listed(at.Child("podsOnNode"), spec.PodsOnNode, validatePods)...)
	return append(errs, listed(at.Child("anywhere"), spec.Anywhere, validateAnywhere)...)
}

func validateSubject(s *v1alpha1.Subject, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, why := range validation.IsDNS1123Label(s.Namespace) {
		errs = append(errs, field.Invalid(at.Child("namespace"), cut(s.Namespace), why))
	}
	if s.Name != "" {
		for _, why := range validation.IsDNS1123Subdomain(s.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), cut(s.Name), why))
		}
	}
	return errs
}

func validateNamed(r *v1alpha1.NamedRule, at *field.Path) field.ErrorList {
	return slices.Concat(texts(at.Child("apiGroups"), r.APIGroups, anyText), texts(at.Child("resources"), r.Resources, required),
		texts(at.Child("verbs"), r.Verbs, required), texts(at.Child("namespaces"), r.Namespaces, optional))
}

func validateSelected(r *v1alpha1.SelectedRule, at *field.Path) field.ErrorList {
	errs := slices.Concat(texts(at.Child("apiGroups"), r.APIGroups, anyText), texts(at.Child("resources"), r.Resources, required),
		texts(at.Child("verbs"), r.Verbs, required), texts(at.Child("namespaces"), r.Namespaces, optional),
		text(at.Child("field"), r.Field))
	for i, verb := range r.Verbs {
		errs = append(errs, oneOf(at.Child("verbs").Index(i), verb, "list", "watch", "deletecollection")...)
	}
	return errs
}

func validatePods(r *v1alpha1.PodRule, at *field.Path) field.ErrorList {
	errs := slices.Concat(listed(at.Child("apiGroups"), r.APIGroups, validatePodGroup),
		texts(at.Child("resources"), r.Resources, required), texts(at.Child("verbs"), r.Verbs, required),
		texts(at.Child("namespaces"), r.Namespaces, optional))
	for i, resource := range r.Resources {
		of := at.Child("resources").Index(i)
		switch {
		case resource == "pods" || resource == allOfPods:
		case strings.Contains(resource, "*"):
			errs = append(errs, field.Invalid(of, cut(resource), "must be one resource or subresource, or pods/*"))
		case len(r.APIGroups) == 0 && !strings.HasPrefix(resource, "pods/"):
			errs = append(errs, field.Invalid(of, cut(resource),
				"must be pods, pods/*, or a subresource such as pods/status; others need apiGroups"))
		}
	}
	return errs
}

// validatePodGroup refuses every group at once: that objects are named like pods is true of single resources.
func validatePodGroup(group *string, at *field.Path) field.ErrorList {
	switch {
	case *group == "":
		return nil
	case strings.Contains(*group, "*"):
		return field.ErrorList{field.Invalid(at, cut(*group), "must be one group")}
	}
	return text(at, *group)
}

// validateAnywhere checks a rule for resources or for paths.
func validateAnywhere(r *v1alpha1.AnywhereRule, at *field.Path) field.ErrorList {
	errs := texts(at.Child("verbs"), r.Verbs, required)
	if len(r.NonResourceURLs) == 0 {
		return slices.Concat(errs, texts(at.Child("apiGroups"), r.APIGroups, anyText), texts(at.Child("resources"), r.Resources, required),
			texts(at.Child("resourceNames"), r.ResourceNames, optional), texts(at.Child("namespaces"), r.Namespaces, optional))
	}
	if len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames)+len(r.Namespaces) > 0 {
		errs = append(errs, field.Forbidden(at.Child("nonResourceURLs"),
			"a rule for paths has no apiGroups, resources, resourceNames and namespaces: write two rules"))
	}
	return append(errs, texts(at.Child("nonResourceURLs"), r.NonResourceURLs, required)...)
}

// listed checks the entries of a list and its length.
func listed[T any](at *field.Path, list []T, check func(*T, *field.Path) field.ErrorList) field.ErrorList {
	if len(list) > MaxListed {
		return field.ErrorList{field.TooMany(at, len(list), MaxListed)}
	}
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, check(&list[i], at.Index(i))...)
	}
	return errs
}

// demand is what is required of a list of texts.
type demand uint8

const (
	// optional: the list may be empty, its texts may not.
	optional demand = iota
	// required: neither may be empty.
	required
	// anyText: the list may not be empty, its texts may.
	anyText
)

func texts(at *field.Path, list []string, d demand) field.ErrorList {
	if len(list) == 0 && d != optional {
		return field.ErrorList{field.Required(at, "name at least one")}
	}
	return listed(at, list, func(value *string, at *field.Path) field.ErrorList {
		if *value == "" && d == anyText {
			return nil
		}
		return text(at, *value)
	})
}

func text(at *field.Path, value string) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(at, "must not be empty")}
	case len(value) > MaxText:
		return field.ErrorList{field.TooLong(at, "", MaxText)}
	}
	return nil
}

func oneOf[T ~string](at *field.Path, value T, known ...T) field.ErrorList {
	if slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, T(cut(string(value))), known)}
}

// cut shortens what an error repeats.
func cut(text string) string {
	const longest = 80
	if len(text) <= longest {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:longest], ""), len(text))
}
