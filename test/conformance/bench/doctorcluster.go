package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// doctorCluster is the cluster that the doctor examines: every node is an instance of AWS and has
// asked for its serving certificate, and no node has a fault.
type doctorCluster struct{ fileCluster }

// nodeRoles is how many roles the nodes have among them.
const nodeRoles = 6

func nodeRole(i int) string { return fmt.Sprintf("nodes-%d", i%nodeRoles) }

func roleARN(role string) string {
	return "arn:aws:iam::" + fakeaws.DefaultAccount + ":role/" + role
}

func instanceID(i int) string { return fmt.Sprintf("i-%017x", 0x0b5e_0000_0000+i) }

// mappings is the content of aws-auth.
func (l doctorCluster) mappings() map[string]string {
	var roles strings.Builder
	add := func(role, username, groups string) {
		fmt.Fprintf(&roles, "- rolearn: %s\n  username: %s\n  groups: [%s]\n", roleARN(role), username, groups)
	}
	for i := range nodeRoles {
		add(nodeRole(i), "system:node:{{EC2PrivateDNSName}}", "system:bootstrappers, system:nodes")
	}
	add("deployer", "deployer:{{SessionName}}", "deployers")
	add("auditor", "auditor:{{SessionName}}", "auditors")
	return map[string]string{"mapRoles": roles.String()}
}

// mappingsFile returns aws-auth as a file of its own.
func (l doctorCluster) mappingsFile(folder string) (string, error) {
	path := filepath.Join(folder, "doctor-aws-auth.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-auth, namespace: kube-system}\ndata:\n  mapRoles: |\n    " +
		strings.ReplaceAll(strings.TrimSpace(l.mappings()["mapRoles"]), "\n", "\n    ") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing mappings: %w", err)
	}
	return path, nil
}

// file returns the cluster's file in a folder.
func (l doctorCluster) file(folder string) (string, error) {
	return written(filepath.Join(folder, fmt.Sprintf("doctor-%d-nodes-%d-pods.json", l.nodes, l.pods())), l.write)
}

func (l doctorCluster) write(file *os.File) error {
	s, err := newShapes()
	if err != nil {
		return err
	}
	maker, err := newRequestMaker()
	if err != nil {
		return err
	}
	w := newListWriter(file)
	for node := range l.nodes {
		if err := w.addObject(l.node(node)); err != nil {
			return err
		}
	}
	for node := range l.nodes {
		request, err := maker.make(node)
		if err != nil {
			return err
		}
		if err := w.addObject(l.approved(node, request)); err != nil {
			return err
		}
	}
	for node := range l.nodes {
		l.writePods(w, s, node)
	}
	return w.end()
}

// node is a node as its kubelet and AWS's controller make it.
func (l doctorCluster) node(i int) *corev1.Node {
	node := modelNode()
	node.ObjectMeta = metav1.ObjectMeta{Name: nodeName(i), Annotations: node.Annotations, Labels: map[string]string{
		corev1.LabelHostname: nodeName(i), corev1.LabelTopologyRegion: "eu-central-1", corev1.LabelTopologyZone: "eu-central-1a",
	}}
	node.Spec.ProviderID = "aws:///eu-central-1a/" + instanceID(i)
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)},
		{Type: corev1.NodeInternalDNS, Address: nodeName(i)},
		{Type: corev1.NodeHostName, Address: nodeName(i)},
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	return node
}

// requestMaker makes the requests of kubelets for serving certificates. All have the
// same key, which is not checked.
type requestMaker struct{ key *ecdsa.PrivateKey }

func newRequestMaker() (*requestMaker, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &requestMaker{key}, nil
}

// make returns the request as a kubelet sends it.
func (m *requestMaker) make(i int) (*certificatesv1.CertificateSigningRequest, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: kubelet(i).GetName(), Organization: []string{"system:nodes"}},
		DNSNames: []string{nodeName(i)},
	}, m.key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	return &certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("csr-%05d", i)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeletServingSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}, nil
}

// approved is the request as the API server keeps it: with who sent it, and what was
// decided.
func (l doctorCluster) approved(i int, request *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	canonical, session := roleARN(nodeRole(i)), instanceID(i)
	request.CreationTimestamp = metav1.Unix(1_767_225_600, 0).Rfc3339Copy()
	request.Spec.Username, request.Spec.Groups = kubelet(i).GetName(), []string{
		"system:bootstrappers", "system:nodes", "system:authenticated",
	}
	request.Spec.UID = "aws-iam-authenticator:" + fakeaws.DefaultAccount + ":AROAIOSFODNN7EXAMPLE1"
	request.Spec.Extra = map[string]certificatesv1.ExtraValue{
		"arn":          {"arn:aws:sts::" + fakeaws.DefaultAccount + ":assumed-role/" + nodeRole(i) + "/" + session},
		"canonicalArn": {canonical},
		"sessionName":  {session},
		"accessKeyId":  {"ASIAIOSFODNN7EXAMPLE"},
		"principalId":  {"AROAIOSFODNN7EXAMPLE1"},
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{approval()}
	// It has the size of a certificate. It is not read.
	request.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: make([]byte, 700)})
	return request
}

func approval() certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved",
		Message: "the requester is the node that it asks for",
	}
}
