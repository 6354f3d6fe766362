package apiserver

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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
