package setup

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewAfter is the part of its life after which a certificate is renewed.
	renewAfter = 2. / 3
)

// authorities are the names of the files with the cluster's own authorities: of kube-apiserver's certificate, and of its users.
type authorities struct{ servers, users, usersKey string }

// pair is a certificate with its key.
type pair struct {
	certificate     *x509.Certificate
	key             crypto.Signer
	certPEM, keyPEM []byte
}

// readPair returns an error without the content of the files.
func readPair(read Read, certificate, key string) (*pair, error) {
	certPEM, err := read(certificate)
	if err != nil {
		return nil, err
	}
	keyPEM, err := read(key)
	if err != nil {
		return nil, err
	}
	p, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("the key %s does not belong to the certificate %s, or one of them is not valid PEM", key, certificate)
	}
	return p, nil
}

func parsePair(certPEM, keyPEM []byte) (*pair, error) {
	loaded, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	return &pair{loaded.Leaf, loaded.PrivateKey.(crypto.Signer), certPEM, keyPEM}, nil
}

// newPair makes a key and a certificate that the issuer signs; without one, it signs itself.
func newPair(template *x509.Certificate, issuer *pair, now time.Time, life time.Duration) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, parent := crypto.Signer(key), template
	template.NotBefore, template.NotAfter = now.Add(-time.Minute), now.Add(life)
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	if issuer != nil {
		signer, parent = issuer.key, issuer.certificate
		if parent.NotAfter.Before(template.NotAfter) {
			template.NotAfter = parent.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	return parsePair(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), keyPEM)
}

// addCertificates adds certificates: those on disk that are valid for long enough, and new ones for the others.
func (p *Plan) addCertificates(read Read, cluster authorities) error {
	servers, err := read(cluster.servers)
	if err != nil {
		return fmt.Errorf("read the authority of kube-apiserver's certificate: %w", err)
	}
	users, err := readPair(read, cluster.users, cluster.usersKey)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the authority of the cluster's users: %w", err)
	}
	authority, err := readPair(read, folder+"/setup/ca.crt", folder+"/setup/ca.key")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		authority, err = newPair(&x509.Certificate{
			Subject: pkix.Name{CommonName: "node-authorizer-ca"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
		}, nil, p.Now, authorityLife)
	case err == nil && p.Now.Add(certificateLife).After(authority.certificate.NotAfter):
		// kube-apiserver would have to trust a new authority before the server has a certificate of it.
		err = fmt.Errorf("it ends on %s: run node-authorizer setup undo, and then setup again",
			authority.certificate.NotAfter.Format(time.DateOnly))
	}
	if err != nil {
		return fmt.Errorf("the authority of the server's certificate: %w", err)
	}
	p.add("setup/ca.crt", authority.certPEM)
	p.add("setup/ca.key", authority.keyPEM)
	p.add("server/ca.crt", authority.certPEM)
	p.add("server/cluster-ca.crt", servers)
	p.add("apiserver/ca.crt", authority.certPEM)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, c := range []struct {
		name     string
		issuer   *pair
		template x509.Certificate
	}{
		{"server/tls", authority, x509.Certificate{
			Subject: pkix.Name{CommonName: "node-authorizer"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}},
		{"server/client", users, x509.Certificate{Subject: pkix.Name{CommonName: "node-authorizer"}, ExtKeyUsage: client}},
		{"apiserver/client", authority, x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: client}},
	} {
		made := p.existing(read, c.issuer, c.name)
		if made == nil && c.issuer == nil {
			return fmt.Errorf("the key of the cluster's authority is not here: sign a certificate for the user node-authorizer with it, "+
				"and write both to %s and %s", p.path(c.name+".crt"), p.path(c.name+".key"))
		}
		if made == nil {
			if made, err = newPair(&c.template, c.issuer, p.Now, certificateLife); err != nil {
				return fmt.Errorf("make the certificate %s: %w", c.name, err)
			}
		}
		p.add(c.name+".crt", made.certPEM)
		p.add(c.name+".key", made.keyPEM)
	}
	return nil
}

// existing returns a certificate on disk that can stay in use; nil if there is none.
func (p *Plan) existing(read Read, issuer *pair, name string) *pair {
	found, err := readPair(read, folder+"/"+name+".crt", folder+"/"+name+".key")
	if err != nil {
		return nil
	}
	c, oldest := found.certificate, 1. // without an issuer it cannot be renewed here
	if issuer != nil {
		oldest, err = renewAfter, c.CheckSignatureFrom(issuer.certificate)
	}
	age := p.Now.Sub(c.NotBefore).Seconds() / c.NotAfter.Sub(c.NotBefore).Seconds()
	if err != nil || age > oldest {
		return nil
	}
	return found
}
