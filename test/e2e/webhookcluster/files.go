package webhookcluster

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// Texts of deploy/static-pod that this package replaces.
const (
	manifestsDir     = "deploy/static-pod"
	containmentDir   = "../containment/static-pod"
	webhookAddress   = "127.0.0.1:10270"
	metricsAddress   = "127.0.0.1:10271"
	apiServerAddress = "127.0.0.1:6443"
	apiServerDir     = "/etc/kubernetes/node-authorizer/apiserver"
	serverDir        = "/etc/node-authorizer"
	bundle           = "CA_BUNDLE"

	nodesOnly = `- expression: "'system:nodes' in request.groups"
    - expression: "request.user.startsWith('system:node:')"`
)

// nodesAndTokens is the match condition for Quarantines: nodes, and tokens that are bound to one.
const nodesAndTokens = `- expression: >-
        request.user.startsWith('system:node:') || 'authentication.kubernetes.io/node-name' in request.extra`

// copyFiles copies the files of a folder of deploy/static-pod with replacements.
func (c *Cluster) copyFiles(from, to string, replace *strings.Replacer) error {
	from = filepath.Join(c.root, manifestsDir, from)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, entry.Name()), []byte(replace.Replace(string(text))), 0o600)
	})
}

// writeAPIServerFiles writes the files for kube-apiserver's flags.
func (c *Cluster) writeAPIServerFiles(p *localplane.Plane) error {
	replace := []string{webhookAddress, c.Webhooks.Address(), apiServerDir, c.apiServerDir()}
	if c.quarantines {
		replace = append(replace, nodesOnly, nodesAndTokens)
	}
	err := c.copyFiles("apiserver", c.apiServerDir(), strings.NewReplacer(replace...))
	if err != nil {
		return fmt.Errorf("write kube-apiserver's files: %w", err)
	}
	certificate, key, err := p.ClientCertificate("kube-apiserver-to-webhooks", "kube-apiserver")
	if err != nil {
		return err
	}
	return server.CopyFiles(c.apiServerDir(), map[string]string{"ca.crt": p.CAFile(), "client.crt": certificate, "client.key": key})
}

// writeWebhooks writes the webhook configurations.
func (c *Cluster) writeWebhooks(p *localplane.Plane) error {
	authority, err := os.ReadFile(p.CAFile())
	if err != nil {
		return err
	}
	replace := strings.NewReplacer(webhookAddress, c.Webhooks.Address(), bundle, base64.StdEncoding.EncodeToString(authority))
	if err := c.copyFiles("webhooks", c.webhooksDir(), replace); err != nil {
		return fmt.Errorf("write the webhook configurations: %w", err)
	}
	// The kustomization is not an object.
	return os.Remove(filepath.Join(c.webhooksDir(), "kustomization.yaml"))
}

// writeFiles writes the files of one server, except for its serving certificate.
func (r *Replica) writeFiles(c *Cluster, p *localplane.Plane) error {
	replace := strings.NewReplacer(
		webhookAddress, r.Address, metricsAddress, r.MetricsAddress, apiServerAddress, r.Watches.Address(), serverDir, r.Dir())
	err := c.copyFiles("server", r.Dir(), replace)
	if err == nil && c.quarantines {
		err = c.copyFiles(containmentDir, r.Dir(), replace) // another config file
	}
	if err != nil {
		return fmt.Errorf("write the files of %s: %w", r.name, err)
	}
	certificate, key, err := p.ClientCertificate(r.name, "node-authorizer")
	if err != nil {
		return err
	}
	return server.CopyFiles(r.Dir(), map[string]string{"cluster-ca.crt": p.CAFile(), "client.crt": certificate, "client.key": key})
}
