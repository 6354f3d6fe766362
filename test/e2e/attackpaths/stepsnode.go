package attackpaths

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// pod finds a pod of the case.
func (e *executor) pod(h holding) (*corev1.Pod, error) {
	i := slices.IndexFunc(e.pods, func(p corev1.Pod) bool { return p.Namespace == h.Namespace && p.Name == h.Name })
	if i < 0 {
		return nil, fmt.Errorf("%s is not in the cluster", h)
	}
	return &e.pods[i], nil
}

func isMirror(p *corev1.Pod) bool { return p.Annotations[corev1.MirrorPodAnnotationKey] != "" }

// podOnNode reads the pod with the node's credential. Root on the node controls its processes;
// that makes no request.
func (e *executor) podOnNode(ctx context.Context, s step) error {
	p, err := e.pod(s.To)
	if err != nil {
		return err
	}
	a := s.as
	if a == nil {
		return errNoActor
	}
	var read corev1.Pod
	if err := a.get(ctx, pods.at(p.Namespace, p.Name)).into(&read); err != nil {
		return err
	}
	if read.Spec.NodeName != s.From.Name {
		return fmt.Errorf("the pod is bound to %q", read.Spec.NodeName)
	}
	e.controlled[s.To] = true
	return nil
}

// mountsToken reports whether a pod mounts a token for the API server.
func mountsToken(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == ""
		})
	})
}

// podTokenOnNode reads the token of a pod on the node.
func (e *executor) podTokenOnNode(ctx context.Context, s step) error {
	node := s.From.Name
	if e.reading[s.From] {
		node = "" // of a claim, whichever node mounts it
		if s.From.Kind == attackpaths.Pod {
			p, err := e.pod(s.From)
			if err != nil {
				return err
			}
			node = p.Spec.NodeName
		}
	} else if !e.nodes[node] {
		return errNoActor
	}
	for i := range e.pods {
		p := &e.pods[i]
		if (node == "" || p.Spec.NodeName == node) && p.Namespace == s.To.Namespace &&
			p.Spec.ServiceAccountName == s.To.Name && mountsToken(p) {
			return e.requestToken(ctx, s.To, p)
		}
	}
	return fmt.Errorf("no pod on the node mounts a token")
}

// podToken reads the token that is mounted into a pod.
func (e *executor) podToken(ctx context.Context, s step) error {
	p, err := e.pod(s.From)
	if err != nil {
		return err
	}
	if !e.controlled[s.From] {
		return fmt.Errorf("no process was started in the pod")
	}
	if !mountsToken(p) {
		return fmt.Errorf("the pod mounts no token for the API server")
	}
	return e.requestToken(ctx, s.To, p)
}

// requestToken is the kubelet's request for the token of a pod. A pod that has just been made
// has to be known to the Node authorizer.
func (e *executor) requestToken(ctx context.Context, h holding, p *corev1.Pod) error {
	if token, ok := e.tokens[pods.at(p.Namespace, p.Name)]; ok {
		return e.ownToken(ctx, h, token)
	}
	node, err := e.nodeClient(p.Spec.NodeName)
	if err != nil {
		return err
	}
	var token authenticationv1.TokenRequest
	err = until(ctx, "the kubelet gets the pod's token", func(ctx context.Context) error {
		return node.post(ctx, serviceAccounts.at(h.Namespace, h.Name, "token"), boundTo(p)).into(&token)
	})
	if err != nil {
		return err
	}
	return e.ownToken(ctx, h, token.Status.Token)
}

// boundTo asks for a token that is bound to a pod.
func boundTo(p *corev1.Pod) map[string]any {
	return map[string]any{"spec": map[string]any{
		"boundObjectRef": map[string]any{"kind": "Pod", "apiVersion": "v1", "name": p.Name, "uid": p.UID},
	}}
}

// nodeName is the node of a credential: a node's own, or a token's.
func (a *actor) nodeName() string {
	if name, ok := strings.CutPrefix(a.holding.Name, "system:node:"); ok {
		return name
	}
	return a.node
}

// tokenOfPodOnNode requests a token with the node's credential, for a pod on the node.
func (e *executor) tokenOfPodOnNode(ctx context.Context, s step) error {
	a := s.as
	if a == nil {
		return errNoActor
	}
	last := answer{err: fmt.Errorf("no pod on the node has the account")}
	for i := range e.pods {
		p := &e.pods[i]
		if p.Spec.NodeName != a.nodeName() || p.Namespace != s.To.Namespace || p.Spec.ServiceAccountName != s.To.Name {
			continue
		}
		var token authenticationv1.TokenRequest
		last = a.post(ctx, serviceAccounts.at(s.To.Namespace, s.To.Name, "token"), boundTo(p))
		if last.ok() {
			if err := last.into(&token); err != nil {
				return err
			}
			return e.ownToken(ctx, s.To, token.Status.Token)
		}
	}
	return last.failure()
}

// secretOnNode reads a secret with the node's credential.
func (e *executor) secretOnNode(ctx context.Context, s step) error {
	a := s.as
	if a == nil {
		return errNoActor
	}
	return e.keep(s.To, a.get(ctx, secrets.at(s.To.Namespace, s.To.Name)))
}

// keep notes the content of a secret. A secret that pods name and that does not exist can be
// read once it does: the answer is then that it is not found.
func (e *executor) keep(h holding, a answer) error {
	if a.status == http.StatusNotFound {
		e.secrets[h] = nil
		return nil
	}
	var secret corev1.Secret
	if err := a.into(&secret); err != nil {
		return err
	}
	e.secrets[h] = secret.Data
	return nil
}

// podSecret reads a secret that a pod's containers see.
func (e *executor) podSecret(ctx context.Context, s step) error {
	p, err := e.pod(s.From)
	if err != nil {
		return err
	}
	if !e.controlled[s.From] {
		return fmt.Errorf("no process was started in the pod")
	}
	return e.requestSecret(ctx, s.To, p.Spec.NodeName)
}

// requestSecret is the kubelet's request for a secret of a pod.
func (e *executor) requestSecret(ctx context.Context, h holding, name string) error {
	node, err := e.nodeClient(name)
	if err != nil {
		return err
	}
	var a answer
	err = until(ctx, "the kubelet gets the pod's secret", func(ctx context.Context) error {
		if a = node.get(ctx, secrets.at(h.Namespace, h.Name)); a.status == http.StatusNotFound {
			return nil
		}
		return a.failure()
	})
	if err != nil {
		return err
	}
	return e.keep(h, a)
}

// podEscape ends with the pod that runs on its node with rights over it.
func (e *executor) podEscape(ctx context.Context, s step) error {
	from := s.From
	if from.Kind != attackpaths.Pod { // an account that may read logs, with a pod that its path has
		i := slices.IndexFunc(s.before, func(h holding) bool {
			return h.Kind == attackpaths.Pod && strings.HasSuffix(s.Because, "; with "+h.String())
		})
		if i < 0 {
			return errNoActor
		}
		from = s.before[i]
	}
	p, err := e.pod(from)
	if err != nil {
		return err
	}
	if !e.controlled[from] || s.To.Kind == attackpaths.Node && p.Spec.NodeName != s.To.Name {
		return fmt.Errorf("the pod is not controlled, or not on the node")
	}
	if err := e.runs(ctx, p.Namespace, p.Name, p.Spec.NodeName); err != nil {
		return err
	}
	if s.To.Kind != attackpaths.Node && linksLogs(p) {
		read, _ := first(e.acting(s), func(a *actor) answer { return e.readLogs(ctx, a, p) })
		if !read.connected() {
			return fmt.Errorf("%s", read)
		}
	}
	return e.takeOf(ctx, p.Spec.NodeName, s)
}

// takeOf takes the holding that a folder of a node gives: the node, its credential, or files that other steps read
// there. The hollow kubelet's disk has no files, so that paths to files end with the pod that mounts the folder.
func (e *executor) takeOf(ctx context.Context, node string, s step) error {
	switch s.To.Kind {
	case attackpaths.Node:
		return e.ownNode(ctx, node)
	case attackpaths.User:
		c, err := e.nodeClient(node)
		if err != nil {
			return err
		}
		return e.own(ctx, &actor{holding: s.To, client: c})
	}
	e.reading[s.From] = true
	return nil
}

// runs waits until a pod runs on a node with a kubelet. On others nothing runs.
func (e *executor) runs(ctx context.Context, namespace, name, node string) error {
	if !e.hasKubelet(node) {
		return nil
	}
	return until(ctx, "pod "+namespace+"/"+name+" runs", func(ctx context.Context) error {
		var p corev1.Pod
		if err := e.admin.get(ctx, pods.at(namespace, name)).into(&p); err != nil {
			return err
		}
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s %s", p.Status.Phase, p.Status.Reason)
		}
		return nil
	})
}

// controlPlaneNode takes the credentials on the disk of a control plane node: the key of the
// cluster's authority signs any certificate, and the scheduler's kubeconfig lies beside it.
func (e *executor) controlPlaneNode(ctx context.Context, s step) error {
	if !e.nodes[s.From.Name] && !e.reading[s.From] {
		return errNoActor
	}
	h, groups := holding{Kind: attackpaths.Group, Name: "system:masters"}, []string{"system:masters"}
	user := "attacker"
	if s.To.Kind == attackpaths.User {
		h, groups, user = s.To, nil, s.To.Name
	}
	c, err := e.certificateClient(user, groups...)
	if err != nil {
		return err
	}
	return e.own(ctx, &actor{holding: h, client: c})
}

// linksLogs reports whether a pod can write into the folder of logs of its node: a link in it leads the kubelet to other
// files.
func linksLogs(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		writes := func(m corev1.VolumeMount) bool { return m.Name == v.Name && !m.ReadOnly }
		return v.HostPath != nil && strings.HasPrefix(v.HostPath.Path+"/", "/var/log/") &&
			slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return slices.ContainsFunc(c.VolumeMounts, writes) })
	})
}

// readLogs asks for logs of a pod, or of its node. The kubelet asks the API server about the latter.
func (e *executor) readLogs(ctx context.Context, a *actor, p *corev1.Pod) answer {
	read := a.get(ctx, pods.at(p.Namespace, p.Name, "log"))
	if read.refused() {
		read = a.get(ctx, nodes.at("", p.Spec.NodeName, "proxy", "logs")+"/")
	}
	if !read.refused() {
		return read
	}
	var review authorizationv1.SelfSubjectAccessReview
	review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: "get", Resource: nodes.name, Subresource: "log", Name: p.Spec.NodeName,
	}
	asked := e.ask(ctx, a, "selfsubjectaccessreviews", review)
	if err := asked.into(&review); err != nil || !review.Status.Allowed {
		return read
	}
	return asked
}
