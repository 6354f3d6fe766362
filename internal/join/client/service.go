package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	connectTimeout = 5 * time.Second
	// answerTimeout is longer than the default time limit of the service for a request
	// (requestTimeout: 15s).
	answerTimeout = 20 * time.Second
	// maxAnswer limits the size of an answer, which repeats the request.
	maxAnswer = 256 << 10
	// maxRetryAfter limits how long the service may ask to wait.
	maxRetryAfter = 10 * time.Minute
)

// service is a client of the bootstrap service.
type service struct {
	base *url.URL
	http *http.Client
}

func newService(base *url.URL, config *tls.Config) *service {
	base = base.JoinPath()
	base.Path = strings.TrimSuffix(strings.TrimRight(base.Path, "/"), "/authorize")
	return &service{base: base, http: &http.Client{
		// No proxy: the service compares the source address of a request with the addresses
		// of the machine.
		Transport: &http.Transport{
			TLSClientConfig:     config,
			DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSHandshakeTimeout: connectTimeout,
		},
		// A redirect would send the evidence to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// closeConnections closes the connections of a failed try, so that the next try may reach
// another replica.
func (s *service) closeConnections() { s.http.CloseIdleConnections() }

// challenge requests the challenge that the evidence must contain; empty if the service does
// not use challenges.
func (s *service) challenge(ctx context.Context) (string, error) {
	got, err := s.send(ctx, http.MethodGet, s.base.JoinPath("challenge"), nil)
	switch {
	case err != nil:
		return "", err
	case got.status == http.StatusNotFound || got.status == http.StatusMethodNotAllowed:
		return "", nil
	case got.status != http.StatusOK:
		return "", got.failure()
	}
	return got.challenge()
}

// authorize sends evidence and returns the token, or the challenge for the next round of evidence.
func (s *service) authorize(ctx context.Context, name string, evidence []byte) (granted token, challenge []byte, err error) {
	got, err := s.send(ctx, http.MethodPost, s.base.JoinPath("authorize", name), evidence)
	switch {
	case err != nil:
		return "", nil, err
	case got.status == http.StatusUnauthorized && challengeForm.MatchString(got.mediaType):
		return "", got.body, nil
	case got.status != http.StatusOK:
		return "", nil, got.failure()
	}
	granted, err = got.token(name)
	return granted, nil, err
}

// challengeForm matches the media types of challenges.
var challengeForm = regexp.MustCompile(`^application/vnd\.node-authorizer\.[a-z0-9-]+-challenge\+json$`)

// send sends one request and reads the answer. Errors are *retryable.
func (s *service) send(ctx context.Context, method string, to *url.URL, body []byte) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	connected := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "application/json")
	response, err := s.http.Do(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && connected:
		return nil, &retryable{err: fmt.Errorf("no answer from %s", to), connected: true}
	case err != nil:
		return nil, &retryable{err: fmt.Errorf("ask the bootstrap service: %w", err), connected: connected}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, &retryable{err: fmt.Errorf("read the answer of the bootstrap service: %w", err), connected: true}
	}
	if len(text) > maxAnswer {
		tooLong := fmt.Errorf("the answer of the bootstrap service is longer than %d KiB", maxAnswer>>10)
		return nil, &retryable{err: tooLong, connected: true}
	}
	return &answer{
		status: response.StatusCode, location: response.Header.Get("Location"), mediaType: response.Header.Get("Content-Type"),
		after: retryAfter(response.Header), body: text,
	}, nil
}

// retryAfter returns how long the service asks to wait (RFC 9110, section 10.2.3); zero if
// it does not ask.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(at), 0), maxRetryAfter)
	}
	return 0
}
