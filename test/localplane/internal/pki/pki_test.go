package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func leaf(t *testing.T, pair *Pair) *x509.Certificate {
	t.Helper()
	loaded, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(loaded.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestClientCertificateHasUserAndGroups(t *testing.T) {
	a := authority(t)
	pair, err := a.Client("node", "system:node:web-1", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	cert := leaf(t, pair)
	if cert.Subject.CommonName != "system:node:web-1" || !slices.Equal(cert.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("the subject is %v", cert.Subject)
	}
	verify(t, a, cert, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func TestServerCertificateHasItsHosts(t *testing.T) {
	a := authority(t)
	pair, err := a.Server("server", "kubernetes.default.svc", "10.96.0.1")
	if err != nil {
		t.Fatal(err)
	}
	cert := leaf(t, pair)
	for _, host := range []string{"localhost", "127.0.0.1", "kubernetes.default.svc", "10.96.0.1"} {
		verify(t, a, cert, x509.VerifyOptions{DNSName: host})
	}
}

func TestPrivateKeysAreReadableByTheOwnerOnly(t *testing.T) {
	a := authority(t)
	private, public := filepath.Join(t.TempDir(), "sa.key"), filepath.Join(t.TempDir(), "sa.pub")
	if err := WriteSigningKey(private, public); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{a.KeyFile, private} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", path, mode)
		}
	}
}

func verify(t *testing.T, a *Authority, cert *x509.Certificate, options x509.VerifyOptions) {
	t.Helper()
	options.Roots = x509.NewCertPool()
	options.Roots.AppendCertsFromPEM(a.Cert)
	if _, err := cert.Verify(options); err != nil {
		t.Error(err)
	}
}
