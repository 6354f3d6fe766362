package approve_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// newEntry returns the entry of a machine that was attested as worker-1 a minute ago.
func newEntry() *v1alpha1.NodeAttestation {
	return &v1alpha1.NodeAttestation{
		ObjectMeta: metav1.ObjectMeta{Name: "aws-i-1", UID: "uid-1", CreationTimestamp: metav1.NewTime(now().Add(-time.Minute))},
		Spec: v1alpha1.NodeAttestationSpec{
			NodeName: "worker-1", TokenID: "aaaaaa", TokenExpiration: metav1.NewTime(now().Add(4 * time.Minute)),
			Names: []string{"worker-1", "*.example.com"}, Addresses: []string{"10.0.0.7", "fd00::7"},
		},
	}
}

// template returns the content of a kubelet's request.
func template(commonName string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: commonName}}
}

func encoded(t testing.TB, key crypto.Signer, template *x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return block(der)
}

func block(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// theKey returns a key that tests share.
func theKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := onceKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var onceKey = sync.OnceValues(func() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
})

// clientQuestion returns a machine's first request, which is approved.
func clientQuestion(t testing.TB) *approve.Question {
	entry := newEntry()
	return &approve.Question{
		Request: &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    encoded(t, theKey(t), template("system:node:worker-1")),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Username:   "system:bootstrap:aaaaaa", Groups: []string{"system:bootstrappers", v1alpha1.TokenGroup, "system:authenticated"},
		}},
		Now:   now(),
		Entry: entry, Entries: []*v1alpha1.NodeAttestation{entry},
	}
}

// renewalQuestion returns a node's request for its next client certificate, which is approved.
func renewalQuestion(t testing.TB) *approve.Question {
	q := clientQuestion(t)
	q.Request.Spec.Username, q.Request.Spec.Groups = nodeidentity.User("worker-1")
	q.Entry = nil
	return q
}

// servingQuestion returns a node's request for its serving certificate, which is approved.
func servingQuestion(t testing.TB) *approve.Question {
	q := renewalQuestion(t)
	q.SelfNodeServer = true
	q.Request.Spec.SignerName = certificatesv1.KubeletServingSignerName
	q.Request.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	q.Request.Spec.Request = encoded(t, theKey(t), servingTemplate("worker-1", "10.0.0.7"))
	return q
}
