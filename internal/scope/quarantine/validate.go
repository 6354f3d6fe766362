package quarantine

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// MaxListed is the maximum length of each list, and MaxText the maximum length of each text in one, in bytes. The
// schema of the custom resource has them too.
const (
	MaxListed = 64
	MaxText   = 253
)

// credentialID matches the ids that API servers give to certificates and to tokens.
//
// Source: KEP-4193.
var credentialID = regexp.MustCompile(`^(X509SHA256=[0-9a-f]{64}|JTI=[0-9a-zA-Z-]{1,128})$`)

// Validate returns what is not valid in a Quarantine. It does not rely on the schema of the custom
// resource.
func Validate(object *v1alpha1.Quarantine) field.ErrorList {
	spec, at := &object.Spec, field.NewPath("spec")
	var errs field.ErrorList
	switch {
	case spec.Node == "" && spec.Credential == "":
		errs = append(errs, field.Required(at, "name a node or a credential"))
	case spec.Node != "" && spec.Credential != "":
		errs = append(errs, field.Forbidden(at.Child("credential"), "a Quarantine has a node or a credential, not both"))
	case spec.Node != "":
		for _, why := range validation.IsDNS1123Subdomain(spec.Node) {
			errs = append(errs, field.Invalid(at.Child("node"), spec.Node, why))
		}
	case !credentialID.MatchString(spec.Credential):
		errs = append(errs, field.Invalid(at.Child("credential"), spec.Credential,
			"must be X509SHA256= and 64 hexadecimal digits in lower case, or JTI= and the id of a token"))
	}
	if len(spec.Allow) > MaxListed {
		return append(errs, field.TooMany(at.Child("allow"), len(spec.Allow), MaxListed))
	}
	for i := range spec.Allow {
		errs = append(errs, validateRule(&spec.Allow[i], at.Child("allow").Index(i))...)
	}
	return errs
}

func validateRule(r *v1alpha1.QuarantineRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name   string
		values []string
	}{
		{"apiGroups", r.APIGroups},
		{"resources", r.Resources},
		{"resourceNames", r.ResourceNames},
		{"verbs", r.Verbs},
		{"nonResourceURLs", r.NonResourceURLs},
		{"namespaces", r.Namespaces},
	} {
		errs = append(errs, bounded(at.Child(list.name), list.values)...)
	}
	if len(r.ServiceAccounts) > MaxListed {
		errs = append(errs, field.TooMany(at.Child("serviceAccounts"), len(r.ServiceAccounts), MaxListed))
	}
	for i, account := range r.ServiceAccounts {
		if account.Namespace == "" {
			errs = append(errs, field.Required(at.Child("serviceAccounts").Index(i).Child("namespace"), "name the namespace"))
		}
	}
	if len(r.Verbs) == 0 {
		errs = append(errs, field.Required(at.Child("verbs"), "name at least one"))
	}
	resources, paths := len(r.APIGroups)+len(r.Resources) > 0, len(r.NonResourceURLs) > 0
	switch {
	case resources == paths:
		errs = append(errs, field.Invalid(at, "", "a rule has either apiGroups and resources, or nonResourceURLs"))
	case resources && (len(r.APIGroups) == 0 || len(r.Resources) == 0):
		errs = append(errs, field.Required(at, "a rule for resources has apiGroups and resources"))
	}
	return errs
}

func bounded(at *field.Path, values []string) field.ErrorList {
	if len(values) > MaxListed {
		return field.ErrorList{field.TooMany(at, len(values), MaxListed)}
	}
	var errs field.ErrorList
	for i, value := range values {
		if len(value) > MaxText {
			errs = append(errs, field.TooLong(at.Index(i), "", MaxText))
		}
	}
	return errs
}
