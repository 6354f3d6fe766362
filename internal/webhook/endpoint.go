package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Why a request is not a question.
const (
	// ReasonMethod: it is not a POST.
	ReasonMethod = "method"
	// ReasonContentType: the body is not JSON by its headers.
	ReasonContentType = "content_type"
	// ReasonTooLarge: the body is larger than is accepted.
	ReasonTooLarge = "too_large"
	// ReasonUnreadable: the body ended early, or the connection broke.
	ReasonUnreadable = "unreadable"
	// ReasonMalformed: the body is not a document of the kind and version that
	// the endpoint takes.
	ReasonMalformed = "malformed"
)

const mediaType = "application/json"

// endpoint reads documents and writes the answers to them.
type endpoint struct {
	opts Options
	// answer must not keep the body. Its error is a rejection, or else means that the
	// body is malformed.
	answer func(ctx context.Context, body []byte) ([]byte, error)
	bodies sync.Pool // of *bytes.Buffer
}

func newEndpoint(opts Options, answer func(context.Context, []byte) ([]byte, error)) *endpoint {
	return &endpoint{opts: opts.withDefaults(), answer: answer, bodies: sync.Pool{New: func() any { return new(bytes.Buffer) }}}
}

// rejection is why a request gets no answer.
type rejection struct {
	status int
	// reason is empty if the request is a question: it is not its fault then.
	reason  string
	message string
	// retryAfter is in how many seconds another try is worth it; 0: not told.
	retryAfter int32
}

func (r *rejection) Error() string { return r.message }

// malformed is the rejection that an error of an answer stands for.
func malformed(err error) *rejection {
	var rejected *rejection
	if errors.As(err, &rejected) {
		return rejected
	}
	return &rejection{status: http.StatusBadRequest, reason: ReasonMalformed, message: "request body: " + err.Error()}
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := e.bodies.Get().(*bytes.Buffer)
	defer e.recycle(body)
	rejected := e.read(r, body)
	if rejected == nil {
		answer, err := e.answer(r.Context(), body.Bytes())
		if err == nil {
			write(w, http.StatusOK, answer)
			return
		}
		rejected = malformed(err)
	}
	e.reject(w, rejected)
}

func (e *endpoint) reject(w http.ResponseWriter, rejected *rejection) {
	if rejected.reason != "" {
		e.opts.Rejected(rejected.reason)
	}
	if rejected.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	if rejected.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(rejected.retryAfter)))
	}
	write(w, rejected.status, rejected.document())
}

// keptBuffer is the size in bytes of the largest buffer that is used again.
// Access reviews have about one kilobyte, pods and nodes some tens.
const keptBuffer = 256 << 10

func (e *endpoint) recycle(body *bytes.Buffer) {
	if body.Cap() <= keptBuffer {
		body.Reset()
		e.bodies.Put(body)
	}
}

// read takes the whole body in.
func (e *endpoint) read(r *http.Request, body *bytes.Buffer) *rejection {
	if r.Method != http.MethodPost {
		return &rejection{status: http.StatusMethodNotAllowed, reason: ReasonMethod, message: fmt.Sprintf("method %s: want POST", r.Method)}
	}
	if rejected := checkContent(r.Header); rejected != nil {
		return rejected
	}
	if r.ContentLength > e.opts.MaxBodyBytes {
		return e.tooLarge()
	}
	n, err := body.ReadFrom(io.LimitReader(r.Body, e.opts.MaxBodyBytes+1))
	switch {
	case n > e.opts.MaxBodyBytes:
		return e.tooLarge()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return unreadable(fmt.Sprintf("request body ends early, after %d bytes", n))
	case err != nil:
		return unreadable(fmt.Sprintf("read request body: %v", err))
	}
	return nil
}

func (e *endpoint) tooLarge() *rejection {
	return &rejection{
		status: http.StatusRequestEntityTooLarge, reason: ReasonTooLarge,
		message: fmt.Sprintf("request body is larger than %d bytes", e.opts.MaxBodyBytes),
	}
}

func unreadable(message string) *rejection {
	return &rejection{status: http.StatusBadRequest, reason: ReasonUnreadable, message: message}
}

func checkContent(header http.Header) *rejection {
	given := header.Get("Content-Type")
	if given != mediaType {
		if parsed, _, err := mime.ParseMediaType(given); err != nil || parsed != mediaType {
			return unsupported(fmt.Sprintf("content type %q: want %s", given, mediaType))
		}
	}
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return unsupported(fmt.Sprintf("content encoding %q: want none", encoding))
	}
	return nil
}

func unsupported(message string) *rejection {
	return &rejection{status: http.StatusUnsupportedMediaType, reason: ReasonContentType, message: message}
}

// document says it in the form that API servers read.
func (r *rejection) document() []byte {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: r.message, Reason: statusReasons[r.status], Code: int32(r.status),
	}
	if r.retryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: r.retryAfter}
	}
	text, err := json.Marshal(&status, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		return nil // the message is not UTF-8; the status code says enough
	}
	return text
}

var statusReasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// write sends a document. An error is that of a caller that has gone.
func write(w http.ResponseWriter, status int, document []byte) {
	w.Header()["Content-Type"] = []string{mediaType}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(document))}
	w.WriteHeader(status)
	_, _ = w.Write(document)
}
