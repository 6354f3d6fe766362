package key

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"
	"k8s.io/client-go/util/cert"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
)

// CollectorOptions are settings of a [Collector].
type CollectorOptions struct {
	// KeyFile has the private key, in PEM or in the form of OpenSSH, without a passphrase.
	KeyFile string
	// CertificateFile has the certificate of the key and intermediate ones, PEM; empty: the key itself is registered.
	CertificateFile string
	// ClusterID is the cluster in the message that is signed.
	ClusterID string
	// NodeName is the name of the node; empty: the hostname.
	NodeName string
}

// Collector is the machine's half of the provider.
type Collector struct{ options CollectorOptions }

var _ attest.Collector = (*Collector)(nil)

// NewCollector returns a collector. It reads the files for each request.
func NewCollector(options CollectorOptions) (*Collector, error) {
	if options.KeyFile == "" || options.ClusterID == "" {
		return nil, errors.New("want a file with the machine's private key, and the id of the cluster")
	}
	return &Collector{options}, nil
}

// NodeName returns the name in the options, or else the hostname.
func (c *Collector) NodeName(context.Context) (string, error) {
	if c.options.NodeName != "" {
		return c.options.NodeName, nil
	}
	return alwaysallow.Hostname()
}

// Collect signs what is given, and the node name.
func (c *Collector) Collect(ctx context.Context, about attest.Binding) ([]byte, error) {
	if about.Challenge == "" {
		return nil, errors.New("the service sends no challenge to sign: is its attestor key?")
	}
	name, err := c.NodeName(ctx)
	if err != nil {
		return nil, err
	}
	key, err := readKey(c.options.KeyFile)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encode the public key of %s: %w", c.options.KeyFile, err)
	}
	e := evidence{Challenge: about.Challenge, CertifiedKey: about.PublicKey}
	if c.options.CertificateFile == "" {
		e.PublicKey = der
	} else if e.Certificates, err = readCertificates(c.options.CertificateFile, der); err != nil {
		return nil, err
	}
	text := message(c.options.ClusterID, about.Challenge, name, about.PublicKey, v1alpha1.PublicKeyHash(der))
	algorithm, signature, err := sign(key, text)
	if err != nil {
		return nil, fmt.Errorf("sign with the key %s: %w", c.options.KeyFile, err)
	}
	e.Algorithm, e.Signature = algorithm.String(), signature
	return json.Marshal(e)
}

// Hash returns the hash of the public key that belongs to the private key in a file, with which a Machine registers it.
func Hash(path string) (string, error) {
	key, err := readKey(path)
	if err != nil {
		return "", err
	}
	return v1alpha1.HashOf(key.Public())
}

func readKey(path string) (crypto.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the machine's key: %w", err)
	}
	if block, rest := pem.Decode(text); block != nil && block.Type == "EC PARAMETERS" { // OpenSSL writes it before the key
		text = rest
	}
	key, err := ssh.ParseRawPrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("read the machine's key %s: %w", path, err)
	}
	if pointer, ok := key.(*ed25519.PrivateKey); ok { // of OpenSSH
		key = *pointer
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the machine's key %s cannot sign", path)
	}
	return signer, nil
}

// readCertificates reads certificates in DER. The first one must be of the key.
func readCertificates(path string, publicKey []byte) (all []binary, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the machine's certificate: %w", err)
	}
	parsed, err := cert.ParseCertsPEM(text)
	if err != nil {
		return nil, fmt.Errorf("read the machine's certificate %s: %w", path, err)
	}
	if !bytes.Equal(parsed[0].RawSubjectPublicKeyInfo, publicKey) {
		return nil, fmt.Errorf("the first certificate in %s is of another key", path)
	}
	for _, c := range parsed {
		all = append(all, c.Raw)
	}
	return all, nil
}

// sign signs a message with the algorithm that fits the key.
func sign(key crypto.Signer, text []byte) (x509.SignatureAlgorithm, []byte, error) {
	algorithm, hash := x509.PureEd25519, crypto.Hash(0)
	switch public := key.Public().(type) {
	case ed25519.PublicKey:
	case *rsa.PublicKey:
		algorithm, hash = x509.SHA256WithRSA, crypto.SHA256
	case *ecdsa.PublicKey:
		algorithm, hash = x509.ECDSAWithSHA256, crypto.SHA256
	default:
		return 0, nil, fmt.Errorf("a key of type %T is neither Ed25519, ECDSA nor RSA", public)
	}
	if hash == crypto.SHA256 {
		digest := sha256.Sum256(text)
		text = digest[:]
	}
	signature, err := key.Sign(rand.Reader, text, hash)
	return algorithm, signature, err
}
