package controller

import (
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Quarantines finds the Quarantine that cuts off a node or a credential. An error means that the
// quarantines have not been read yet, or are too old. It is safe for concurrent use.
type Quarantines interface {
	// Quarantined returns the name of the Quarantine of a node.
	Quarantined(node string) (name string, found bool, err error)
	// QuarantinedCredential returns the name of the Quarantine of a credential, by its id.
	QuarantinedCredential(id string) (name string, found bool, err error)
}

// answer finds out what is quarantined, and answers a question. It is called as late as possible,
// because a quarantine may begin at any time.
func (c *Controller) answer(q *approve.Question) (approve.Answer, error) {
	if c.opts.Quarantines == nil {
		return approve.Decide(q), nil
	}
	node := approve.ClaimOf(q.Request).Node
	if q.Entry != nil {
		node = q.Entry.Spec.NodeName
	}
	var err error
	if q.NodeQuarantine, _, err = c.opts.Quarantines.Quarantined(node); err != nil {
		return approve.Answer{}, fmt.Errorf("look for a quarantine of the node: %w", err)
	}
	q.CredentialQuarantine = ""
	for _, id := range approve.CredentialsOf(q.Request) {
		quarantine, found, err := c.opts.Quarantines.QuarantinedCredential(id)
		if err != nil {
			return approve.Answer{}, fmt.Errorf("look for a quarantine of the credential: %w", err)
		}
		if found {
			q.CredentialQuarantine = quarantine
		}
	}
	return approve.Decide(q), nil
}

// isTooOld reports whether an error says that a copy is too old.
func isTooOld(err error) bool {
	_, tooOld := errors.AsType[*staleness.Error](err)
	return tooOld
}
