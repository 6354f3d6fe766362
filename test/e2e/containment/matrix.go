package containment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// mode is a mode of all NodeScopes; empty for no NodeScopes.
type mode string

const (
	none    mode = ""
	observe      = mode(v1alpha1.Observe)
	enforce      = mode(v1alpha1.Enforce)
)

// modes are in the order in which they are tried.
var modes = []mode{none, enforce, observe}

// row has the answers to a probe in each mode.
type row struct {
	probe
	own, foreign map[mode]answer
}

// matrix has the answers to the probes of one agent.
type matrix struct {
	agent   *agent
	client  *client
	skipped []string
	rows    []*row
	// unbound is the request of the account with a token that is bound to nothing.
	unbound       *client
	unboundAnswer map[mode]answer
}

// prepareMatrix installs an agent and makes its probes.
func (w *world) prepareMatrix(ctx context.Context, a *agent, served map[[2]string]resource) (*matrix, error) {
	p := &prober{world: w, agent: a, served: served}
	for _, make := range []func(context.Context) error{p.asNode, p.rules, p.unnamed} {
		if err := make(ctx); err != nil {
			return nil, err
		}
	}
	m := &matrix{agent: a, skipped: p.skipped, unboundAnswer: map[mode]answer{}}
	for _, made := range p.probes {
		m.rows = append(m.rows, &row{probe: made, own: map[mode]answer{}, foreign: map[mode]answer{}})
	}
	var err error
	if m.client, err = w.agentClient(ctx, a.account.Namespace, a.account.Name, nodeA); err != nil {
		return nil, err
	}
	token, err := w.requestToken(ctx, a.account.Namespace, a.account.Name, nil)
	if err != nil {
		return nil, err
	}
	m.unbound, err = w.token(token)
	return m, err
}

// customResources defines what agents need beside the resources of Kubernetes, and makes an object for each
// node of those that are named as the node.
func (w *world) customResources(ctx context.Context, agents []*agent) (map[[2]string]resource, error) {
	known, err := w.served(ctx)
	if err != nil {
		return nil, err
	}
	fields := map[[2]string][]string{}
	for _, a := range agents {
		for _, r := range a.rights {
			for _, group := range r.rule.APIGroups {
				for _, name := range r.rule.Resources {
					name, _, _ = strings.Cut(name, "/")
					if _, served := known[[2]string{group, name}]; served || !strings.Contains(group, ".") || name == "*" ||
						slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(k [2]string) bool { return k[0] == group }) {
						continue
					}
					fields[[2]string{group, name}] = nil
				}
			}
		}
	}
	for _, a := range agents {
		for _, r := range a.scope.Spec.SelectsNode {
			for key, list := range fields {
				if names(r.APIGroups, key[0]) && names(r.Resources, key[1]) {
					fields[key] = append(list, r.Field)
				}
			}
		}
	}
	var paths []string
	for key, selectable := range fields {
		if err := w.define(ctx, key[0], key[1], selectable); err != nil {
			return nil, err
		}
		paths = append(paths, "/apis/"+key[0]+"/v1/"+key[1])
	}
	if err := w.awaitServed(ctx, paths); err != nil {
		return nil, err
	}
	return w.served(ctx)
}

// ownObjects makes an object of each node of the resources that are named as it, and one of a pod on each node of
// those that are named like pods.
func (w *world) ownObjects(ctx context.Context, a *agent, served map[[2]string]resource) error {
	for _, r := range a.scope.Spec.NamedAsNode {
		namespace := inNamespace(strings.Join(r.Namespaces, ""))
		err := w.objectsOfNodes(ctx, a, served, r.APIGroups, r.Resources, func(node string) target { return target{namespace, node, ""} })
		if err != nil {
			return err
		}
	}
	for _, r := range a.scope.Spec.PodsOnNode {
		err := w.objectsOfNodes(ctx, a, served, podGroups(&r), r.Resources, func(node string) target {
			return target{appNamespace, appPod(node), ""}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// objectsOfNodes makes an object for each node. The core group has what it needs.
func (w *world) objectsOfNodes(
	ctx context.Context, a *agent, served map[[2]string]resource, groups, resources []string, of func(node string) target,
) error {
	p := &prober{world: w, agent: a}
	for _, group := range groups {
		for _, name := range resources {
			name, _, _ = strings.Cut(name, "/")
			r, ok := served[[2]string{group, name}]
			if !ok || group == "" {
				continue
			}
			for _, node := range []string{nodeA, nodeB} {
				t := of(node)
				if !r.namespaced {
					t.namespace = ""
				}
				if err := w.create(ctx, r.path(t.namespace), p.created(ctx, r, t, node)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// setMode applies the scopes of all agents in a mode, and waits until they have their effect.
func (w *world) setMode(ctx context.Context, all []*matrix, m mode) error {
	for _, x := range all {
		path := scopesPath + "/" + x.agent.scope.Name
		if m == none {
			if err := w.drop(ctx, path); err != nil {
				return err
			}
			continue
		}
		spec := x.agent.scope.Spec
		spec.Mode = v1alpha1.Mode(m)
		if err := w.applyPolicy(ctx, scopesPath, v1alpha1.NodeScopeKind, x.agent.scope.Name, spec); err != nil {
			return err
		}
	}
	for _, x := range all {
		if m != none {
			if err := w.awaitAccepted(ctx, scopesPath+"/"+x.agent.scope.Name); err != nil {
				return err
			}
		}
		c, r := x.canary()
		if err := until(ctx, c, r, m == enforce); err != nil {
			return fmt.Errorf("%s in the mode %q: %w", x.agent.name, m, err)
		}
	}
	return nil
}

// canary is a request that the scope refuses in the mode Enforce, and that is not refused otherwise.
func (x *matrix) canary() (*client, request) {
	for _, r := range x.rows {
		if r.probe.foreign != nil {
			return x.client, *r.probe.foreign
		}
	}
	return x.unbound, x.rows[0].probe.own
}

// try sends all probes.
func (x *matrix) try(ctx context.Context, m mode) (err error) {
	for _, r := range x.rows {
		if r.own[m], err = x.client.do(ctx, r.probe.own); err != nil {
			return err
		}
		if r.probe.foreign == nil {
			continue
		}
		if r.foreign[m], err = x.client.do(ctx, *r.probe.foreign); err != nil {
			return err
		}
	}
	x.unboundAnswer[m], err = x.unbound.do(ctx, x.rows[0].probe.own)
	return err
}
