package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// read takes in the evidence: one JSON object, which means the same to whoever
// reads it, or nothing. The client of kops' node-authorizer sends an empty body
// where it has no evidence; whether that is enough is for the attestor to say.
func (x *exchange) read() ([]byte, error) {
	if rejected := checkContent(x.r.Header); rejected != nil {
		return nil, rejected
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(x.timeout)) // where the connection has deadlines
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.opts.MaxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, malformed(http.StatusRequestEntityTooLarge, "request body is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, malformed(http.StatusRequestTimeout, "request body did not come within %s: only %d bytes", x.timeout, len(body))
	case err != nil:
		return nil, malformed(http.StatusBadRequest, "read request body: %v, after %d bytes", err, len(body))
	case len(body) == 0:
		return body, nil
	}
	var object map[string]any
	if err := strictjson.Unmarshal(body, &object, strictjson.Options{AllowUnknown: true}); err != nil {
		return nil, malformed(http.StatusBadRequest, "request body: %v", err)
	}
	if object == nil {
		return nil, malformed(http.StatusBadRequest, "request body: null, want an object")
	}
	return body, nil
}

// checkContent takes any content type: that of a form is what curl sends if it is
// not told another one, and the node-authorizer of kops did not look at it. The
// body has to be JSON whatever it is called.
func checkContent(header http.Header) *rejection {
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return malformed(http.StatusUnsupportedMediaType, "content encoding %.100q: want none", encoding)
	}
	return nil
}

func malformed(status int, format string, args ...any) *rejection {
	return &rejection{status: status, code: MalformedRequest, detail: fmt.Sprintf(format, args...)}
}
