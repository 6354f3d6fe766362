package approve_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
)

// A machine that was attested as worker-1 sends requests for two names with its bootstrap token.
func Example() {
	entry := &v1alpha1.NodeAttestation{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.EntryName("aws", "i-0123456789abcdef0")},
		Spec: v1alpha1.NodeAttestationSpec{
			Provider: "aws", InstanceID: "i-0123456789abcdef0", NodeName: "worker-1",
			TokenID: "abcdef", TokenExpiration: metav1.NewTime(time.Now().Add(time.Hour)),
		},
	}
	for _, node := range []string{"worker-1", "control-plane-1"} {
		answer := approve.Decide(&approve.Question{
			Request: kubeletRequest(entry.Spec.TokenID, node),
			Now:     time.Now(),
			Entry:   entry,
			Entries: []*v1alpha1.NodeAttestation{entry},
		})
		fmt.Println(node, answer.Outcome, answer.Code)
	}
	// Output:
	// worker-1 approve ClientCertificateApproved
	// control-plane-1 deny WrongNodeName
}

// kubeletRequest returns the request of a kubelet with a bootstrap token.
func kubeletRequest(tokenID, node string) *certificatesv1.CertificateSigningRequest {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		panic(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "node-csr", UID: "1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Username:   v1alpha1.TokenUser(tokenID),
			Groups:     []string{"system:bootstrappers", v1alpha1.TokenGroup, "system:authenticated"},
		},
	}
}
