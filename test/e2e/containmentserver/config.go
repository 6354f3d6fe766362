package containmentserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// config returns what node-authorizer prints for API servers.
func (s *Setup) config(args ...string) (string, error) {
	all := []string{"scope", "authorization-config", "--kubernetes-version", "1.37"}
	if s.Quarantines {
		all = append(all, "--quarantines")
	}
	for _, path := range s.Scopes {
		all = append(all, "-f", path)
	}
	command := exec.CommandContext(context.Background(), s.Program(), append(all, args...)...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("node-authorizer %v: %w", command.Args[1:], err)
	}
	return string(text), nil
}

// ApplyWebhook makes the API servers ask the server at an address in admission.
func (s *Setup) ApplyWebhook(ctx context.Context, p *localplane.Plane, admit string) error {
	authority, err := os.ReadFile(p.CAFile())
	if err != nil {
		return err
	}
	text, err := s.config("-o", "webhook-configuration", "--admit-url", "https://"+admit+"/admit")
	if err != nil {
		return err
	}
	path := filepath.Join(s.Dir, "webhook.yaml")
	text = strings.ReplaceAll(text, "CA_BUNDLE", base64.StdEncoding.EncodeToString(authority))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return apply(ctx, p, path)
}
