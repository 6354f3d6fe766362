package attackpaths

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

// Cases have pods that have ended, and namespaces that terminate: their status says so.

// phase is the phase of an object in a case; empty for most.
func (o object) phase() string {
	status, _ := o.content["status"].(map[string]any)
	phase, _ := status["phase"].(string)
	return phase
}

// end ends the pods and namespaces of a case that are to end. A hollow kubelet ends the pods that run longer than they may.
func (w *world) end(ctx context.Context, objects []object) error {
	w.tokens = map[string]string{}
	for _, o := range objects {
		spec, _ := o.content["spec"].(map[string]any)
		switch phase := o.phase(); {
		case o.resource == pods && spec["activeDeadlineSeconds"] != nil:
			if err := w.untilEnded(ctx, o); err != nil {
				return err
			}
		case o.resource == pods && (phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)):
			status := map[string]any{"status": map[string]any{"phase": phase}}
			if err := w.admin.patch(ctx, o.path+"/status", mergePatch, status).failure(); err != nil {
				return err
			}
		}
	}
	for _, o := range objects {
		if o.resource == namespaces && o.phase() == string(corev1.NamespaceTerminating) {
			if err := w.terminate(ctx, o.name()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) untilEnded(ctx context.Context, pod object) error {
	return until(ctx, "the kubelet ends pod "+pod.name(), func(ctx context.Context) error {
		var p corev1.Pod
		if err := w.admin.get(ctx, pod.path).into(&p); err != nil {
			return err
		}
		if !ended(&p) {
			return fmt.Errorf("it is %s", p.Status.Phase)
		}
		return nil
	})
}

// ended reports whether the containers of a pod have ended for good.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// terminate deletes a namespace, which stays with all that is in it. The API server makes no more tokens of its accounts
// then, so that the tokens of the case's start and of pods that mount one are made before.
func (w *world) terminate(ctx context.Context, name string) error {
	for _, o := range w.list(ctx, serviceAccounts) {
		if o.namespace() != name {
			continue
		}
		var token authenticationv1.TokenRequest
		if err := w.admin.post(ctx, o.path+"/token", map[string]any{}).into(&token); err != nil {
			return err
		}
		w.tokens[o.path] = token.Status.Token
	}
	var list corev1.PodList
	if err := w.admin.get(ctx, pods.in(name)).into(&list); err != nil {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if !mountsToken(p) || p.Spec.ServiceAccountName == "" {
			continue
		}
		var token authenticationv1.TokenRequest
		asked := w.admin.post(ctx, serviceAccounts.at(name, p.Spec.ServiceAccountName, "token"), boundTo(p))
		if err := asked.into(&token); err != nil {
			return err
		}
		w.tokens[pods.at(name, p.Name)] = token.Status.Token
	}
	return w.admin.delete(ctx, namespaces.at("", name), nil).failure()
}
