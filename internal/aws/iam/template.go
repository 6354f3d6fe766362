package iam

import (
	"fmt"
	"slices"
	"strings"
)

// The placeholders of usernames and groups in mappings, each in double braces:
// "system:node:{{EC2PrivateDNSName}}". aws-iam-authenticator has the same.
const (
	// PlaceholderPrivateDNSName is the private DNS name of the EC2 instance whose id is
	// the session's name.
	PlaceholderPrivateDNSName = "EC2PrivateDNSName"
	// PlaceholderAccountID is the caller's account, 12 digits.
	PlaceholderAccountID = "AccountID"
	// PlaceholderSessionName is the name of the caller's session, with each @ replaced by -.
	PlaceholderSessionName = "SessionName"
	// PlaceholderSessionNameRaw is the unchanged name of the caller's session.
	PlaceholderSessionNameRaw = "SessionNameRaw"
	// PlaceholderAccessKeyID is the id of the credentials that signed.
	PlaceholderAccessKeyID = "AccessKeyID"
)

// Placeholders lists all placeholders.
func Placeholders() []string {
	return []string{
		PlaceholderPrivateDNSName, PlaceholderAccountID, PlaceholderSessionName,
		PlaceholderSessionNameRaw, PlaceholderAccessKeyID,
	}
}

// Template is a text with placeholders. The zero value is the empty text.
type Template struct {
	pieces []piece
}

// piece is a placeholder, or text between them.
type piece struct {
	text        string
	placeholder bool
}

// TemplateError describes a mistake in a template.
type TemplateError struct {
	// Token is the invalid text, with its braces.
	Token string
	// Spaced is true for a placeholder with spaces between its braces.
	Spaced bool
	// Instead is the placeholder that was probably meant. It is empty if none is similar.
	Instead string
}

func (e *TemplateError) Error() string {
	switch {
	case e.Spaced:
		return fmt.Sprintf("%s has spaces between its braces: write {{%s}}", quote(e.Token), e.Instead)
	case e.Instead != "":
		return fmt.Sprintf("%s is not a placeholder: write {{%s}}", quote(e.Token), e.Instead)
	default:
		return fmt.Sprintf("%s is not a placeholder: want one of {{%s}}", quote(e.Token), strings.Join(Placeholders(), "}}, {{"))
	}
}

// ParseTemplate reads a template. Double braces always delimit a placeholder. An unknown
// one is a [*TemplateError]: aws-iam-authenticator takes it for plain text, which makes
// one user of all callers.
func ParseTemplate(text string) (Template, error) {
	var t Template
	for text != "" {
		at := strings.Index(text, "{{")
		plain := text
		if at >= 0 {
			plain = text[:at]
		}
		if end := strings.Index(plain, "}}"); end >= 0 {
			return Template{}, unknownToken(plain[:end+2])
		}
		if plain != "" {
			t.pieces = append(t.pieces, piece{text: plain})
		}
		if at < 0 {
			break
		}
		name, rest, closed := strings.Cut(text[at+2:], "}}")
		if !closed || !slices.Contains(Placeholders(), name) {
			return Template{}, unknownToken(text[at : len(text)-len(rest)])
		}
		t.pieces = append(t.pieces, piece{text: name, placeholder: true})
		text = rest
	}
	return t, nil
}

// unknownToken returns the error for an unknown token.
func unknownToken(token string) *TemplateError {
	e := &TemplateError{Token: token}
	inner := strings.TrimSuffix(strings.TrimPrefix(token, "{{"), "}}")
	spaceless := strings.Join(strings.Fields(inner), "")
	bare := strings.Trim(spaceless, "{}")
	for _, known := range Placeholders() {
		if strings.EqualFold(bare, known) {
			e.Instead = known
			e.Spaced = spaceless == known && inner != known
		}
	}
	return e
}

// Uses reports whether the template has a placeholder.
func (t Template) Uses(placeholder string) bool {
	return slices.Contains(t.pieces, piece{placeholder, true})
}

// UsesSession reports whether the template depends on the name of the session, which any
// principal that may assume the role can choose.
func (t Template) UsesSession() bool {
	return t.Uses(PlaceholderPrivateDNSName) || t.Uses(PlaceholderSessionName) || t.Uses(PlaceholderSessionNameRaw)
}

// Literal returns the text up to the first placeholder, and whether that is all.
func (t Template) Literal() (prefix string, whole bool) {
	for _, p := range t.pieces {
		if p.placeholder {
			return prefix, false
		}
		prefix += p.text
	}
	return prefix, true
}

// Expand replaces the placeholders with values. It requests each value once and inserts
// it verbatim. It returns errors of value unchanged.
func (t Template) Expand(value func(placeholder string) (string, error)) (string, error) {
	if text, whole := t.Literal(); whole {
		return text, nil
	}
	var text strings.Builder
	known := map[string]string{}
	for _, p := range t.pieces {
		if !p.placeholder {
			text.WriteString(p.text)
			continue
		}
		v, ok := known[p.text]
		if !ok {
			var err error
			if v, err = value(p.text); err != nil {
				return "", err
			}
			known[p.text] = v
		}
		text.WriteString(v)
	}
	return text.String(), nil
}

// String returns the template as it was written.
func (t Template) String() string {
	var text strings.Builder
	for _, p := range t.pieces {
		if p.placeholder {
			text.WriteString("{{" + p.text + "}}")
		} else {
			text.WriteString(p.text)
		}
	}
	return text.String()
}
