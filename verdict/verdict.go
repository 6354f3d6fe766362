// Package verdict defines the answers of all parts of node-authorizer: a [Decision],
// and a [Reason] that says why. The evaluators return them; programs compare the
// Reason's Code, and people read its Message, Path and Hint.
//
// A Reason is typed. Its Code is stable and documented in docs/reference/reasons, so that
// metrics, tests and people can use it as a key; its Message is one line for people;
// its Path is the chain of object references that grants access, or, for a refusal,
// the nearest chain that exists; its Hint says what to change.
//
// An error is never a Decision. Code that could not evaluate a question
// returns an error beside the zero Decision, which is Deny.
package verdict

import "fmt"

// Decision is the outcome of one evaluator for one question. The zero value is
// Deny, so that a forgotten assignment fails closed.
type Decision uint8

const (
	// Deny refuses the request regardless of later authorizers.
	Deny Decision = iota
	// Allow grants the request.
	Allow
	// NoOpinion leaves the request to later authorizers; when none allows it,
	// the request is refused. The Node authorizer never answers Deny.
	NoOpinion
)

// String returns "Deny", "Allow" or "NoOpinion".
func (d Decision) String() string {
	switch d {
	case Deny:
		return "Deny"
	case Allow:
		return "Allow"
	case NoOpinion:
		return "NoOpinion"
	}
	return fmt.Sprintf("Decision(%d)", uint8(d))
}

// MarshalText makes decisions readable in JSON and YAML.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *Decision) UnmarshalText(text []byte) error {
	for _, known := range []Decision{Deny, Allow, NoOpinion} {
		if string(text) == known.String() {
			*d = known
			return nil
		}
	}
	return fmt.Errorf("unknown decision %q: want Deny, Allow or NoOpinion", text)
}

// Code names a reason. Codes are stable across releases: CamelCase, and only
// ever added.
type Code string

// Reason says why a Decision was taken.
type Reason struct {
	// Code is the stable name of the reason.
	Code Code `json:"code"`
	// Message is one line for people, without a trailing full stop.
	Message string `json:"message"`
	// Path leads from the object asked for to the node that asks. For a
	// refusal it is the nearest path that exists, to another node or to the
	// object where it breaks off; it is empty when nothing refers to the object.
	Path Path `json:"path,omitempty"`
	// Hint says what would have to change for another answer.
	Hint string `json:"hint,omitempty"`
}
