package iam

import (
	"fmt"
	"slices"
	"strings"
)

// The placeholders that the username and the groups of a mapping may have, each
// between two pairs of braces: "system:node:{{EC2PrivateDNSName}}". They are those of
// aws-iam-authenticator.
const (
	// PlaceholderPrivateDNSName is the private DNS name of the EC2 instance whose id is
	// the session's name.
	PlaceholderPrivateDNSName = "EC2PrivateDNSName"
	// PlaceholderAccountID is the caller's account, 12 digits.
	PlaceholderAccountID = "AccountID"
	// PlaceholderSessionName is the name of the caller's session, each @ written as -.
	PlaceholderSessionName = "SessionName"
	// PlaceholderSessionNameRaw is the name of the caller's session as it is.
	PlaceholderSessionNameRaw = "SessionNameRaw"
	// PlaceholderAccessKeyID is the id of the credentials that signed.
	PlaceholderAccessKeyID = "AccessKeyID"
)

// Placeholders lists them.
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

// TemplateError says what is wrong with a template.
type TemplateError struct {
	// Token is what stands there, with its braces as far as they go.
	Token string
	// Spaced is true if it would be a placeholder but for spaces between its braces.
	Spaced bool
	// Instead is the placeholder that was probably meant; empty if there is none like it.
	Instead string
}

func (e *TemplateError) Error() string {
	switch {
	case e.Spaced:
		return fmt.Sprintf("%s has spaces between its braces: write {{%s}}", quote(e.Token), e.Instead)
	case e.Instead != "":
		return fmt.Sprintf("%s is no placeholder: write {{%s}}", quote(e.Token), e.Instead)
	default:
		return fmt.Sprintf("%s is no placeholder: there are {{%s}}", quote(e.Token), strings.Join(Placeholders(), "}}, {{"))
	}
}

// ParseTemplate reads a template. Two braces begin or end a placeholder wherever they
// stand; aws-iam-authenticator takes what it does not know for plain text, which makes
// one user of all callers, so that it is a [*TemplateError] here.
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

// unknownToken makes the error about something with braces.
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

// UsesSession reports whether what the template becomes depends on the name of the
// session, which whoever may assume the role can choose.
func (t Template) UsesSession() bool {
	return t.Uses(PlaceholderPrivateDNSName) || t.Uses(PlaceholderSessionName) || t.Uses(PlaceholderSessionNameRaw)
}

// Literal is the text up to the first placeholder, and whether that is all.
func (t Template) Literal() (prefix string, whole bool) {
	for _, p := range t.pieces {
		if p.placeholder {
			return prefix, false
		}
		prefix += p.text
	}
	return prefix, true
}

// Expand puts values for the placeholders. A value is asked for once, however often
// its placeholder occurs, and what is in it stays as it is. An error of value is
// returned as it is.
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

// String is the template as it was written.
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
