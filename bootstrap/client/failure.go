package client

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Refused is the error that says that the service will not give this machine a
// token.
type Refused struct {
	// Status is that of HTTP.
	Status int
	// Code is the reason, one of docs/reasons.md; empty where the answer has none.
	Code verdict.Code
	// Summary is what the answer says about it, one line.
	Summary string
}

func (r *Refused) Error() string {
	text := "the bootstrap service refuses: " + r.reason()
	if r.Code == "" {
		return text
	}
	return text + "; docs/reasons.md says what to do"
}

func (r *Refused) reason() string {
	if r.Code == "" {
		return r.Summary
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Summary)
}

// canPass reports whether the reason may be gone in a moment: the cloud tells of
// new machines, their tags and profiles late, and a node or a machine of the
// same name may be on its way out.
func (r *Refused) canPass() bool {
	switch r.Code {
	case "AlreadyRegistered", "NameTaken",
		"InstanceNotFound", "InstanceNotRunning", "WrongCluster", "WrongInstanceProfile",
		"CallerIdentityMissing", "ChallengeInvalid":
		return true
	}
	return false
}

// Unreachable is the error that says that until the timeout nobody answered.
type Unreachable struct {
	// After is how long it was tried, Tries how often.
	After time.Duration
	Tries int
	// Err is why the last try failed.
	Err error
}

func (u *Unreachable) Error() string {
	return fmt.Sprintf("gave up after %s: %v", effort(u.After, u.Tries), u.Err)
}
func (u *Unreachable) Unwrap() error { return u.Err }

// TimedOut is the error that says that the bootstrap service was reached, but
// gave neither a token nor a refusal until the timeout.
type TimedOut struct {
	// After is how long it was tried, Tries how often.
	After time.Duration
	Tries int
	// Err is what came of the last try.
	Err error
}

func (t *TimedOut) Error() string {
	return fmt.Sprintf("timed out after %s: %v", effort(t.After, t.Tries), t.Err)
}
func (t *TimedOut) Unwrap() error { return t.Err }

// effort says how long and how often something was tried.
func effort(after time.Duration, tries int) string {
	text := after.Round(10 * time.Millisecond).String()
	if tries == 1 {
		return text + " and 1 try"
	}
	return fmt.Sprintf("%s and %d tries", text, tries)
}

// later is a failed try that is worth another.
type later struct {
	err error
	// reached tells that somebody took the request.
	reached bool
	// after is how long the service asks to wait.
	after time.Duration
}

func (l *later) Error() string { return l.err.Error() }
func (l *later) Unwrap() error { return l.err }

// noEvidence wraps what a collector could not do.
func noEvidence(doing string, err error) error {
	return &later{err: fmt.Errorf("%s: %w", doing, err)}
}

// finally is the error for a failed try when no other follows.
func finally(last *later, after time.Duration, tries int) error {
	refused := new(Refused)
	switch {
	case errors.As(last, &refused):
		return refused
	case last.reached:
		return &TimedOut{After: after, Tries: tries, Err: last.err}
	}
	return &Unreachable{After: after, Tries: tries, Err: last.err}
}

// ofUser says as which user a file could not be read or written. Units that kops
// wrote run the client in a container without saying as whom, with files of root.
func ofUser(err error, uid int) error {
	path := new(fs.PathError)
	if !errors.As(err, &path) || !errors.Is(path, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w; this runs as user %d: run it as a user who may, root for example (in a container with --user=0)", err, uid)
}
