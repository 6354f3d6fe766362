package doctor

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/finding"
)

// identityMapping is an IAMIdentityMapping as the API serves it.
type identityMapping struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ARN      string   `json:"arn"`
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"spec"`
}

func (m *identityMapping) mapping(at finding.Place) IdentityMapping {
	return IdentityMapping{Place: at, Name: m.Name, ARN: m.Spec.ARN, Username: m.Spec.Username, Groups: m.Spec.Groups}
}

func newNode(n *corev1.Node, at finding.Place) Node {
	node := Node{Place: at, Name: n.Name, ProviderID: n.Spec.ProviderID, Labels: n.Labels, Addresses: n.Status.Addresses}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			node.Ready = c.Status
		}
	}
	return node
}

func isKubeletSigner(signer string) bool {
	return signer == certificatesv1.KubeletServingSignerName || signer == certificatesv1.KubeAPIServerClientKubeletSignerName
}

func newCertificateRequest(csr *certificatesv1.CertificateSigningRequest, at finding.Place) CertificateRequest {
	r := CertificateRequest{
		Place: at, Name: csr.Name, Signer: csr.Spec.SignerName, Requester: csr.Spec.Username, Groups: csr.Spec.Groups,
		Issued: len(csr.Status.Certificate) > 0, Created: csr.CreationTimestamp.Time,
	}
	if arn := csr.Spec.Extra["canonicalArn"]; len(arn) == 1 && strings.Contains(arn[0], ":role/") {
		r.RoleARN = arn[0]
	}
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateApproved:
			r.Approved = true
		case certificatesv1.CertificateDenied:
			r.Denied = true
		}
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		r.Unreadable = "spec.request is not PEM"
		return r
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		r.Unreadable = "spec.request is not a certificate request"
		return r
	}
	r.CommonName, r.Organizations = asked.Subject.CommonName, asked.Subject.Organization
	return r
}

func (c *Cluster) addClusterRoleBinding(b *rbacv1.ClusterRoleBinding, at finding.Place) {
	c.RBAC.SetClusterRoleBinding(b)
	c.Bindings = append(c.Bindings, Binding{Place: at, Name: b.Name, Role: b.RoleRef, Subjects: b.Subjects, Labels: maps.Clone(b.Labels)})
}

func (c *Cluster) addRoleBinding(b *rbacv1.RoleBinding, at finding.Place) {
	c.RBAC.SetRoleBinding(b)
	c.Bindings = append(c.Bindings, Binding{
		Place: at, Namespace: b.Namespace, Name: b.Name, Role: b.RoleRef, Subjects: b.Subjects, Labels: maps.Clone(b.Labels),
	})
}

// addWebhook adds a webhook that applies NodeRestriction. It ignores a webhook with failurePolicy
// Ignore, which does not restrict nodes reliably.
func (c *Cluster) addWebhook(name string, policy *admissionv1.FailurePolicyType, at finding.Place) {
	if name == restrictionWebhook && (policy == nil || *policy == admissionv1.Fail) {
		c.Restrictions = append(c.Restrictions, at)
	}
}

// sort sorts the objects by name, so that findings are sorted, and keeps the last of several
// objects with the same name.
func (c *Cluster) sort() {
	slices.SortStableFunc(c.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	c.Nodes = lastOf(c.Nodes, func(a, b Node) bool { return a.Name == b.Name })
	slices.SortStableFunc(c.Requests, func(a, b CertificateRequest) int { return cmp.Compare(a.Name, b.Name) })
	c.Requests = lastOf(c.Requests, func(a, b CertificateRequest) bool { return a.Name == b.Name })
	slices.SortStableFunc(c.Bindings, func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	c.Bindings = lastOf(c.Bindings, func(a, b Binding) bool { return a.Namespace == b.Namespace && a.Name == b.Name })
	slices.SortStableFunc(c.IdentityMappings, func(a, b IdentityMapping) int { return cmp.Compare(a.Name, b.Name) })
	c.IdentityMappings = lastOf(c.IdentityMappings, func(a, b IdentityMapping) bool { return a.Name == b.Name })
	c.complete()
	slices.SortStableFunc(c.APIServers, func(a, b APIServer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Place.String(), b.Place.String()))
	})
	c.APIServers = lastOf(c.APIServers, func(a, b APIServer) bool { return a.Name == b.Name && a.Place == b.Place })
}

// lastOf keeps the last of adjacent equal elements.
func lastOf[T any](sorted []T, equal func(a, b T) bool) []T {
	kept := sorted[:0]
	for i, x := range sorted {
		if i+1 < len(sorted) && equal(x, sorted[i+1]) {
			continue
		}
		kept = append(kept, x)
	}
	return kept
}
