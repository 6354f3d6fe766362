package bootstrap

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// read takes in the evidence: one JSON object, which means the same to whoever
// reads it.
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
		return nil, malformed(http.StatusBadRequest, "the request has no body")
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

func checkContent(header http.Header) *rejection {
	if given := header.Get("Content-Type"); given != "" {
		if parsed, _, err := mime.ParseMediaType(given); err != nil || parsed != "application/json" {
			return malformed(http.StatusUnsupportedMediaType, "content type %.100q: want application/json", given)
		}
	}
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return malformed(http.StatusUnsupportedMediaType, "content encoding %.100q: want none", encoding)
	}
	return nil
}

func malformed(status int, format string, args ...any) *rejection {
	return &rejection{status: status, code: MalformedRequest, detail: fmt.Sprintf(format, args...)}
}
