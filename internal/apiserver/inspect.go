package apiserver

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Inspection has the content of the files of a connection, without secrets.
type Inspection struct {
	// ClientCertificate is nil if the credentials are no certificate.
	ClientCertificate *x509.Certificate
	// Authorities verify the API server's certificate. Without any, the host's are used.
	Authorities []*x509.Certificate
	// SecretFiles are the paths of the files with keys and tokens.
	SecretFiles []string
}

// Inspect reads the files of a kubeconfig, whose path is in a field of the configuration. It fails if and only if [Open]
// does. It sends no request, and runs no credential plugin.
func Inspect(field, kubeconfig string) (*Inspection, error) {
	c, err := Open(Options{Kubeconfig: kubeconfig, Field: field})
	if err != nil {
		return nil, err
	}
	named, err := c.load(sha256.New())
	if err != nil {
		return nil, err
	}
	found := &Inspection{SecretFiles: secretFiles(kubeconfig, named)}
	inlined := rest.CopyConfig(named)
	if err := inline(field, inlined); err != nil {
		return nil, err
	}
	found.Authorities = certificatesIn(inlined.CAData)
	if pair, err := tls.X509KeyPair(inlined.CertData, inlined.KeyData); err == nil {
		found.ClientCertificate = pair.Leaf
	}
	return found, nil
}

// secretFiles returns the files that hold the secrets of a config.
func secretFiles(kubeconfig string, config *rest.Config) []string {
	var files []string
	if file, err := clientcmd.LoadFromFile(kubeconfig); err == nil {
		for _, user := range file.AuthInfos {
			if len(user.ClientKeyData) > 0 || user.Token != "" || user.Password != "" {
				files = append(files, kubeconfig)
				break
			}
		}
	}
	for _, path := range []string{config.KeyFile, config.BearerTokenFile} {
		if path != "" {
			files = append(files, path)
		}
	}
	return files
}

// certificatesIn returns the certificates in PEM data that can be parsed.
func certificatesIn(data []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return found
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			found = append(found, certificate)
		}
	}
}
