package attackpaths

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/containmentserver"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// nodeScopes are the objects that the server enforces.
var nodeScopes = resource{"policy.node-authorizer.io", "v1alpha1", "nodescopes", false}

// scopedAccounts are the accounts about which the API server asks: the accounts of cases, and the account of barriers.
const scopedAccounts = `
apiVersion: policy.node-authorizer.io/v1alpha1
kind: NodeScope
metadata: {name: accounts}
spec: {mode: Enforce, subjects: [{namespace: shop}, {namespace: default, name: barrier}]}
`

// startScoped starts a control plane whose API server asks node-authorizer about NodeScopes, before the Node
// authorizer and RBAC and in admission.
func startScoped(ctx context.Context, dir string) (*world, error) {
	setup := &containmentserver.Setup{Root: "../../..", Dir: dir, Scopes: []string{filepath.Join(dir, "accounts.yaml")}}
	if err := os.WriteFile(setup.Scopes[0], []byte(scopedAccounts), 0o600); err != nil {
		return nil, err
	}
	if err := setup.Build(ctx); err != nil {
		return nil, err
	}
	const apiServer = "apiserver"
	var beside *server.Server
	w, err := start(ctx, kubeversion.Latest, []string{web1, pay1}, localplane.Options{
		AuthorizationConfig: setup.AuthorizationConfig(apiServer), NodeRestriction: true,
		ExtraArgs: map[localplane.Component][]string{
			localplane.APIServer: setup.Args(apiServer),
			localplane.ControllerManager: {
				"--controllers=*,-garbage-collector-controller,-namespace-controller", "--pvclaimbinder-sync-period=1s",
			},
		},
		Prepare: func(p *localplane.Plane) (err error) {
			if beside, err = server.New(p, "node-authorizer", filepath.Join(dir, "server")); err != nil {
				return err
			}
			return setup.WriteFiles(p, apiServer, beside.Address, beside.Address)
		},
		OnAPIServer: func(ctx context.Context, p *localplane.Plane) error {
			if err := setup.Install(ctx, p); err != nil {
				return err
			}
			if err := setup.Run(ctx, p, beside, p.Server()); err != nil {
				return err
			}
			return setup.ApplyWebhook(ctx, p, beside.Address)
		},
	})
	if w == nil {
		return nil, err
	}
	w.scopes = true
	return w, errors.Join(err, w.enforce(ctx, nil))
}

// enforce replaces all NodeScopes by those with the specs, and waits until the server uses them. It learns of
// NodeScopes in the order of their changes, and the barrier is the last.
func (w *world) enforce(ctx context.Context, specs []map[string]any) error {
	for _, o := range w.list(ctx, nodeScopes) {
		if o.name() != barrierScope {
			if err := w.admin.delete(ctx, o.path, nil).failure(); err != nil {
				return fmt.Errorf("remove a NodeScope: %w", err)
			}
		}
	}
	for i, spec := range specs {
		if err := w.putScope(ctx, fmt.Sprint("scope-", i), spec); err != nil {
			return err
		}
	}
	if err := w.putScope(ctx, barrierScope, w.barrierSpec()); err != nil {
		return err
	}
	w.enforced = len(specs)
	get := func(ctx context.Context, path string, into any) error { return w.admin.get(ctx, path).into(into) }
	for _, o := range w.list(ctx, nodeScopes) {
		if err := containmentserver.AwaitAccepted(ctx, get, o.path); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) putScope(ctx context.Context, name string, spec map[string]any) error {
	body := map[string]any{
		"apiVersion": nodeScopes.group + "/" + nodeScopes.version, "kind": "NodeScope",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}
	path := nodeScopes.at("", name) + "?fieldManager=test&force=true"
	if err := w.admin.patch(ctx, path, applyPatch, body).failure(); err != nil {
		return fmt.Errorf("write a NodeScope: %w", err)
	}
	return nil
}

const barrierScope = "barrier"

// barrierSpec is a spec that is new each time. It lets the account of barriers get pods on the node of its token.
func (w *world) barrierSpec() map[string]any {
	account := func(name string) map[string]any { return map[string]any{"namespace": "default", "name": name} }
	return map[string]any{
		"mode":     "Enforce",
		"subjects": []any{account("barrier"), account(fmt.Sprint("barrier-", w.counter.Add(1)))},
		"podsOnNode": []any{
			map[string]any{"resources": []any{"pods"}, "verbs": []any{"get"}},
		},
	}
}

// settleServer waits until the server knows the pod of a barrier, and so every pod that was made or removed
// before it.
func (w *world) settleServer(ctx context.Context, barrier string) error {
	if !w.scopes {
		return nil
	}
	review := map[string]any{"spec": map[string]any{
		"user":  "system:serviceaccount:default:barrier",
		"extra": map[string]any{"authentication.kubernetes.io/node-name": []string{barrier}},
		"resourceAttributes": map[string]any{
			"verb": "get", "version": "v1", "resource": "pods", "namespace": "default", "name": barrier,
		},
	}}
	return await.Until(ctx, "the server knows the last pod", func(ctx context.Context) error {
		var got struct {
			Status struct {
				Denied bool
				Reason string
			}
		}
		if err := w.admin.post(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).into(&got); err != nil {
			return err
		}
		if got.Status.Denied {
			return errors.New(got.Status.Reason)
		}
		return nil
	})
}

// nodeOfToken is the node of a token where scopes matter; empty if it has none.
func (w *world) nodeOfToken(token string) string {
	var claims struct {
		Kubernetes struct{ Node struct{ Name string } } `json:"kubernetes.io"`
	}
	parts := strings.Split(token, ".")
	if w.enforced == 0 || len(parts) != 3 {
		return ""
	}
	if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Node.Name
}
