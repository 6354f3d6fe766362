package client

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Refused is the error of a service that will not give this machine a token.
type Refused struct {
	// Status is the HTTP status.
	Status int
	// Code is the reason, which node-authorizer explain-code explains; empty if the answer has none.
	Code verdict.Code
	// Summary is the explanation in the answer, one line.
	Summary string
}

func (r *Refused) Error() string {
	text := "the bootstrap service refuses: " + r.reason()
	if r.Code == "" {
		return text
	}
	return text + "; node-authorizer explain-code " + string(r.Code) + " says what to do"
}

func (r *Refused) reason() string {
	if r.Code == "" {
		return r.Summary
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Summary)
}

// temporary reports whether the cause may disappear by itself: the cloud shows new machines,
// their tags and profiles with a delay, and a node or a machine of the same name may be about
// to be removed. Another token may be in the file by then, a person may approve the machine, and Cluster API may write its
// provider ID.
func (r *Refused) temporary() bool {
	switch r.Code {
	case "AlreadyRegistered", "NameTaken",
		"InstanceNotFound", "InstanceNotRunning", "WrongCluster", "WrongInstanceProfile",
		"CallerIdentityMissing", "ChallengeInvalid", "EvidenceUsed", "IdentityTokenExpired",
		"PendingApproval", "TooManyPending", "ClusterAPIMachineNotFound":
		return true
	}
	return false
}

// GaveUp is the error of a client that got neither a token nor a refusal until the timeout.
type GaveUp struct {
	// Connected is true if the service was reached.
	Connected bool
	// After is the time since the first try, Tries the number of tries.
	After time.Duration
	Tries int
	// Err is the error of the last try.
	Err error
}

func (g *GaveUp) Error() string {
	text := "gave up"
	if g.Connected {
		text = "timed out"
	}
	return fmt.Sprintf("%s after %s: %v", text, effort(g.After, g.Tries), g.Err)
}
func (g *GaveUp) Unwrap() error { return g.Err }

// effort formats the time and the number of tries.
func effort(after time.Duration, tries int) string {
	text := after.Round(10 * time.Millisecond).String()
	if tries == 1 {
		return text + " and 1 try"
	}
	return fmt.Sprintf("%s and %d tries", text, tries)
}

// retryable is the error of a try that should be repeated.
type retryable struct {
	err error
	// connected is true if a server accepted the connection.
	connected bool
	// after is how long the service asks to wait.
	after time.Duration
}

func (l *retryable) Error() string { return l.err.Error() }
func (l *retryable) Unwrap() error { return l.err }

// noEvidence wraps the error of a collector.
func noEvidence(doing string, err error) error {
	return &retryable{err: fmt.Errorf("%s: %w", doing, err)}
}

// finalError returns the error of the run after the last try.
func finalError(last *retryable, after time.Duration, tries int) error {
	refused := new(Refused)
	if errors.As(last, &refused) {
		return refused
	}
	return &GaveUp{Connected: last.connected, After: after, Tries: tries, Err: last.err}
}

// withUser adds the user to an error about file permissions. Units that kops wrote run the
// client in a container without setting the user, with files that root owns.
func withUser(err error, uid int) error {
	path := new(fs.PathError)
	if !errors.As(err, &path) || !errors.Is(path, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w; this runs as user %d: run it as a user with access, "+
		"for example root (in a container with --user=0)", err, uid)
}
