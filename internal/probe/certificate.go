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

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

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
	err = p.compared(ctx, p.names.node, other, own, "can only create a node CSR", nodeidentity.UserPrefix+p.names.node)
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
