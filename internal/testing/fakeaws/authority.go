package fakeaws

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// authority issues certificates for the hosts of the fake AWS on demand.
type authority struct {
	key  *ecdsa.PrivateKey
	root *x509.Certificate

	mu     sync.Mutex
	issued map[string]*tls.Certificate // by host
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the fake AWS: %w", err)
	}
	a := &authority{key: key, issued: map[string]*tls.Certificate{}}
	template := certificateTemplate("Fake AWS")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the fake AWS: %w", err)
	}
	if a.root, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return a, nil
}

// certificate returns the certificate of a host.
func (a *authority) certificate(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if certificate, ok := a.issued[host]; ok {
		return certificate, nil
	}
	template := certificateTemplate(host)
	template.DNSNames, template.ExtKeyUsage = []string{host}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	certificate := &tls.Certificate{Certificate: [][]byte{der, a.root.Raw}, PrivateKey: a.key}
	a.issued[host] = certificate
	return certificate, nil
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	return pool
}

func certificateTemplate(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
	}
}
