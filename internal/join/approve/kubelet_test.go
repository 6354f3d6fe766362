package approve_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	csrutil "k8s.io/client-go/util/certificate/csr"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
)

func ecdsaKey(t testing.TB, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t testing.TB, bits int) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ed25519Key(t testing.TB) crypto.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The request is created as kubelet creates it at its first start, with the same library.
func TestFirstRequestOfAKubeletIsApproved(t *testing.T) {
	for name, key := range map[string]crypto.Signer{
		"RSA 2048": rsaKey(t, 2048), "RSA 3072": rsaKey(t, 3072), "P-256": ecdsaKey(t, elliptic.P256()),
		"P-384": ecdsaKey(t, elliptic.P384()), "P-521": ecdsaKey(t, elliptic.P521()), "Ed25519": ed25519Key(t),
	} {
		t.Run(name, func(t *testing.T) {
			subject := &pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:worker-1"}
			request, err := certutil.MakeCSR(key, subject, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			client := fake.NewClientset()
			usages := certificate.DefaultKubeletClientGetUsages(key)
			created, _, err := csrutil.RequestCertificateWithContext(context.Background(), client, request, "node-csr",
				certificatesv1.KubeAPIServerClientKubeletSignerName, nil, usages, key)
			if err != nil || created != "node-csr" {
				t.Fatal(created, err)
			}
			q := clientQuestion(t)
			q.Request = withRequester(sent(t, client), q.Request)
			if answer := approve.Decide(q); answer.Outcome != approve.Approve || answer.Code != approve.ClientCertificateApproved {
				t.Errorf("%+v", answer)
			}
		})
	}
}

// The test runs the manager that rotates kubelet's certificates until it has sent a request.
func TestRequestsOfTheCertificateManagerAreApproved(t *testing.T) {
	subject := pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:worker-1"}
	for _, tc := range []struct {
		kind     string
		config   certificate.Config
		question func(testing.TB) *approve.Question
		code     string
	}{
		{"client", certificate.Config{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, GetUsages: certificate.DefaultKubeletClientGetUsages,
			Template: &x509.CertificateRequest{Subject: subject},
		}, renewalQuestion, "RenewalApproved"},
		{"serving", certificate.Config{
			SignerName: certificatesv1.KubeletServingSignerName, GetUsages: certificate.DefaultKubeletServingGetUsages,
			Template: &x509.CertificateRequest{
				Subject: subject, DNSNames: []string{"worker-1"}, IPAddresses: []net.IP{net.ParseIP("10.0.0.7"), net.ParseIP("fd00::7")},
			},
		}, servingQuestion, "ServingCertificateApproved"},
	} {
		for name, generate := range map[string]func() (crypto.Signer, error){
			"its own key": nil,
			"RSA":         func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		} {
			t.Run(tc.kind+" with "+name, func(t *testing.T) {
				client := fake.NewClientset()
				requested := make(chan struct{})
				once := sync.OnceFunc(func() { close(requested) })
				client.PrependReactor("create", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
					defer once()
					return false, nil, nil
				})
				config := tc.config
				config.ClientsetFn = func(*tls.Certificate) (kubernetes.Interface, error) { return client, nil }
				config.CertificateStore = &store{}
				config.GenerateKey = generate
				manager, err := certificate.NewManager(&config)
				if err != nil {
					t.Fatal(err)
				}
				manager.Start()
				defer manager.Stop()
				<-requested
				q := tc.question(t)
				q.Request = withRequester(sent(t, client), q.Request)
				if answer := approve.Decide(q); answer.Outcome != approve.Approve || string(answer.Code) != tc.code {
					t.Errorf("%+v", answer)
				}
			})
		}
	}
}

// sent returns the request that a client created.
func sent(t testing.TB, client *fake.Clientset) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	for _, action := range client.Actions() {
		if create, ok := action.(clienttesting.CreateAction); ok {
			if csr, ok := create.GetObject().(*certificatesv1.CertificateSigningRequest); ok {
				return csr
			}
		}
	}
	t.Fatal("no request was created")
	return nil
}

// withRequester sets the requester, as the API server does.
func withRequester(csr, like *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	csr = csr.DeepCopy()
	csr.Spec.Username, csr.Spec.Groups = like.Spec.Username, like.Spec.Groups
	return csr
}

// store is an empty certificate store.
type store struct{}

func (*store) Current() (*tls.Certificate, error) {
	no := certificate.NoCertKeyError("none yet")
	return nil, &no
}

func (*store) Update(_, _ []byte) (*tls.Certificate, error) {
	return nil, fmt.Errorf("nothing is issued here")
}
