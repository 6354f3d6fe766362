package attackpaths

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// any returns the first answer that is not refused, with its identity.
func (t *attempts) any(ask func(*actor) answer) (answer, *actor) { return first(t.actors, ask) }

// planNodes tries privileged pods, labels and volumes in the namespaces in which pods can be
// made. Pod Security does not look at who makes a pod; pods of workloads are made by controllers.
func (t *attempts) planNodes(ctx context.Context) {
	t.tries(attackpaths.PodCreate, attackpaths.VolumeControl, attackpaths.NamespaceRelabel)
	for _, o := range t.objects(ctx, nodes) {
		h := holding{Kind: attackpaths.Node, Name: o.name()}
		t.add(h, attackpaths.PodCreate, t.actors[0], func(ctx context.Context) answer { return t.newNamespace(ctx, h.Name) })
		for namespace, m := range t.makers {
			p := podSpec{name: "attempt", node: h.Name, privileged: true}
			t.add(h, attackpaths.PodCreate, m.actor, func(ctx context.Context) answer {
				return t.admin.post(ctx, dry(pods.in(namespace)), p.object())
			})
			t.add(h, attackpaths.VolumeControl, m.actor, func(ctx context.Context) answer {
				volume, _ := t.any(func(a *actor) answer { return a.post(ctx, dry(volumes.in("")), hostVolume("attempt")) })
				return volume
			})
			for _, a := range t.actors {
				t.add(h, attackpaths.NamespaceRelabel, a, func(ctx context.Context) answer {
					return relabel(namespace, func(path string, labels map[string]any) answer {
						return replaceDry(ctx, a, path, labels, labels)
					})
				})
			}
		}
	}
}

// newNamespace tries a privileged pod in a namespace that some identity may make. All attempts share it.
func (t *attempts) newNamespace(ctx context.Context, node string) answer {
	const name = "attempt-namespace"
	last, _ := t.any(func(a *actor) answer { return a.post(ctx, dry(namespaces.in("")), privilegedNamespace(name)) })
	if last.refused() {
		return last
	}
	if made := t.admin.post(ctx, namespaces.in(""), privilegedNamespace(name)); !made.ok() && made.status != http.StatusConflict {
		return made
	}
	if err := t.untilAccount(ctx, name); err != nil {
		return answer{request: "wait for a namespace", err: err}
	}
	p := podSpec{name: "attempt", node: node, privileged: true}
	last, _ = t.any(func(a *actor) answer { return a.post(ctx, dry(pods.in(name)), p.object()) })
	for _, kind := range workloads {
		if last.refused() {
			last, _ = t.any(func(a *actor) answer { return a.post(ctx, dry(kind.in(name)), p.workloadObject(kind)) })
		}
	}
	return last
}

// planCertificates tries requests for certificates. Any identity may make a request;
// one and the same has to approve it and be one that the signer lets approve.
func (t *attempts) planCertificates(ctx context.Context) {
	t.tries(attackpaths.ApproveCertificate)
	targets := t.identities(ctx)
	for _, o := range t.objects(ctx, serviceAccounts) {
		targets = append(targets, holding{Kind: attackpaths.ServiceAccount, Namespace: o.namespace(), Name: o.name()})
	}
	for _, signer := range []string{clientSigner, kubeletSigner} {
		for _, name := range t.namesOf(ctx, t.actors, "", "certificates.k8s.io", "certificatesigningrequests") {
			allowed := answer{}
			asked := false
			for _, h := range targets {
				isNode := h.Kind == attackpaths.User && strings.HasPrefix(h.Name, "system:node:")
				if t.held[h] || (signer == kubeletSigner && !isNode) || h.Name == "system:masters" {
					continue
				}
				if !asked {
					allowed, asked = t.certificateOf(ctx, h, name, signer), true
				}
				t.list = append(t.list, attempt{
					target: h, technique: attackpaths.ApproveCertificate, who: t.actors[0].holding,
					try: func(context.Context) answer { return allowed },
				})
			}
		}
	}
}

// certificateOf asks for each part of a certificate: the first that is refused is the answer.
func (t *attempts) certificateOf(ctx context.Context, h holding, name, signer string) answer {
	request, err := newCertificateRequest(h, name, signer)
	if err != nil {
		return answer{err: err}
	}
	t.forget(ctx, signingRequests.at("", name))
	made, _ := t.any(func(a *actor) answer { return a.post(ctx, dry(signingRequests.in("")), request.object) })
	if made.refused() {
		return made
	}
	created := t.admin.post(ctx, signingRequests.in(""), request.object)
	if !created.ok() && created.status != http.StatusConflict {
		return created
	}
	if created.status == http.StatusConflict {
		created = t.admin.get(ctx, signingRequests.at("", name))
	}
	if signer == kubeletSigner && t.isApproved(ctx, made) {
		read, _ := t.any(func(a *actor) answer { return readRequest(ctx, a, name, created) })
		if !read.refused() {
			return read
		}
	}
	approval, _ := t.any(func(a *actor) answer { return approve(ctx, a, name, created, true) })
	return approval
}

// planTokenSecrets tries to create secrets for accounts and to read them back.
func (t *attempts) planTokenSecrets(ctx context.Context) {
	t.tries(attackpaths.ServiceAccountTokenSecret)
	answers := map[string]answer{}
	for _, o := range t.objects(ctx, serviceAccounts) {
		h := holding{Kind: attackpaths.ServiceAccount, Namespace: o.namespace(), Name: o.name()}
		if t.held[h] {
			continue
		}
		if _, ok := answers[h.Namespace]; !ok {
			answers[h.Namespace] = t.tokenSecret(ctx, h)
		}
		t.list = append(t.list, attempt{
			target: h, technique: attackpaths.ServiceAccountTokenSecret, who: t.actors[0].holding,
			try: func(context.Context) answer { return answers[h.Namespace] },
		})
	}
}

func (t *attempts) tokenSecret(ctx context.Context, h holding) answer {
	var last answer
	for _, name := range t.namesOf(ctx, t.actors, h.Namespace, "", "secrets") {
		secret := map[string]any{
			"type":     string(corev1.SecretTypeServiceAccountToken),
			"metadata": map[string]any{"name": name, "annotations": map[string]any{corev1.ServiceAccountNameKey: h.Name}},
		}
		if last, _ = t.any(func(a *actor) answer { return a.post(ctx, dry(secrets.in(h.Namespace)), secret) }); last.refused() {
			return last
		}
		if last.status == http.StatusConflict {
			continue // it is another secret already
		}
		named := holding{Kind: attackpaths.Secret, Namespace: h.Namespace, Name: name}
		read, _ := t.any(func(a *actor) answer { return readSecret(ctx, a, named) })
		if last = read; !read.refused() {
			return answer{request: fmt.Sprintf("create and read %s", named), status: http.StatusOK}
		}
	}
	return last
}
