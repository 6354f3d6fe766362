package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Why a request is invalid.
const (
	// ReasonMethod: it is not a POST.
	ReasonMethod = "method"
	// ReasonContentType: the body is not JSON by its headers.
	ReasonContentType = "content_type"
	// ReasonTooLarge: the body is larger than is accepted.
	ReasonTooLarge = "too_large"
	// ReasonUnreadable: the body ended early, or the connection broke.
	ReasonUnreadable = "unreadable"
	// ReasonMalformed: the body is not a document of the kind and version that the
	// endpoint accepts.
	ReasonMalformed = "malformed"
	// ReasonBusy: there was no memory for the body. A retry may succeed a moment later.
	ReasonBusy = "busy"
)

const mediaType = "application/json"

// endpoint reads reviews and writes the answers.
type endpoint struct {
	opts Options
	// decode must not keep the body. Its error is a rejection, or means that the body is
	// malformed.
	decode func(body []byte) (answer, error)
	bodies sync.Pool // of *bytes.Buffer, for small bodies
}

// answer returns the answer to a review that has been decoded. Its error is a rejection.
type answer func(context.Context) ([]byte, error)

// constantAnswer returns an answer that is known already.
func constantAnswer(document []byte) answer {
	return func(context.Context) ([]byte, error) { return document, nil }
}

func newEndpoint(opts Options, decode func([]byte) (answer, error)) *endpoint {
	return &endpoint{
		opts: opts.withDefaults(), decode: decode,
		bodies: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// rejection is the reason why a request gets no answer.
type rejection struct {
	status int
	// reason is empty if the request is valid, so that the cause lies elsewhere.
	reason  string
	message string
	// retryAfter is the number of seconds after which the client should retry; 0: not set.
	retryAfter int32
}

func (r *rejection) Error() string { return r.message }

// malformed returns the rejection in an error, or else one for a malformed body.
func malformed(err error) *rejection {
	var rejected *rejection
	if errors.As(err, &rejected) {
		return rejected
	}
	return &rejection{status: http.StatusBadRequest, reason: ReasonMalformed, message: "request body: " + err.Error()}
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, rejected := e.question(w, r)
	if rejected == nil {
		document, err := answer(r.Context())
		if err == nil {
			write(w, http.StatusOK, document)
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

// question reads and decodes the body. The memory is released when it returns.
func (e *endpoint) question(w http.ResponseWriter, r *http.Request) (answer, *rejection) {
	if rejected := e.check(r); rejected != nil {
		return nil, rejected
	}
	b, err := e.reserve(w, r)
	if err != nil {
		return nil, busy(err)
	}
	defer b.release()
	if err := b.read(); err != nil {
		return nil, e.notRead(err, b.buffer.Len())
	}
	var asked answer
	var decodeErr error
	if err := b.reservation.decode(r.Context(), func() { asked, decodeErr = e.decode(b.buffer.Bytes()) }); err != nil {
		return nil, busy(err)
	}
	if decodeErr != nil {
		return nil, malformed(decodeErr)
	}
	return asked, nil
}

// check checks the headers, before the body is read.
func (e *endpoint) check(r *http.Request) *rejection {
	if r.Method != http.MethodPost {
		return &rejection{
			status: http.StatusMethodNotAllowed, reason: ReasonMethod,
			message: fmt.Sprintf("method %s: want POST", r.Method),
		}
	}
	if rejected := checkContent(r.Header); rejected != nil {
		return rejected
	}
	if r.ContentLength > e.opts.MaxBodyBytes {
		return e.tooLarge()
	}
	return nil
}

// notRead is the rejection of a body that failed after n bytes.
func (e *endpoint) notRead(err error, n int) *rejection {
	switch {
	case errors.Is(err, errTooLarge):
		return e.tooLarge()
	case errors.Is(err, errQueueFull), errors.Is(err, errWaited):
		return busy(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return unreadable(fmt.Sprintf("request body ends early, after %d bytes", n))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return unreadable(fmt.Sprintf("request body takes longer than %v: only %d bytes have arrived", bodyTimeout, n))
	}
	return unreadable(fmt.Sprintf("read request body: %v", err))
}

// retryBusy is the number of seconds after which an API server retries when there was no
// memory. It retries until the timeout of the webhook.
const retryBusy = 1

func busy(err error) *rejection {
	return &rejection{
		status: http.StatusTooManyRequests, reason: ReasonBusy, retryAfter: retryBusy, message: fmt.Sprintf("busy: %v; try again", err),
	}
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

// document encodes the rejection as a metav1.Status, which API servers read.
func (r *rejection) document() []byte {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: clipped(r.message), Reason: statusReasons[r.status], Code: int32(r.status),
	}
	if r.retryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: r.retryAfter}
	}
	text, err := json.Marshal(&status, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		return nil // the message is not UTF-8; the status code must suffice
	}
	return text
}

// maxMessage is the maximum size of a message in bytes. Messages may quote the request.
const maxMessage = 4 << 10

func clipped(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

var statusReasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// write sends a document. An error means that the client is gone, and is ignored.
func write(w http.ResponseWriter, status int, document []byte) {
	w.Header()["Content-Type"] = []string{mediaType}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(document))}
	w.WriteHeader(status)
	_, _ = w.Write(document)
}
