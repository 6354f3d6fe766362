package noderestriction

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// signingRequestForNode limits requests to the two signers whose certificates
// identify a node. The signers check the other fields of the certificate.
func signingRequestForNode(q *question, csr *certificatesv1.CertificateSigningRequest) *refusal {
	switch csr.Spec.SignerName {
	case certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName:
	default:
		return nil
	}
	name, err := commonName(csr.Spec.Request)
	if err != nil {
		return forbid(SigningRequestNotReadable, "spec.request is not readable: %v", err)
	}
	if name != nodeidentity.UserPrefix+q.node {
		return forbid(SigningRequestForOtherName, "the request is for the common name %q, not %s%s", name, nodeidentity.UserPrefix, q.node)
	}
	return nil
}

// commonName returns the common name in the first PEM block; the last one if there
// are several.
func commonName(text []byte) (string, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return "", errors.New("it has no PEM block")
	}
	if block.Type != "CERTIFICATE REQUEST" {
		return "", fmt.Errorf("its PEM block is of type %q, not CERTIFICATE REQUEST", block.Type)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", err
	}
	return request.Subject.CommonName, nil
}
