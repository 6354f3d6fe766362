package containment

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// testScope names the accounts of tests whose tokens may have no node. Those with a node are sent for quarantines.
const testScope = `
apiVersion: policy.node-authorizer.io/v1alpha1
kind: NodeScope
metadata: {name: of-tests}
spec: {mode: Observe, subjects: [{namespace: ` + bypassNamespace + `}]}
`

// bypassNamespace has the accounts that try to get around NodeScopes.
const bypassNamespace = "bypass"

// authorizationConfig returns the AuthorizationConfiguration that node-authorizer prints for the NodeScopes of
// agents and of tests.
func (w *world) authorizationConfig(kubeconfig string) (string, error) {
	return w.scopeConfig("--webhook-kubeconfig", kubeconfig)
}

// webhookConfig returns the configuration that it prints for admission.
func (w *world) webhookConfig(url string) (string, error) {
	return w.scopeConfig("-o", "webhook-configuration", "--admit-url", url)
}

func (w *world) scopeConfig(args ...string) (string, error) {
	tests := filepath.Join(w.dir, "scope-of-tests.yaml")
	if err := os.WriteFile(tests, []byte(testScope), 0o600); err != nil {
		return "", err
	}
	args = append([]string{
		"scope", "authorization-config", "--quarantines", "--kubernetes-version", "1.37", "-f", filepath.Join(root, "scopes"), "-f", tests,
	}, args...)
	command := exec.CommandContext(context.Background(), w.program, args...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("node-authorizer %v: %w", args, err)
	}
	return string(text), nil
}
