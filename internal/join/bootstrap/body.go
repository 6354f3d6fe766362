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

// read reads the evidence: one unambiguous JSON object, or an empty body. The client of
// kops' node-authorizer sends an empty body if it has no evidence; the attestor decides
// whether that is enough.
func (x *exchange) read() ([]byte, error) {
	if rejected := checkContent(x.r.Header); rejected != nil {
		return nil, rejected
	}
	// This has no effect on connections without deadlines.
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(x.options.Timeout))
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.opts.MaxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, malformed(http.StatusRequestEntityTooLarge, "request body is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, malformed(http.StatusRequestTimeout, "request body did not arrive within %s: only %d bytes", x.options.Timeout,
			len(body))
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

// checkContent accepts any content type: curl sends the type of a form by default, and the
// node-authorizer of kops did not check it. The body must be JSON in any case.
func checkContent(header http.Header) *rejection {
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return malformed(http.StatusUnsupportedMediaType, "content encoding %.100q: want none", encoding)
	}
	return nil
}

func malformed(status int, format string, args ...any) *rejection {
	return &rejection{status: status, code: MalformedRequest, detail: fmt.Sprintf(format, args...)}
}
