package attackpaths

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// podExec starts a process in a pod, or adds a container to one.
func (e *executor) podExec(ctx context.Context, s step) error {
	if s.To.Kind == attackpaths.Node {
		return e.addPrivileged(ctx, s)
	}
	a := s.as
	if a == nil {
		return errNoActor
	}
	_, subresource := s.may()
	if subresource == "ephemeralcontainers" {
		if err := e.addContainer(ctx, a, s.To, false, false).failure(); err != nil {
			return err
		}
	} else if got := connect(ctx, a, s.To, subresource); !got.connected() {
		return fmt.Errorf("%s", got)
	}
	e.controlled[s.To] = true
	return nil
}

// connect asks for exec or attach, with the verb create or get.
func connect(ctx context.Context, a *actor, h holding, subresource string) answer {
	path := pods.at(h.Namespace, h.Name, subresource) + "?stdin=true&stdout=true"
	if subresource == "exec" {
		path += "&command=id"
	}
	one := a.spdy(ctx, path)
	if !one.refused() {
		return one
	}
	other := a.websocket(ctx, path)
	other.other = &one
	return other
}

// addContainer adds a container to a running pod.
func (e *executor) addContainer(ctx context.Context, a *actor, h holding, privileged, try bool) answer {
	path := pods.at(h.Namespace, h.Name)
	var whole map[string]any
	if a := e.admin.get(ctx, path); a.into(&whole) != nil {
		return a
	}
	containers, _ := podSpec{privileged: privileged}.spec()["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	container["name"] = fmt.Sprint("made-", e.counter.Add(1))
	delete(container, "volumeMounts")
	spec, _ := whole["spec"].(map[string]any)
	old, _ := spec["ephemeralContainers"].([]any)
	spec["ephemeralContainers"] = append(old, container)
	added := map[string]any{"spec": map[string]any{"ephemeralContainers": spec["ephemeralContainers"]}}
	return change(ctx, a, path+"/ephemeralcontainers", whole, added, try)
}

// addPrivileged adds a privileged container to a pod on a node.
func (e *executor) addPrivileged(ctx context.Context, s step) error {
	last := error(errNoActor)
	for _, a := range e.acting(s) {
		for i := range e.pods {
			p := &e.pods[i]
			if p.Spec.NodeName != s.To.Name || isMirror(p) {
				continue
			}
			h := holding{Kind: attackpaths.Pod, Namespace: p.Namespace, Name: p.Name}
			if last = e.addContainer(ctx, a, h, true, false).failure(); last == nil {
				return e.ownNode(ctx, s.To.Name)
			}
		}
	}
	return last
}

// nodeProxy asks the kubelet of the pod's node to run a command.
func (e *executor) nodeProxy(ctx context.Context, s step) error {
	p, err := e.pod(s.To)
	if err != nil {
		return err
	}
	a := s.as
	if a == nil {
		return errNoActor
	}
	if got := proxy(ctx, a, p); !got.connected() {
		return fmt.Errorf("%s", got)
	}
	e.controlled[s.To] = true
	return nil
}

// proxy asks with the verb create, then get.
func proxy(ctx context.Context, a *actor, p *corev1.Pod) answer {
	path := nodes.at("", p.Spec.NodeName, "proxy", "run", p.Namespace, p.Name, "c") + "?cmd=id"
	if got := a.post(ctx, path, nil); !got.refused() {
		return got
	}
	return a.get(ctx, path)
}
