package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestReachIsThatOfTheLastRequest(t *testing.T) {
	var status int
	var failure error
	r := &reach{}
	next := r.watch(roundTripper(func(*http.Request) (*http.Response, error) {
		if failure != nil {
			return nil, failure
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: http.NoBody}, nil
	}))
	ask := func(ctx context.Context) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := next.RoundTrip(request); err == nil {
			response.Body.Close()
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		rule    string
		ctx     context.Context
		status  int
		failure error
		want    string
	}{
		{"an outage from the beginning", t.Context(), 0, errors.New("connection refused"), "connection refused"},
		{"an answer", t.Context(), 200, nil, ""},
		{"a refusal is an answer", t.Context(), 403, nil, ""},
		{"an outage", t.Context(), 0, errors.New("connection refused"), "connection refused"},
		{"an API server that starts", t.Context(), 503, nil, "Service Unavailable"},
		{"back again", t.Context(), 200, nil, ""},
		{"a canceled request does not count", canceled, 0, context.Canceled, ""},
	} {
		status, failure = tc.status, tc.failure
		ask(tc.ctx)
		_, err := r.state()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.rule, err, tc.want)
		}
	}
	if _, err := (&reach{}).state(); err == nil || !strings.Contains(err.Error(), "has not answered yet") {
		t.Errorf("before the first request: got %v", err)
	}
}
