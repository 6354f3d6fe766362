package attackpaths

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// client sends requests with one credential.
type client struct {
	server string
	http   *http.Client
	// upgrades sends requests that change the protocol, which HTTP/2 does not have.
	upgrades *http.Client
	headers  http.Header
	// byName creates objects that a POST may not create; nil for none.
	byName *byName
}

// newClient returns a client with the credential of a configuration.
func newClient(config *rest.Config) (*client, error) {
	plain, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	old := rest.CopyConfig(config)
	old.NextProtos = []string{"http/1.1"}
	old.Proxy = http.ProxyFromEnvironment // so that it shares no connections with the other
	upgrades, err := rest.HTTPClientFor(old)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &client{server: config.Host, http: plain, upgrades: upgrades}, nil
}

// with returns a client that adds headers.
func (c *client) with(headers http.Header) *client {
	other := *c
	other.headers = c.headers.Clone()
	if other.headers == nil {
		other.headers = http.Header{}
	}
	for name, values := range headers {
		other.headers[name] = values
	}
	return &other
}

// answer is an answer of the API server. Its text never has the body of a success.
type answer struct {
	request string
	status  int
	body    []byte
	err     error
	// other is a request for the same that was refused before; nil for none.
	other *answer
}

// refused reports whether authentication, authorization or admission refused the request.
func (a answer) refused() bool {
	return a.err == nil && (a.status == http.StatusForbidden || a.status == http.StatusUnauthorized)
}

// byAdmission reports whether a request that is refused was authorized.
func (a answer) byAdmission() bool {
	var status metav1.Status
	return json.Unmarshal(a.body, &status) == nil && !strings.Contains(status.Message, `" cannot `)
}

func (a answer) ok() bool { return a.err == nil && a.status >= 200 && a.status < 300 }

// failure is nil for a success.
func (a answer) failure() error {
	if a.ok() {
		return nil
	}
	return fmt.Errorf("%s", a)
}

// String has the request and the status of the answer, without the content.
func (a answer) String() string {
	if a.err != nil {
		return fmt.Sprintf("%s: %v", a.request, a.err)
	}
	if a.ok() || a.status == http.StatusSwitchingProtocols {
		return fmt.Sprintf("%s: %d", a.request, a.status)
	}
	var status metav1.Status
	text := string(a.body)
	if json.Unmarshal(a.body, &status) == nil && status.Message != "" {
		text = status.Message
	}
	text = fmt.Sprintf("%s: %d %s", a.request, a.status, text[:min(len(text), 400)])
	if a.other != nil {
		text += "; " + a.other.String()
	}
	return text
}

// into decodes a success.
func (a answer) into(object any) error {
	if err := a.failure(); err != nil {
		return err
	}
	if err := json.Unmarshal(a.body, object); err != nil {
		return fmt.Errorf("%s: decode the answer: %w", a.request, err)
	}
	return nil
}

// Types of patches.
const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

func (c *client) get(ctx context.Context, path string) answer {
	return c.do(ctx, http.MethodGet, path, "", nil)
}

func (c *client) post(ctx context.Context, path string, body any) answer {
	a := c.do(ctx, http.MethodPost, path, "application/json", body)
	if a.refused() && c.byName != nil {
		return c.createByName(ctx, path, body, a)
	}
	return a
}

func (c *client) put(ctx context.Context, path string, body any) answer {
	return c.do(ctx, http.MethodPut, path, "application/json", body)
}

func (c *client) patch(ctx context.Context, path, kind string, body any) answer {
	return c.do(ctx, http.MethodPatch, path, kind, body)
}

func (c *client) delete(ctx context.Context, path string, body any) answer {
	return c.do(ctx, http.MethodDelete, path, "application/json", body)
}

func (c *client) do(ctx context.Context, method, path, contentType string, body any) answer {
	a := answer{request: method + " " + path}
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			a.err = fmt.Errorf("encode the request: %w", err)
			return a
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, reader)
	if err != nil {
		a.err = err
		return a
	}
	if reader != nil {
		request.Header.Set("Content-Type", contentType)
	}
	return c.send(c.http, request, a)
}

func (c *client) send(with *http.Client, request *http.Request, a answer) answer {
	request.Header.Set("Accept", "application/json")
	for name, values := range c.headers {
		request.Header[name] = values
	}
	response, err := with.Do(request)
	if err != nil {
		a.err = err
		return a
	}
	defer response.Body.Close()
	a.status = response.StatusCode
	if a.status == http.StatusSwitchingProtocols {
		return a // the body is the connection
	}
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, 16<<20)); err != nil {
		a.err = fmt.Errorf("read the answer: %w", err)
	}
	return a
}

// websocket asks for a WebSocket, as kubectl exec does: the verb is get.
func (c *client) websocket(ctx context.Context, path string) answer {
	return c.upgrade(ctx, http.MethodGet, path, http.Header{
		"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"v5.channel.k8s.io"},
	})
}

// spdy asks for SPDY, as older clients do: the verb is create.
func (c *client) spdy(ctx context.Context, path string) answer {
	return c.upgrade(ctx, http.MethodPost, path, http.Header{
		"Upgrade": {"SPDY/3.1"}, "Connection": {"Upgrade"}, "X-Stream-Protocol-Version": {"v4.channel.k8s.io"},
	})
}

func (c *client) upgrade(ctx context.Context, method, path string, headers http.Header) answer {
	a := answer{request: method + " " + path + " (" + headers.Get("Upgrade") + ")"}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, nil)
	if err != nil {
		a.err = err
		return a
	}
	request.Header = headers
	return c.send(c.upgrades, request, a)
}

// connected reports whether a request to a pod or a node got past the API server's
// authorization and admission. What follows may fail: nothing runs in hollow containers.
func (a answer) connected() bool {
	switch {
	case a.err != nil || a.refused():
		return false
	case a.status == http.StatusNotFound && strings.Contains(string(a.body), `"kind":"Status"`):
		return false // there is no such pod or node
	}
	return true
}

// forToken returns a configuration with a token.
func forToken(admin *rest.Config, token string) *rest.Config {
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token
	return config
}

// forCertificate returns a configuration with a client certificate.
func forCertificate(admin *rest.Config, certificate, key []byte) (*rest.Config, error) {
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return nil, fmt.Errorf("use a certificate: %w", err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.CertData, config.KeyData = certificate, key
	return config, nil
}
