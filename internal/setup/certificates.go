package setup

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
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

// authorities are the cluster's own: of kube-apiserver's certificate, and of its users.
type authorities struct {
	servers []byte // PEM
	users   *pair
}

// readAuthorities reads the authorities of the cluster. The key is only needed to sign a new certificate of the server.
func readAuthorities(read Read, servers, users, key string) (*authorities, error) {
	a := &authorities{}
	var err error
	if a.servers, err = read(servers); err != nil {
		return nil, fmt.Errorf("read the authority of kube-apiserver: %w", err)
	}
	certificate, err := read(users)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the cluster's users: %w", err)
	}
	signer, err := read(key)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		a.users, err = parsePair(certificate, signer)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key %s of the cluster's authority: %w", key, err)
	}
	return a, nil
}

// pair is a certificate with its key.
type pair struct {
	certificate     *x509.Certificate
	key             crypto.Signer
	certPEM, keyPEM []byte
}

func parsePair(certificate, key []byte) (*pair, error) {
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return nil, errors.New("the key does not belong to the certificate, or one of them is not valid PEM")
	}
	certificates, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return nil, err
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return nil, errors.New("the key is not valid PEM")
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return &pair{certificates[0], signer, certificate, key}, nil
}

// newPair makes a key and a certificate that the issuer signs; without one, it signs itself.
func newPair(template *x509.Certificate, issuer *pair, now time.Time, life time.Duration) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p := &pair{key: key}
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
	if p.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	p.certPEM = pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	p.keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	return p, err
}

// addCertificates adds certificates: those on disk that are valid for long enough, and new ones for the others.
func (p *Plan) addCertificates(read Read, cluster *authorities) error {
	authority := p.existing(read, nil, "setup/ca.crt", "setup/ca.key")
	if authority == nil {
		var err error
		authority, err = newPair(&x509.Certificate{
			Subject: pkix.Name{CommonName: "node-authorizer-ca"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
		}, nil, p.Now, authorityLife)
		if err != nil {
			return fmt.Errorf("make an authority: %w", err)
		}
	}
	p.Authority = authority.certPEM
	p.add(File{Path: p.path("setup", "ca.crt"), Content: authority.certPEM, Mode: 0o600})
	p.add(File{Path: p.path("setup", "ca.key"), Content: authority.keyPEM, Mode: 0o600, Secret: true})
	p.addServer("ca.crt", string(authority.certPEM), false)
	p.addServer("cluster-ca.crt", string(cluster.servers), false)
	p.addAPIServer("ca.crt", string(authority.certPEM), false)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, c := range []struct {
		folder, name string
		issuer       *pair
		template     x509.Certificate
	}{
		{"server", "tls", authority, x509.Certificate{
			Subject: pkix.Name{CommonName: "node-authorizer"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}},
		{"server", "client", cluster.users, x509.Certificate{Subject: pkix.Name{CommonName: "node-authorizer"}, ExtKeyUsage: client}},
		{"apiserver", "client", authority, x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: client}},
	} {
		certificate, key := path.Join(c.folder, c.name+".crt"), path.Join(c.folder, c.name+".key")
		made := p.existing(read, c.issuer, certificate, key)
		if made == nil {
			if c.issuer == nil {
				return fmt.Errorf("the key of the cluster's authority is not here, so the server gets no certificate: sign one for the user "+
					"node-authorizer, and write it to %s and %s", p.path(certificate), p.path(key))
			}
			var err error
			if made, err = newPair(&c.template, c.issuer, p.Now, certificateLife); err != nil {
				return fmt.Errorf("make %s: %w", certificate, err)
			}
		}
		add := p.addAPIServer
		if c.folder == "server" {
			add = p.addServer
		}
		add(c.name+".crt", string(made.certPEM), false)
		add(c.name+".key", string(made.keyPEM), true)
	}
	return nil
}

// existing returns a certificate on disk that can stay in use; nil if there is none. The authority is not renewed with
// the others, because kube-apiservers would have to be told before.
func (p *Plan) existing(read Read, issuer *pair, certificate, key string) *pair {
	certPEM, err := read(path.Join(folder, certificate))
	if err != nil {
		return nil
	}
	keyPEM, err := read(path.Join(folder, key))
	if err != nil {
		return nil
	}
	found, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return nil
	}
	c := found.certificate
	age := p.Now.Sub(c.NotBefore).Seconds() / c.NotAfter.Sub(c.NotBefore).Seconds()
	switch {
	case c.IsCA:
		return found
	case issuer == nil && p.Now.Before(c.NotAfter): // it cannot be renewed here
		return found
	case issuer == nil || p.Renew || age > renewAfter || c.CheckSignatureFrom(issuer.certificate) != nil:
		return nil
	}
	return found
}

// Bundle returns the authorities of both texts, PEM: each once, and none that has expired. Control plane nodes have
// authorities of their own, and share a webhook configuration.
func Bundle(now time.Time, texts ...[]byte) []byte {
	var bundle []byte
	for _, text := range texts {
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			c, err := x509.ParseCertificate(block.Bytes)
			one := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: block.Bytes})
			if err == nil && now.Before(c.NotAfter) && !bytes.Contains(bundle, one) {
				bundle = append(bundle, one...)
			}
		}
	}
	return bundle
}

func encode(text []byte) string { return base64.StdEncoding.EncodeToString(text) }
