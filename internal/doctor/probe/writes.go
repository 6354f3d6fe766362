package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// noSuchDryRun is a value of dryRun that does not exist. An API server refuses it after it has
// authorized the request, and before it reads the object or asks admission.
const noSuchDryRun = "NoSuchValue"

// firstConstrained is the first minor with constrained impersonation.
const firstConstrained kubeversion.Minor = 35

// write is a write that a probe sends with dryRun=All.
type write struct {
	path string
	// what is the same write for a SubjectAccessReview.
	what   action
	object any
	about  string
	// stored is the path at which the object would be if dryRun had been ignored; empty if nothing is
	// stored.
	stored string
}

// refusal is the answer of the API server to a write.
type refusal struct {
	// passed is true if nothing refused it. Otherwise admission is true if admission refused it with
	// 403, and answer is what it said.
	passed, admission bool
	answer            *answer
}

// try sends a write as a node. If done is true, the probe is concluded.
func (p *prober) try(ctx context.Context, node string, w *write) (got refusal, done bool, err error) {
	as, checked, err := p.dryRunIsRead(ctx, node, w)
	if err != nil || !checked {
		return refusal{}, true, err
	}
	a := p.do(ctx, request{
		method: http.MethodPost, path: w.path, query: url.Values{"dryRun": {metav1.DryRunAll}}, as: as,
		body: w.object, about: w.about, unread: true,
	})
	switch {
	case a.code == http.StatusCreated:
		return refusal{passed: true, answer: a}, false, p.nothingStored(ctx, w)
	case a.refused(http.StatusForbidden):
		return refusal{admission: true, answer: a}, false, nil
	}
	return refusal{answer: a}, false, nil
}

// dryRunIsRead sends the write with a value of dryRun that does not exist, and an empty object, which
// nothing would store either, once for each path and node. It concludes the probe unless the write may
// be sent, and returns the identity with which.
func (p *prober) dryRunIsRead(ctx context.Context, node string, w *write) (identity, bool, error) {
	key := [2]string{node, w.path}
	if as, checked := p.dryRuns[key]; checked {
		return as, true, nil
	}
	as := identity{nodeidentity.UserPrefix + node, []string{nodeidentity.Group}}
	a := p.sendEmpty(ctx, as, w)
	if a.refused(http.StatusForbidden) && p.mayNotImpersonate(ctx, as) {
		constrained := identity{user: as.user}
		if b := p.sendEmpty(ctx, constrained, w); !b.refused(http.StatusForbidden) {
			as, a = constrained, b
		}
	}
	switch {
	case a.refused(http.StatusUnprocessableEntity) && a.status.Details != nil && a.status.Details.Kind == "CreateOptions":
		p.dryRuns[key] = as
		return as, true, nil
	case a.refused(http.StatusForbidden):
		p.forbidden(ctx, as, w, a)
	case a.ok():
		return as, false, fmt.Errorf("POST %s with a value of dryRun that does not exist succeeded: something on the way to the "+
			"API server drops the query; look for an object without a name there", w.path)
	default:
		p.conclude(Undetermined, "whether the API server reads dryRun does not show: %s", a)
	}
	return as, false, nil
}

func (p *prober) sendEmpty(ctx context.Context, as identity, w *write) *answer {
	return p.do(ctx, request{
		method: http.MethodPost, path: w.path, query: url.Values{"dryRun": {noSuchDryRun}}, as: as,
		body: struct{}{}, about: "an empty object", unread: true,
	})
}

// mayNotImpersonate reports whether the caller is known to have no right to impersonate the user as any
// user. Then a request that names the user alone is only impersonated with the rights of constrained
// impersonation (KEP-5284), which puts a node in its groups, and does not let the caller name them.
func (p *prober) mayNotImpersonate(ctx context.Context, as identity) bool {
	if p.minor != 0 && p.minor < firstConstrained {
		return false
	}
	r := p.reviewSelf(ctx, action{verb: "impersonate", resource: "users", name: as.user})
	return r.unknown == "" && !r.allowed
}

// forbidden says which right is missing: the right of the caller to impersonate, or the right of the node.
func (p *prober) forbidden(ctx context.Context, as identity, w *write, a *answer) {
	r := p.review(ctx, identity{as.user, []string{nodeidentity.Group, groupAuthenticated}}, w.what)
	switch {
	case r.unknown != "":
		p.lacking(r.lacks, r.remedy, "the request was refused: %s; %s", a.line, r.unknown)
	case !r.allowed:
		p.conclude(Undetermined, "a node may not %s, so that admission is not asked", w.what)
	default:
		p.lacking("users, groups", "bind a role with the verb impersonate on users and on the group "+nodeidentity.Group+
			" to the user, or a limited one (docs/reference/findings/README.md)", "nodes may not be impersonated: %s", a.line)
	}
}

func (p *prober) nothingStored(ctx context.Context, w *write) error {
	if w.stored == "" {
		return nil
	}
	if a := p.do(ctx, request{method: http.MethodGet, path: w.stored, unread: true}); a.ok() {
		return fmt.Errorf("%s was stored in spite of dryRun=All: delete it", w.stored)
	}
	return nil
}

// says reports whether an answer has all of some words, as NodeRestriction has in its messages.
func (g *refusal) says(words ...string) bool {
	for _, word := range words {
		if g.answer == nil || !strings.Contains(g.answer.line, word) {
			return false
		}
	}
	return g.admission
}

// ourWebhook is in the messages of node-authorizer's webhook, which has the rules of NodeRestriction.
const ourWebhook = `admission webhook "noderestriction.node-authorizer.io" denied the request`

// compared concludes from a write that NodeRestriction refuses and one that it does not. The words
// are in its message.
func (p *prober) compared(ctx context.Context, forbidden, allowed *write, words ...string) error {
	got, done, err := p.try(ctx, p.names.node, forbidden)
	if done || err != nil {
		return err
	}
	switch {
	case got.passed:
		p.conclude(DoesNotHold, "a node may create %s", forbidden.about)
		return nil
	case !got.admission:
		p.conclude(Undetermined, "%s", got.answer)
		return nil
	case got.says(words...), got.says(ourWebhook):
		p.conclude(Holds, "admission refuses it: %s", got.answer.line)
		return nil
	case allowed == nil:
		p.conclude(Undetermined, "admission refuses it, but not NodeRestriction: %s", got.answer.line)
		return nil
	}
	other, done, err := p.try(ctx, p.names.node, allowed)
	switch {
	case done || err != nil:
		return err
	case other.passed:
		p.conclude(Holds, "admission refuses it, and allows %s: %s", allowed.about, got.answer.line)
	default:
		p.conclude(Undetermined, "admission refuses it, and %s too: %s", allowed.about, other.answer)
	}
	return nil
}

const pathNodes = "/api/v1/nodes"

func (p *prober) nodeWrite(name, about string, labels map[string]string) *write {
	return &write{
		path: pathNodes, what: action{verb: "create", resource: "nodes", name: name}, about: about, stored: pathNodes + "/" + name,
		object: corev1.Node{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		},
	}
}

func (p *prober) ownNode() *write { return p.nodeWrite(p.names.node, "its own Node", nil) }

func (p *prober) writeOtherNode(ctx context.Context) error {
	return p.compared(ctx, p.nodeWrite(p.names.other, "a Node of another name", nil), p.ownNode(),
		p.names.node, p.names.other, "is not allowed to modify node")
}

func (p *prober) writeLabel(ctx context.Context) error {
	const label = "node-restriction.kubernetes.io/node-authorizer-probe"
	labelled := p.nodeWrite(p.names.node, "its own Node with the label "+label, map[string]string{label: "true"})
	return p.compared(ctx, labelled, p.ownNode(), p.names.node, "is not allowed to set the following labels", label)
}

// writePod creates a pod that satisfies the Pod Security Standard restricted, so that few others
// refuse it.
func (p *prober) writePod(ctx context.Context) error {
	const path = "/api/v1/namespaces/default/pods"
	w := &write{
		path: path, what: action{verb: "create", resource: "pods", namespace: "default", name: p.names.pod},
		about: "a pod on itself that is no mirror pod", stored: path + "/" + p.names.pod, object: p.pod(),
	}
	return p.compared(ctx, w, nil, corev1.MirrorPodAnnotationKey, "can only create mirror pods")
}

func (p *prober) pod() *corev1.Pod {
	yes, no, nobody := true, false, int64(65534)
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: p.names.pod, Namespace: "default"},
		Spec: corev1.PodSpec{
			NodeName: p.names.node, AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &nobody,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "probe", Image: "node-authorizer.invalid/probe:none",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// certificate requests a certificate for another node. The key is not kept.
func (p *prober) certificate(ctx context.Context) error {
	other, err := p.csr(p.names.other, "a request for a certificate of another node")
	if err != nil {
		return err
	}
	own, err := p.csr(p.names.node, "a request for its own certificate")
	if err != nil {
		return err
	}
	err = p.compared(ctx, other, own, "can only create a node CSR", nodeidentity.UserPrefix+p.names.node)
	if p.current.Outcome == DoesNotHold && p.minor != 0 && kubeversion.For(p.minor).Enabled(insecureRequests) {
		p.breaks(ByVersion, "%s: Kubernetes %s does not check that", p.current.Why, p.minor)
	}
	return err
}

const insecureRequests = kubeversion.AllowInsecureKubeletCertificateSigningRequests

func (p *prober) csr(node, about string) (*write, error) {
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: nodeidentity.UserPrefix + node, Organization: []string{nodeidentity.Group}},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	name := p.names.pod
	return &write{
		path: path, about: about, stored: path + "/" + name,
		what: action{verb: "create", group: certificatesv1.GroupName, resource: "certificatesigningrequests", name: name},
		object: certificatesv1.CertificateSigningRequest{
			TypeMeta:   metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: encoded}),
				SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		},
	}, nil
}
