package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// timeout bounds requests to a server about itself.
const timeout = 5 * time.Second

// Answer is the answer to an HTTP request.
type Answer struct {
	Status int
	Header http.Header
	// Body is trimmed.
	Body string
	// TLS is the state of the connection. It is nil without TLS.
	TLS *tls.ConnectionState
}

// Post sends a body and reads the answer. The content type is optional.
func Post(ctx context.Context, client *http.Client, url, contentType string, body []byte) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return do(client, request)
}

func get(ctx context.Context, client *http.Client, url string) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Answer{}, err
	}
	return do(client, request)
}

func do(client *http.Client, request *http.Request) (Answer, error) {
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: strings.TrimSpace(string(text)), TLS: response.TLS}, err
}

// Client returns an HTTP client that trusts the plane's authority.
func (s *Server) Client() (*http.Client, error) {
	roots, err := Roots(s.File("ca.crt"))
	if err != nil {
		return nil, err
	}
	return &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}, nil
}

// Get requests a path over a new connection, so that the process that listens now
// answers.
func (s *Server) Get(ctx context.Context, path string) (Answer, error) {
	client, err := s.Client()
	if err != nil {
		return Answer{}, err
	}
	defer client.CloseIdleConnections()
	return get(ctx, client, "https://"+s.Address+path)
}

// Ready returns nil when all parts of the server are ready.
func (s *Server) Ready(ctx context.Context) error {
	answer, err := s.getMetrics(ctx, "/readyz")
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("the server %s is not ready: %d %s", s.name, answer.Status, strings.Join(strings.Fields(answer.Body), " "))
	}
	return err
}

// Metrics returns the metrics in Prometheus' text format.
func (s *Server) Metrics(ctx context.Context) (string, error) {
	answer, err := s.getMetrics(ctx, "/metrics")
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("ask the server %s for metrics: %d %s", s.name, answer.Status, answer.Body)
	}
	return answer.Body, err
}

func (s *Server) getMetrics(ctx context.Context, path string) (Answer, error) {
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	return get(ctx, client, "http://"+s.MetricsAddress+path)
}

// ServingCertificate returns the certificate that the server presents now.
func (s *Server) ServingCertificate(ctx context.Context) (*x509.Certificate, error) {
	roots, err := Roots(s.File("ca.crt"))
	if err != nil {
		return nil, err
	}
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots}}
	conn, err := dialer.DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
