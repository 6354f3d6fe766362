package noderestriction_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// signingRequest is a PEM certificate request for common names, in their order.
func signingRequest(t testing.TB, commonNames ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var names pkix.RDNSequence
	for _, name := range commonNames {
		names = append(names, pkix.RelativeDistinguishedNameSET{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: name}})
	}
	subject, err := asn1.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{RawSubject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func requestCertificate(signer string, request []byte) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: noderestriction.Create, Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests",
		Object: &certificatesv1.CertificateSigningRequest{
			Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signer, Request: request},
		},
	})
}

func TestCertificateSigningRequests(t *testing.T) {
	own, other := signingRequest(t, "system:node:worker-1"), signingRequest(t, "system:node:worker-2")
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})
	for _, signer := range []string{"kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"} {
		t.Run(signer, func(t *testing.T) {
			ask := func(request []byte) *noderestriction.Request { return requestCertificate(signer, request) }
			checkAll(t, shop(), []expectation{
				{rule: "for the node", request: ask(own), code: noderestriction.RestrictionsMet},
				{rule: "for another node", request: ask(other), code: noderestriction.SigningRequestForOtherName},
				{
					rule: "for a name that only ends like it", request: ask(signingRequest(t, "x:system:node:worker-1")),
					code: noderestriction.SigningRequestForOtherName,
				},
				{rule: "for no name", request: ask(signingRequest(t)), code: noderestriction.SigningRequestForOtherName},
				{
					rule: "for a longer name", request: ask(signingRequest(t, "system:node:worker-10")),
					code: noderestriction.SigningRequestForOtherName,
				},
				{
					rule:    "of two common names the last counts",
					request: ask(signingRequest(t, "system:node:worker-2", "system:node:worker-1")),
					code:    noderestriction.RestrictionsMet,
				},
				{
					rule:    "another node's name last",
					request: ask(signingRequest(t, "system:node:worker-1", "system:node:worker-2")),
					code:    noderestriction.SigningRequestForOtherName,
				},
				{
					rule: "text before it does not matter", request: ask(append([]byte("a request\n"), own...)),
					code: noderestriction.RestrictionsMet,
				},
				{
					rule: "of two requests the first counts", request: ask(append(append([]byte{}, other...), own...)),
					code: noderestriction.SigningRequestForOtherName,
				},
				{
					rule: "another block first", request: ask(append(append([]byte{}, private...), own...)),
					code: noderestriction.SigningRequestNotReadable,
				},
				{
					rule:    "the request under another title",
					request: ask(bytes.Replace(own, []byte("CERTIFICATE REQUEST"), []byte("NEW CERTIFICATE REQUEST"), -1)),
					code:    noderestriction.SigningRequestNotReadable,
				},
				{rule: "no PEM", request: ask([]byte("x")), code: noderestriction.SigningRequestNotReadable},
				{rule: "nothing", request: ask(nil), code: noderestriction.SigningRequestNotReadable},
				{
					rule:    "no request in it",
					request: ask(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})),
					code:    noderestriction.SigningRequestNotReadable,
				},
			})
		})
	}
	approval := requestCertificate("kubernetes.io/kubelet-serving", other)
	approval.Operation, approval.Subresource = noderestriction.Update, "approval"
	wrong := requestCertificate("", nil)
	wrong.Object = &corev1.Pod{}
	checkAll(t, shop(), []expectation{
		{
			rule: "other signers check for themselves", request: requestCertificate("example.com/signer", []byte("x")),
			code: noderestriction.RestrictionsMet,
		},
		{rule: "updates are the authorizers' to decide", request: approval, code: noderestriction.NotRestricted},
		{rule: "an object of another type", request: wrong, code: noderestriction.UnexpectedObject},
	})
	insecure := noderestriction.New(shop(), nil, latest(t, "AllowInsecureKubeletCertificateSigningRequests=true"))
	expectation{
		rule: "with the gate for insecure requests", request: requestCertificate("kubernetes.io/kubelet-serving", other),
		code: noderestriction.NotRestricted,
	}.check(t, insecure)
}
