package generate

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// Policies are the policies of some NodeScopes.
type Policies struct {
	// Policies are the policies of the scopes, by name.
	Policies []*Policy `json:"policies"`
	// Manifest has all objects as YAML.
	Manifest string `json:"manifest"`
}

// DocumentKind is the kind of the policies as a document.
func (*Policies) DocumentKind() string { return "ScopeAdmissionPolicies" }

// Write writes the objects of policies as YAML, with what they do not enforce as comments.
func Write(all []*Policy) (*Policies, error) {
	var b strings.Builder
	for i, p := range all {
		if i > 0 {
			b.WriteString("---\n")
		}
		comment(&b, "Enforces NodeScope %s as far as admission can. It does not enforce:", p.Scope)
		for _, l := range p.CannotExpress {
			rule := ""
			if l.Rule != "" {
				rule = l.Rule + ": "
			}
			comment(&b, "- %s%s", rule, l.Why)
		}
		if err := object(&b, p.policy); err != nil {
			return nil, err
		}
		b.WriteString("---\n")
		if err := object(&b, p.binding); err != nil {
			return nil, err
		}
	}
	return &Policies{Policies: all, Manifest: b.String()}, nil
}

func comment(b *strings.Builder, format string, args ...any) {
	b.WriteString("# " + strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, fmt.Sprintf(format, args...)) + "\n")
}

// object writes an object without the fields that an API server fills in.
func object(b *strings.Builder, o any) error {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	delete(fields, "status")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	written, err := yaml.Marshal(fields)
	if err != nil {
		return fmt.Errorf("write a policy: %w", err)
	}
	b.Write(written)
	return nil
}
