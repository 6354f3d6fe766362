package client

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// trust returns the TLS settings for the service, and its authorities.
func trust(o Options) (*tls.Config, []byte, error) {
	if o.ServiceCAFile == "" {
		return nil, nil, errors.New("no file with the certificate authorities of the bootstrap service is given")
	}
	authorities, err := readAuthorities(o.ServiceCAFile)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if (o.CertificateFile == "") != (o.KeyFile == "") {
		return nil, nil, errors.New("a client certificate needs both its certificate file and its key file")
	}
	if o.CertificateFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertificateFile, o.KeyFile)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, authorities, nil
}

// readAuthorities returns the certificates in a PEM file, without other blocks.
func readAuthorities(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading certificate authorities: %w", err)
	}
	var certificates bytes.Buffer
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("reading certificate authorities: %s: %w", path, err)
		}
		certificates.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	if certificates.Len() == 0 {
		return nil, fmt.Errorf("reading certificate authorities: %s has no certificate in PEM", path)
	}
	return certificates.Bytes(), nil
}

// secureURL parses the URL of a server to which secrets are sent.
func secureURL(what, text string) (*url.URL, error) {
	if text == "" {
		return nil, fmt.Errorf("%s is missing", what)
	}
	u, err := url.Parse(text)
	// The error contains the whole URL, which may contain a password.
	if malformed := new(url.Error); errors.As(err, &malformed) {
		err = malformed.Err
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s: want no user, query or fragment", what)
	case u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%s is %q: want https://HOST:PORT", what, text)
	}
	return u, nil
}

// checkNodeName checks the format of a node name (RFC 1123 subdomain).
func checkNodeName(name string) error {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q cannot be a node name: %s", name, strings.Join(problems, "; "))
	}
	return nil
}
