package v1alpha1

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	dns "k8s.io/apimachinery/pkg/util/validation"
)

// Limits of files with techniques.
const (
	maxTechniques    = 100
	maxEntries       = 16 // of a list in a technique
	maxSummaryLength = 200
	maxTextLength    = 1000

	techniqueCode = `^[A-Z][A-Za-z0-9]{2,62}$`
	attackID      = `^T[0-9]{4}(\.[0-9]{3})?$`
	verbForm      = `^[a-z][a-z0-9:-]{0,62}$`
	resourceForm  = `^[a-z][a-z0-9-]{0,252}$`
)

func hasForm(form, value string) bool { return regexp.MustCompile(form).MatchString(value) }

// techniqueValidation finds mistakes in techniques.
type techniqueValidation struct {
	validation
	taken map[string]string
	// given reports whether the file has a field.
	given func(field string) bool
}

func (v *techniqueValidation) techniques(t *Techniques) {
	if len(t.Techniques) == 0 {
		v.wrong("techniques", "empty: write at least one technique")
	}
	if len(t.Techniques) > maxTechniques {
		v.wrong("techniques", "%d techniques, want at most %d", len(t.Techniques), maxTechniques)
		return
	}
	seen := map[string]bool{}
	for i := range t.Techniques {
		v.technique(elementPath("techniques", i), &t.Techniques[i], seen)
	}
}

func (v *techniqueValidation) technique(field string, t *Technique, seen map[string]bool) {
	v.code(field+".code", t.Code, seen)
	v.line(field+".summary", t.Summary, maxSummaryLength, true, "what the technique does")
	if t.Attack != "" && !hasForm(attackID, t.Attack) {
		v.wrong(field+".attack", "want an id of MITRE ATT&CK, for example T1098 or T1098.006%s", given(t.Attack))
	}
	v.count(field+".allowedBy", len(t.AllowedBy), 1, "a request")
	v.count(field+".with", len(t.With), 0, "")
	v.count(field+".gives", len(t.Gives), 1, "a holding")
	for i := range t.AllowedBy[:min(maxEntries, len(t.AllowedBy))] {
		v.request(elementPath(field+".allowedBy", i), &t.AllowedBy[i], false)
	}
	clusterScoped := slices.ContainsFunc(t.AllowedBy, func(r TechniqueRequest) bool { return r.Scope == ClusterScope })
	for i := range t.With[:min(maxEntries, len(t.With))] {
		v.request(elementPath(field+".with", i), &t.With[i], true)
		v.related(elementPath(field+".with", i)+".namespace", t.With[i].Namespace, clusterScoped)
	}
	for i, h := range t.Gives[:min(maxEntries, len(t.Gives))] {
		v.holding(elementPath(field+".gives", i), &h)
		v.related(elementPath(field+".gives", i)+".namespace", h.Namespace, clusterScoped)
		v.related(elementPath(field+".gives", i)+".name", h.Name, clusterScoped)
	}
	v.line(field+".dependsOn", t.DependsOn, maxTextLength, false, "")
	v.line(field+".remedy", t.Remedy, maxTextLength, true, "how to take the technique away")
}

func (v *techniqueValidation) code(field, code string, seen map[string]bool) {
	switch {
	case !hasForm(techniqueCode, code):
		v.wrong(field, "want a name in CamelCase of 3 to 63 letters and digits, for example ArgoCDApplication%s", given(code))
	case v.taken[code] != "":
		v.wrong(field, "%s is the code of %s: choose another", code, v.taken[code])
	case seen[code]:
		v.wrong(field, "%s is the code of a technique before: choose another", code)
	}
	seen[code] = true
}

// line rejects text that is not one printable line.
func (v *techniqueValidation) line(field, text string, limit int, required bool, want string) {
	switch {
	case text == "" && required:
		v.wrong(field, "required: write in one line %s", want)
	case len(text) > limit:
		v.wrong(field, "%d bytes, want at most %d", len(text), limit)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		v.wrong(field, "want one line of printable text%s", given(text))
	case strings.TrimSpace(text) != text:
		v.wrong(field, "want text without spaces around it%s", given(text))
	}
}

func (v *techniqueValidation) count(field string, n, least int, want string) {
	switch {
	case n < least:
		v.wrong(field, "required: write at least %s", want)
	case n > maxEntries:
		v.wrong(field, "%d entries, want at most %d: divide the technique", n, maxEntries)
	}
}

// related rejects SameNamespace where no namespace is meant.
func (v *techniqueValidation) related(field, value string, clusterScoped bool) {
	if value == SameNamespace && clusterScoped {
		v.wrong(field, "%s is the namespace in which a right of allowedBy holds, and one has the scope Cluster: name the namespace",
			SameNamespace)
	}
}

func (v *techniqueValidation) request(field string, r *TechniqueRequest, with bool) {
	v.verbs(field+".verbs", r.Verbs)
	switch {
	case !v.given(field + ".apiGroup"):
		v.wrong(field+".apiGroup", `required: write the group, or "" for the core group`)
	case r.APIGroup != "" && len(dns.IsDNS1123Subdomain(r.APIGroup)) > 0:
		v.wrong(field+".apiGroup", "want one group, for example argoproj.io%s", given(r.APIGroup))
	}
	switch {
	case strings.Contains(r.Resource, "/"):
		v.wrong(field+".resource", "want a resource alone%s: write what follows the slash as subresource", given(r.Resource))
	case !hasForm(resourceForm, r.Resource):
		v.wrong(field+".resource", "want one resource, lower case and plural, for example applications%s", given(r.Resource))
	}
	if r.Subresource != "" && !hasForm(resourceForm, r.Subresource) {
		v.wrong(field+".subresource", "want one subresource, for example status%s", given(r.Subresource))
	}
	if r.Scope != "" {
		oneOf(&v.validation, field+".scope", r.Scope, NamespacedScope, ClusterScope)
	}
	v.requestNamespace(field+".namespace", r, with)
	if r.Name != "" && (strings.Contains(r.Name, "*") || !isObjectName(r.Name)) {
		v.wrong(field+".name", "want the name of one object, or no name for any object%s", given(r.Name))
	}
}

func (v *techniqueValidation) verbs(field string, verbs []string) {
	v.count(field, len(verbs), 1, "a verb: a request has one")
	v.list(field, verbs[:min(maxEntries, len(verbs))], func(verb string) bool { return hasForm(verbForm, verb) },
		"the verb of a request, for example create or patch")
}

func (v *techniqueValidation) requestNamespace(field string, r *TechniqueRequest, with bool) {
	switch {
	case r.Namespace == "":
	case r.Scope == ClusterScope:
		v.wrong(field, "objects of the scope Cluster have no namespace: remove it, or the scope")
	case r.Namespace == SameNamespace && with:
	case r.Namespace == SameNamespace:
		v.wrong(field, "%s is the namespace of this request: remove the field, which means any namespace", SameNamespace)
	case !isNamespaceName(r.Namespace):
		v.wrong(field, "want the name of one namespace, or no namespace for any%s", given(r.Namespace))
	}
}

func (v *techniqueValidation) holding(field string, h *TechniqueHolding) {
	switch h.Kind {
	case HoldingServiceAccount, HoldingSecret:
		if h.Namespace != SameNamespace && h.Namespace != "*" && !isNamespaceName(h.Namespace) {
			v.wrong(field+".namespace", `want the name of a namespace, %q, or "*" for every namespace%s`, SameNamespace, given(h.Namespace))
		}
		v.namePattern(field+".name", h, "")
	case HoldingNode:
		v.noNamespace(field, h)
		v.namePattern(field+".name", h, "")
	case HoldingNamespace:
		v.noNamespace(field, h)
		v.namePattern(field+".name", h, ", "+SameNamespace)
	case HoldingUser, HoldingGroup:
		v.noNamespace(field, h)
		v.identity(field+".name", h)
	case HoldingClusterAdmin:
		v.noNamespace(field, h)
		if h.Name != "" {
			v.wrong(field+".name", "%s has no name: remove it", h.Kind)
		}
	default:
		v.choice(field+".kind", string(h.Kind), "ServiceAccount", "Node", "Secret", "Namespace", "User", "Group", "ClusterAdmin")
	}
}

func (v *techniqueValidation) noNamespace(field string, h *TechniqueHolding) {
	if h.Namespace != "" {
		v.wrong(field+".namespace", "a %s has no namespace: remove it", h.Kind)
	}
}

// namePattern rejects what is neither a name nor the beginning of names and a star.
func (v *techniqueValidation) namePattern(field string, h *TechniqueHolding, also string) {
	if h.Name == SameNamespace && h.Kind == HoldingNamespace || h.Name == "*" {
		return
	}
	name := strings.TrimSuffix(h.Name, "*")
	if name == "" || strings.ContainsAny(name, "*{}") || !isObjectName(name) {
		v.wrong(field, `want a name%s, the beginning of names and *, or "*" for every %s%s`, also, h.Kind, given(h.Name))
	}
}

// identity rejects names of users and groups that stand for other kinds.
func (v *techniqueValidation) identity(field string, h *TechniqueHolding) {
	switch {
	case h.Name == "" || strings.ContainsAny(h.Name, "*{}"):
		v.wrong(field, "want the name of one %s%s", strings.ToLower(string(h.Kind)), given(h.Name))
	case h.Kind == HoldingUser && strings.HasPrefix(h.Name, "system:serviceaccount:"):
		v.wrong(field, "%s is a service account: write it with the kind ServiceAccount", quoted(h.Name))
	case h.Kind == HoldingUser && strings.HasPrefix(h.Name, "system:node:"):
		v.wrong(field, "%s is a node: write it with the kind Node", quoted(h.Name))
	default:
		v.line(field, h.Name, dns.DNS1123SubdomainMaxLength, true, "")
	}
}

func isNamespaceName(name string) bool { return len(dns.IsDNS1123Label(name)) == 0 }

// isObjectName reports whether an object can have this name.
func isObjectName(name string) bool {
	return len(name) <= dns.DNS1123SubdomainMaxLength && len(content.IsPathSegmentName(name)) == 0 &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' || r == unicode.ReplacementChar })
}
