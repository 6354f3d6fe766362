package apiserver

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// maxFile is the maximum size of a file, in bytes.
const maxFile = 8 << 20

// contents is the content of all files, or the error why they cannot be used.
type contents struct {
	// config holds the content of the files, and no path.
	config *rest.Config
	// tls is the hash of everything that a TLS connection depends on, and token that
	// of the bearer token.
	tls, token [sha256.Size]byte
	err        error
}

func (c *contents) equal(d *contents) bool {
	if c.err != nil || d.err != nil {
		return c.err != nil && d.err != nil && c.err.Error() == d.err.Error()
	}
	return c.tls == d.tls && c.token == d.token
}

func (c *Connection) read() contents {
	hash := sha256.New()
	config, err := c.load(hash)
	if err == nil {
		err = inline(c.opts.Field, config)
	}
	if err != nil {
		return contents{err: err}
	}
	for _, text := range [][]byte{[]byte(config.Host), config.CAData, config.CertData, config.KeyData} {
		fmt.Fprintf(hash, "%d\n", len(text))
		hash.Write(text)
	}
	return contents{config: config, tls: [sha256.Size]byte(hash.Sum(nil)), token: sha256.Sum256([]byte(config.BearerToken))}
}

// load returns the config of the kubeconfig, or of the pod's service account. It
// writes the kubeconfig to the hash.
func (c *Connection) load(hash io.Writer) (*rest.Config, error) {
	if c.opts.Kubeconfig == "" {
		config, err := c.opts.pod()
		if err != nil {
			return nil, fmt.Errorf("use the service account of the pod: %w; outside of a pod, set %s", err, c.opts.Field)
		}
		return config, nil
	}
	text, err := readFile(c.opts.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.opts.Field, err)
	}
	if _, err := hash.Write(text); err != nil {
		return nil, err
	}
	file, err := clientcmd.Load(text)
	if err != nil {
		// The parser's own error may quote the file.
		return nil, fmt.Errorf("read %s: %s is not a kubeconfig", c.opts.Field, c.opts.Kubeconfig)
	}
	if file.CurrentContext == "" {
		return nil, fmt.Errorf("read %s: %s has no current-context: set it to the name of a context", c.opts.Field, c.opts.Kubeconfig)
	}
	if file.Contexts[file.CurrentContext] == nil {
		return nil, fmt.Errorf("read %s: %s has no context %.80q, which is its current-context: correct one of them",
			c.opts.Field, c.opts.Kubeconfig, file.CurrentContext)
	}
	for _, user := range file.AuthInfos {
		user.LocationOfOrigin = c.opts.Kubeconfig
	}
	for _, cluster := range file.Clusters {
		cluster.LocationOfOrigin = c.opts.Kubeconfig
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.opts.Field, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read %s: %s: %s", c.opts.Field, c.opts.Kubeconfig, strings.Join(strings.Fields(err.Error()), " "))
	}
	return config, nil
}

// inline replaces the file names in a config by the files' content. The field has the path of the kubeconfig.
func inline(field string, config *rest.Config) error {
	for _, f := range []struct {
		what string
		path *string
		into *[]byte
	}{
		{"certificate authority", &config.CAFile, &config.CAData},
		{"client certificate", &config.CertFile, &config.CertData},
		{"client key", &config.KeyFile, &config.KeyData},
	} {
		if *f.path != "" && len(*f.into) == 0 {
			text, err := readFile(*f.path)
			if err == nil && len(text) == 0 {
				err = fmt.Errorf("%s is empty", *f.path)
			}
			if err != nil {
				return fmt.Errorf("read %s: the %s: %w", field, f.what, err)
			}
			*f.into = text
		}
		*f.path = ""
	}
	if config.BearerTokenFile == "" {
		return nil
	}
	text, err := readFile(config.BearerTokenFile)
	if err != nil {
		return fmt.Errorf("read the token for the API server: %w", err)
	}
	if config.BearerToken = strings.TrimSpace(string(text)); config.BearerToken == "" {
		return fmt.Errorf("read the token for the API server: %s is empty", config.BearerTokenFile)
	}
	config.BearerTokenFile = ""
	return nil
}

var errTooLarge = errors.New("the file is too large")

// readFile reads a file that is no larger than maxFile.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("read %s: %w: it has more than %d bytes", path, errTooLarge, maxFile)
	}
	return text, err
}

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

// Users returns the names that the current credentials say that the user has: the common name of the
// client certificate, and the service account of the token. Nothing is verified, and the API server
// is not asked. Other credentials name nobody. The result must not be changed.
func (c *Connection) Users() []string { return *c.users.Load() }

func usersOf(config *rest.Config) []string {
	var users []string
	if pair, err := tls.X509KeyPair(config.CertData, config.KeyData); err == nil && pair.Leaf.Subject.CommonName != "" {
		users = append(users, pair.Leaf.Subject.CommonName)
	}
	account := subjectOf(config.BearerToken)
	if _, _, ok := nodeidentity.ServiceAccount(account); ok {
		users = append(users, account)
	}
	return users
}

// subjectOf returns the subject of a JSON Web Token; empty if the token is none.
func subjectOf(token string) string {
	parts := strings.Split(token, ".")
	const parted = 3
	if len(parts) != parted {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Subject
}
