package attackpaths

import (
	"context"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// show proves that a holding is there.
func (e *executor) show(ctx context.Context, h holding) error {
	switch h.Kind {
	case attackpaths.ServiceAccount, attackpaths.User, attackpaths.Group:
		a := e.actor(h)
		if a == nil {
			return errNoActor
		}
		return whoIs(ctx, a)
	case attackpaths.Node:
		return e.showNode(ctx, h.Name)
	case attackpaths.Pod:
		if !e.controlled[h] {
			return fmt.Errorf("no process was started in it")
		}
		return nil
	case attackpaths.Namespace:
		if _, ok := e.makers[h.Name]; !ok {
			return fmt.Errorf("no pod was made in it")
		}
		return nil
	case attackpaths.Secret:
		return e.showSecret(ctx, h)
	case attackpaths.ClusterAdmin:
		return e.showClusterAdmin(ctx)
	}
	return fmt.Errorf("nothing shows this")
}

// showNode makes a request with the node's credential.
func (e *executor) showNode(ctx context.Context, name string) error {
	if !e.nodes[name] {
		return fmt.Errorf("nothing runs on it with rights over it")
	}
	a := e.actor(holding{Kind: attackpaths.Node, Name: name})
	if a == nil {
		return errNoActor
	}
	return a.get(ctx, nodes.at("", name)).failure()
}

// showSecret compares the content with what the cluster has.
func (e *executor) showSecret(ctx context.Context, h holding) error {
	var want corev1.Secret
	a := e.admin.get(ctx, secrets.at(h.Namespace, h.Name))
	got, ok := e.secrets[h]
	if a.status == http.StatusNotFound && ok && got == nil {
		return nil // it can be read once it exists
	}
	if err := a.into(&want); err != nil {
		return err
	}
	if !ok || !sameContent(got, want.Data) {
		return fmt.Errorf("its content is not that in the cluster")
	}
	return nil
}

func sameContent(got, want map[string][]byte) bool {
	for k, v := range got {
		if string(want[k]) != string(v) {
			return false
		}
	}
	return len(got) > 0 || len(want) == 0
}

// showClusterAdmin finds an identity that may do everything, and does what only such a one may:
// it binds cluster-admin.
func (e *executor) showClusterAdmin(ctx context.Context) error {
	for _, a := range e.actors {
		if !mayEverything(ctx, a) {
			continue
		}
		binding := map[string]any{
			"metadata": map[string]any{"name": fmt.Sprint("made-", e.counter.Add(1))},
			"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": "attacker"}},
		}
		if err := a.post(ctx, clusterRoleBindings.in(""), binding).failure(); err != nil {
			return fmt.Errorf("as %s: %w", a.holding, err)
		}
		return nil
	}
	return fmt.Errorf("none of %d identities may do everything", len(e.actors))
}

func mayEverything(ctx context.Context, a *actor) bool {
	var review authorizationv1.SelfSubjectAccessReview
	review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
	err := a.post(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).into(&review)
	return err == nil && review.Status.Allowed
}
