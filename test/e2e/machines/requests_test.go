package machines

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// request is a certificate signing request.
type request struct {
	signer        string
	commonName    string
	organizations []string
	dnsNames      []string
	addresses     []string
	usages        []certificatesv1.KeyUsage
}

var nodesOnly = []string{"system:nodes"}

// clientRequest is a kubelet's request for its client certificate.
func clientRequest(node string) request {
	return request{
		signer:     certificatesv1.KubeAPIServerClientKubeletSignerName,
		commonName: "system:node:" + node, organizations: nodesOnly,
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}
}

// servingRequest is a kubelet's request for its serving certificate.
func servingRequest(node string, addresses ...string) request {
	return request{
		signer:     certificatesv1.KubeletServingSignerName,
		commonName: "system:node:" + node, organizations: nodesOnly, addresses: addresses,
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	orFatal(t, err)
	return key
}

// submit creates the request. kube-apiserver refuses a token until its watch of Secrets has
// delivered it, and a kubelet tries again.
func submit(t *testing.T, config *rest.Config, r request, key *ecdsa.PrivateKey) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var created *certificatesv1.CertificateSigningRequest
	var err error
	eventually(t, "kube-apiserver accepts the credential", func(context.Context) error {
		if created, err = create(t, config, r, key); apierrors.IsUnauthorized(err) {
			return err
		}
		return nil
	})
	orFatal(t, err)
	return created
}

func create(t *testing.T, config *rest.Config, r request, key *ecdsa.PrivateKey) (*certificatesv1.CertificateSigningRequest, error) {
	t.Helper()
	template := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: r.commonName, Organization: r.organizations},
		DNSNames: r.dnsNames,
	}
	for _, address := range r.addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	orFatal(t, err)
	return clientFor(t, config).CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: r.signer, Usages: r.usages,
		},
	}, metav1.CreateOptions{})
}

// decided waits until a request is approved or denied.
func decided(t *testing.T, c *Cluster, name string) certificatesv1.CertificateSigningRequestCondition {
	t.Helper()
	var condition certificatesv1.CertificateSigningRequestCondition
	eventually(t, "the request is decided", func(ctx context.Context) error {
		r, err := c.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition = range r.Status.Conditions {
			if condition.Type == certificatesv1.CertificateApproved || condition.Type == certificatesv1.CertificateDenied {
				return nil
			}
		}
		return errors.New("it is pending")
	})
	return condition
}

// denied submits a request and checks that it is denied for a reason.
func denied(t *testing.T, c *Cluster, config *rest.Config, r request, code verdict.Code) {
	t.Helper()
	deniedWith(t, c, config, r, newKey(t), code)
}

func deniedWith(t *testing.T, c *Cluster, config *rest.Config, r request, key *ecdsa.PrivateKey, code verdict.Code) {
	t.Helper()
	condition := decided(t, c, submit(t, config, r, key).Name)
	if condition.Type != certificatesv1.CertificateDenied || condition.Reason != string(code) {
		t.Errorf("%s %s: %s, want it denied: %s", condition.Type, condition.Reason, condition.Message, code)
	}
}

// issued submits a request and waits for the certificate.
func issued(t *testing.T, c *Cluster, config *rest.Config, r request, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	name := submit(t, config, r, key).Name
	if condition := decided(t, c, name); condition.Type != certificatesv1.CertificateApproved {
		t.Fatalf("%s %s: %s", condition.Type, condition.Reason, condition.Message)
	}
	var certificate *x509.Certificate
	eventually(t, "the certificate is issued", func(ctx context.Context) error {
		r, err := c.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		block, _ := pem.Decode(r.Status.Certificate)
		if block == nil {
			return errors.New("there is none yet")
		}
		certificate, err = x509.ParseCertificate(block.Bytes)
		return err
	})
	return certificate
}

// withToken returns a configuration with a bootstrap token.
func withToken(c *Cluster, token string) *rest.Config {
	config := rest.AnonymousClientConfig(c.AdminConfig())
	config.BearerToken = token
	config.QPS = -1
	return config
}

// certified joins a machine without a kubelet, and returns a configuration with its
// node's certificate.
func certified(t *testing.T, c *Cluster, m *Machine) *rest.Config {
	t.Helper()
	key := newKey(t)
	certificate := issued(t, c, withToken(c, token(t, m, c.Replicas[0])), clientRequest(m.NodeName()), key)
	return withCertificate(t, c, certificate, key)
}

func withCertificate(t *testing.T, c *Cluster, certificate *x509.Certificate, key *ecdsa.PrivateKey) *rest.Config {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	orFatal(t, err)
	config := rest.AnonymousClientConfig(c.AdminConfig())
	config.CertData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	config.KeyData = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	config.QPS = -1
	return config
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	orFatal(t, err)
	return client
}

// served connects to a kubelet's port and returns its certificate, which must be signed
// by the cluster's authority and valid for the given name or address.
func served(c *Cluster, m *Machine, name string) (*x509.Certificate, error) {
	roots, err := server.Roots(c.CAFile())
	if err != nil {
		return nil, err
	}
	connection, err := tls.Dial("tcp", m.Node.ServingAddress(), &tls.Config{RootCAs: roots, ServerName: name})
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0], nil
}
