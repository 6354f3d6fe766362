package containment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// client sends requests to one API server with one credential.
type client struct {
	server  string
	http    *http.Client
	headers http.Header
}

func newClient(config *rest.Config) (*client, error) {
	// Upgrades of exec and port forwarding need HTTP/1.1.
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &client{server: config.Host, http: c}, nil
}

// with returns a client that adds headers.
func (c *client) with(headers http.Header) *client {
	other := *c
	other.headers = headers
	return &other
}

// request is an HTTP request to an API server.
type request struct {
	method, path, contentType string
	body                      any
	headers                   http.Header
}

func (r request) String() string { return r.method + " " + r.path }

// answer is an answer of an API server.
type answer struct {
	status int
	// body is empty for watches and connections.
	body []byte
	// headers are those that say something about the answer.
	headers string
}

// refused reports whether authorization or admission refused the request.
func (a answer) refused() bool { return a.status == http.StatusForbidden }

// message is the message of an error.
func (a answer) message() string {
	var status metav1.Status
	if json.Unmarshal(a.body, &status) == nil && status.Message != "" {
		return status.Message
	}
	return string(a.body[:min(len(a.body), 300)])
}

func (a answer) String() string {
	if a.status < 300 {
		return fmt.Sprint(a.status)
	}
	return fmt.Sprintf("%d %s", a.status, a.message())
}

// do sends a request. It does not read the events of a watch, nor what a connection carries.
func (c *client) do(ctx context.Context, r request) (answer, error) {
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return answer{}, fmt.Errorf("encode the body of %s: %w", r, err)
		}
		body = bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent, err := http.NewRequestWithContext(ctx, r.method, c.server+r.path, body)
	if err != nil {
		return answer{}, err
	}
	sent.Header.Set("Accept", "application/json")
	if r.contentType != "" {
		sent.Header.Set("Content-Type", r.contentType)
	}
	for _, headers := range []http.Header{c.headers, r.headers} {
		for name, values := range headers {
			sent.Header[name] = values
		}
	}
	response, err := c.http.Do(sent)
	if err != nil {
		return answer{}, fmt.Errorf("send %s: %w", r, err)
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, headers: fmt.Sprint(response.Header["Content-Type"], response.Header["Warning"])}
	if a.status == http.StatusSwitchingProtocols || a.status == http.StatusOK && strings.Contains(r.path, "watch=true") {
		return a, nil
	}
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, 16<<20)); err != nil {
		return answer{}, fmt.Errorf("read the answer to %s: %w", r, err)
	}
	return a, nil
}

// must sends a request that has to succeed, and decodes the answer if into is not nil.
func (c *client) must(ctx context.Context, r request, into any) error {
	a, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	if a.status >= 300 {
		return fmt.Errorf("%s: %s", r, a)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(a.body, into)
}

const (
	jsonType   = "application/json"
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

func get(path string) request { return request{method: http.MethodGet, path: path} }

func post(path string, body any) request {
	return request{method: http.MethodPost, path: path, contentType: jsonType, body: body}
}

func put(path string, body any) request {
	return request{method: http.MethodPut, path: path, contentType: jsonType, body: body}
}

func patch(path string, body any) request {
	return request{method: http.MethodPatch, path: path, contentType: mergePatch, body: body}
}

func remove(path string) request { return request{method: http.MethodDelete, path: path} }
