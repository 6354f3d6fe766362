package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The bounds of a run.
const (
	maxRequests    = 100
	maxFailures    = 3
	maxAnswer      = 64 << 10
	maxList        = 8 << 20
	maxLine        = 300
	requestTimeout = 15 * time.Second
)

// client sends requests and records them.
type client struct {
	base        *url.URL
	credentials *http.Client
	none        *http.Client
	left        int
	// failures counts the requests since the last one to which a response came.
	failures int
	sent     *[]Sent
}

func newClient(config *rest.Config) (*client, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	c := &client{base: base, left: maxRequests}
	if c.credentials, err = httpClient(config); err != nil {
		return nil, err
	}
	c.none, err = httpClient(rest.AnonymousClientConfig(config))
	return c, err
}

// httpClient returns a client that follows no redirect, because the answer would be another server's.
func httpClient(config *rest.Config) (*http.Client, error) {
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	bounded := *h
	bounded.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &bounded, nil
}

// identity is a user that a request impersonates.
type identity struct {
	user   string
	groups []string
}

// request is a request of a probe.
type request struct {
	method, path string
	query        url.Values
	as           identity
	// anonymous is true for a request without a credential.
	anonymous bool
	body      any
	// about describes the body.
	about string
	// unread is true if a successful response is not read.
	unread bool
	// max is the maximum number of bytes of a successful response that are read.
	max int64
}

// answer is the response to a request.
type answer struct {
	// code is 0 if no response came.
	code int
	body []byte
	// status is the Status in the response; empty without one.
	status metav1.Status
	// line is the first line of the response.
	line string
}

func (a *answer) ok() bool { return a.code >= 200 && a.code < 300 }

// refused reports whether the API server answered with a code and a Status.
func (a *answer) refused(code int) bool { return a.code == code && a.status.Kind != "" }

// String returns the answer for people.
func (a *answer) String() string {
	if a.code == 0 {
		return a.line
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.code, a.line))
}

func (c *client) do(ctx context.Context, r request) *answer {
	a := c.send(ctx, &r)
	*c.sent = append(*c.sent, Sent{
		Method: r.method, Path: strings.TrimSuffix(r.path+"?"+r.query.Encode(), "?"), As: r.as.user, Groups: r.as.groups,
		Anonymous: r.anonymous, Body: r.about, Status: a.code, Answer: a.line,
	})
	return a
}

func (c *client) send(ctx context.Context, r *request) *answer {
	if c.left--; c.left < 0 {
		return &answer{line: fmt.Sprintf("not sent: a run sends at most %d requests", maxRequests)}
	}
	if c.failures >= maxFailures {
		return &answer{line: fmt.Sprintf("not sent: to the last %d requests no response came", maxFailures)}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	sent, err := c.encode(ctx, r)
	if err != nil {
		return &answer{line: firstLine(err.Error())}
	}
	by := c.credentials
	if r.anonymous {
		by = c.none
	}
	response, err := by.Do(sent)
	if err != nil {
		c.failures++
		return &answer{line: firstLine("no response: " + err.Error())}
	}
	c.failures = 0
	defer response.Body.Close()
	return read(response, r)
}

func (c *client) encode(ctx context.Context, r *request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	at := c.base.JoinPath(r.path)
	at.RawQuery = r.query.Encode()
	sent, err := http.NewRequestWithContext(ctx, r.method, at.String(), body)
	if err != nil {
		return nil, err
	}
	sent.Header.Set("Accept", "application/json")
	if r.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if r.as.user != "" {
		sent.Header.Set(authenticationv1.ImpersonateUserHeader, r.as.user)
		for _, group := range r.as.groups {
			sent.Header.Add(authenticationv1.ImpersonateGroupHeader, group)
		}
	}
	return sent, nil
}

// read reads a response as far as it is needed.
func read(response *http.Response, r *request) *answer {
	a := &answer{code: response.StatusCode}
	limit := int64(maxAnswer)
	if a.ok() {
		a.line, limit = "succeeded", max(limit, r.max)
		if r.unread {
			return a
		}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil || int64(len(body)) > limit {
		return &answer{line: fmt.Sprintf("the response could not be read: it is broken or larger than %d bytes", limit)}
	}
	a.body = body
	switch {
	case a.ok():
	case json.Unmarshal(body, &a.status) == nil && a.status.Kind == "Status":
		a.line = firstLine(a.status.Message)
	default:
		a.status, a.line = metav1.Status{}, "the response is not from an API server"
	}
	return a
}

// firstLine returns the first line of a text without control characters, and not too long.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > maxLine {
		text = string(runes[:maxLine]) + "…"
	}
	return text
}
