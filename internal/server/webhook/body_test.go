package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
)

const question = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1",` +
	`"spec":{"user":"a","nonResourceAttributes":{"path":"/","verb":"get"}}}`

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read before its memory is reserved")
	return 0, io.EOF
}

// A large body is read when there is memory for all of it; until then nothing is allocated
// for it. If there is no memory for too long, the client is asked to retry.
func TestBodiesWaitForMemory(t *testing.T) {
	q := &Queue{
		small: newLimit(mb, 0), read: newLimit(8*mb, 0), decode: newLimit(8*mb, 0), leastDecoded: 8 * mb, wait: time.Minute,
	}
	handler := Authorize(func(context.Context, *access.Request) (decision.Opinion, error) {
		return decision.Opinion{}, errors.New("undecided")
	}, Options{Queue: q, MaxBodyBytes: 4 * mb})
	reserved, err := q.reserve(t.Context(), 7*mb)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(body io.Reader, length int64) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/authorize", body)
		r.ContentLength = length
		r.Header.Set("Content-Type", mediaType)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	large := question + strings.Repeat(" ", 2*mb)
	for rule, w := range map[string]*httptest.ResponseRecorder{
		"a known size":    ask(unread{t}, 2*mb),
		"an unknown size": ask(io.MultiReader(strings.NewReader(large)), -1),
	} {
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
			!strings.Contains(w.Body.String(), `"retryAfterSeconds":1`) {
			t.Errorf("%s: got %d %v %s", rule, w.Code, w.Header(), w.Body)
		}
	}
	if w := ask(strings.NewReader(question), int64(len(question))); w.Code != http.StatusOK {
		t.Errorf("a small body: got %d %s", w.Code, w.Body)
	}
	if w := ask(io.MultiReader(strings.NewReader(question)), -1); w.Code != http.StatusOK {
		t.Errorf("a small body of unknown size: got %d %s", w.Code, w.Body)
	}
	q.small.admitted.TryAcquire(mb) // full for every body
	if w := ask(unread{t}, -1); w.Code != http.StatusTooManyRequests {
		t.Errorf("an unknown size, without memory for small bodies: got %d %s", w.Code, w.Body)
	}
	q.small.release(mb)
	reserved.release()
	for _, length := range []int64{int64(len(large)), -1} {
		if w := ask(io.MultiReader(strings.NewReader(large)), length); w.Code != http.StatusOK {
			t.Errorf("with memory, size %d: got %d %s", length, w.Code, w.Body)
		}
	}
	if !q.small.isFree() || !q.read.isFree() || !q.decode.isFree() {
		t.Error("memory is still reserved")
	}
}

// The memory is released before the evaluator is asked, which may take seconds.
func TestEvaluatingReservesNoMemory(t *testing.T) {
	q := NewQueue()
	handler := Authorize(func(context.Context, *access.Request) (decision.Opinion, error) {
		if !q.small.isFree() || !q.read.isFree() {
			t.Error("the body is kept during the evaluation")
		}
		return decision.Opinion{}, nil
	}, Options{Queue: q})
	r := httptest.NewRequest(http.MethodPost, "/authorize", strings.NewReader(question))
	r.Header.Set("Content-Type", mediaType)
	w := httptest.NewRecorder()
	if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// Messages may quote the request; they are cut to a limit.
func TestLongMessagesAreCut(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/authorize", strings.NewReader(`{"kind":"`+strings.Repeat("x", mb)+`"}`))
	r.Header.Set("Content-Type", mediaType)
	Authorize(nil, Options{}).ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || w.Body.Len() > 2*maxMessage {
		t.Errorf("got status %d with %d bytes", w.Code, w.Body.Len())
	}
}
