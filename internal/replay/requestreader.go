package replay

import (
	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/auditlog"
)

// RequestReader restores from events the requests that authorizers saw, of any user. It is not safe
// for concurrent use.
type RequestReader struct{ paths paths }

// NewRequestReader returns a reader.
func NewRequestReader() *RequestReader { return &RequestReader{newPaths()} }

// Read stores the request of an event in into, with the extra values of its user.
func (r *RequestReader) Read(e *auditlog.Event, into *access.Request) {
	r.paths.requestOf(e, into)
	into.Extra = e.Extra(userOf(e))
}
