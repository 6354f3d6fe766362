// Package pki makes the certificates of one control plane: a certificate
// authority, and certificates and keys signed by it, as PEM files in a folder.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A plane runs for at most a working day.
const validity = 30 * 24 * time.Hour

// Pair is a certificate and its private key as PEM, with the paths of their files.
type Pair struct {
	Cert, Key         []byte
	CertFile, KeyFile string
}

// Authority signs certificates and writes them to a folder.
type Authority struct {
	Pair
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes a self-signed authority and writes NAME.crt and NAME.key.
func NewAuthority(dir, name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the authority %s: %w", name, err)
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the authority %s: %w", name, err)
	}
	pair, err := write(dir, name, der, key)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: *pair, dir: dir, cert: cert, key: key}, nil
}

// Client makes the certificate of a user in groups, as NAME.crt and NAME.key.
func (a *Authority) Client(name, user string, groups ...string) (*Pair, error) {
	return a.sign(name, pkix.Name{CommonName: user, Organization: groups}, nil, x509.ExtKeyUsageClientAuth)
}

// Server makes a certificate for the loopback address and additional DNS names or IP
// addresses. It is also valid for clients, because etcd peers are both.
func (a *Authority) Server(name string, hosts ...string) (*Pair, error) {
	hosts = append([]string{"localhost", "127.0.0.1"}, hosts...)
	return a.sign(name, pkix.Name{CommonName: name}, hosts, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

func (a *Authority) sign(name string, subject pkix.Name, hosts []string, usages ...x509.ExtKeyUsage) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of %s: %w", name, err)
	}
	template, err := newTemplate(subject)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = usages
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	return write(a.dir, name, der, key)
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choose a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(validity),
	}, nil
}

func write(dir, name string, der []byte, key *ecdsa.PrivateKey) (*Pair, error) {
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key of %s: %w", name, err)
	}
	pair := &Pair{
		Cert:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:      pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		CertFile: filepath.Join(dir, name+".crt"),
		KeyFile:  filepath.Join(dir, name+".key"),
	}
	if err := os.WriteFile(pair.CertFile, pair.Cert, 0o644); err != nil {
		return nil, fmt.Errorf("write the certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(pair.KeyFile, pair.Key, 0o600); err != nil {
		return nil, fmt.Errorf("write the key of %s: %w", name, err)
	}
	return pair, nil
}

// WriteSigningKey makes a key pair for signing service account tokens and
// writes the private key (PKCS#8) and the public key (PKIX) as PEM.
func WriteSigningKey(privateFile, publicFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key that signs service account tokens: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key that signs service account tokens: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode the key that checks service account tokens: %w", err)
	}
	if err := os.WriteFile(privateFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return fmt.Errorf("write the key that signs service account tokens: %w", err)
	}
	if err := os.WriteFile(publicFile, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644); err != nil {
		return fmt.Errorf("write the key that checks service account tokens: %w", err)
	}
	return nil
}
