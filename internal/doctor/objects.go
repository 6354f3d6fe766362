package doctor

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// placer returns the place of the value at a path of an object.
type placer func(path ...string) finding.Place

// workload has the pod template of a DaemonSet, Deployment or StatefulSet.
type workload struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// webhooks is a MutatingWebhookConfiguration in a file, whose caBundle can be a placeholder.
type webhooks struct {
	metav1.ObjectMeta `json:"metadata"`
	Webhooks          []struct {
		Name          string                         `json:"name"`
		FailurePolicy *admissionv1.FailurePolicyType `json:"failurePolicy"`
	} `json:"webhooks"`
}

func (c *Cluster) add(o metav1.Object, at placer) {
	switch o := o.(type) {
	case *corev1.Node:
		c.Nodes = append(c.Nodes, newNode(o, at()))
	case *certificatesv1.CertificateSigningRequest:
		if slices.Contains(kubeletSigners(), o.Spec.SignerName) {
			c.Requests = append(c.Requests, newCertificateRequest(o, at()))
		}
	case *rbacv1.ClusterRole:
		c.RBAC.SetClusterRole(o)
	case *rbacv1.Role:
		o.Namespace = cmp.Or(o.Namespace, metav1.NamespaceDefault)
		c.RBAC.SetRole(o)
	case *rbacv1.ClusterRoleBinding:
		c.RBAC.SetClusterRoleBinding(o)
		c.Bindings = append(c.Bindings, Binding{at(), "", o.Name, o.RoleRef, o.Subjects})
	case *rbacv1.RoleBinding:
		o.Namespace = cmp.Or(o.Namespace, metav1.NamespaceDefault)
		c.RBAC.SetRoleBinding(o)
		c.Bindings = append(c.Bindings, Binding{at(), o.Namespace, o.Name, o.RoleRef, o.Subjects})
	case *corev1.Pod:
		c.addContainers(&o.ObjectMeta, &o.Spec, at, "spec")
	case *workload:
		c.addContainers(&o.ObjectMeta, &o.Spec.Template.Spec, at, "spec", "template", "spec")
	case *admissionv1.MutatingWebhookConfiguration:
		for _, hook := range o.Webhooks {
			c.addWebhook(hook.Name, hook.FailurePolicy, at())
		}
	case *webhooks:
		for _, hook := range o.Webhooks {
			c.addWebhook(hook.Name, hook.FailurePolicy, at())
		}
	case *IdentityMapping:
		o.Place = at()
		c.IdentityMappings = append(c.IdentityMappings, *o)
	}
}

// addWebhook adds a webhook that applies NodeRestriction. A webhook with failurePolicy Ignore does not restrict nodes
// reliably.
func (c *Cluster) addWebhook(name string, policy *admissionv1.FailurePolicyType, at finding.Place) {
	if name == restrictionWebhook && (policy == nil || *policy == admissionv1.Fail) {
		c.Restrictions = append(c.Restrictions, at)
	}
}

func newNode(n *corev1.Node, at finding.Place) Node {
	node := Node{
		Place: at, Name: n.Name, ProviderID: n.Spec.ProviderID, Labels: n.Labels, Addresses: n.Status.Addresses, server: rancherNode(n, at),
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			node.Ready = c.Status
		}
	}
	return node
}

func kubeletSigners() []string {
	return []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName}
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

// sort sorts the objects by name, so that findings are sorted, and keeps the last of several
// objects with the same name.
func (c *Cluster) sort() {
	c.Nodes = lastOf(c.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	c.Requests = lastOf(c.Requests, func(a, b CertificateRequest) int { return cmp.Compare(a.Name, b.Name) })
	c.Bindings = lastOf(c.Bindings, func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	c.IdentityMappings = lastOf(c.IdentityMappings, func(a, b IdentityMapping) int { return cmp.Compare(a.Name, b.Name) })
	c.complete()
	c.APIServers = lastOf(c.APIServers, func(a, b APIServer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Place.String(), b.Place.String()))
	})
}

// lastOf sorts a list, and keeps the last of equal elements.
func lastOf[T any](list []T, compare func(a, b T) int) []T {
	slices.SortStableFunc(list, compare)
	kept := list[:0]
	for i, x := range list {
		if i+1 == len(list) || compare(x, list[i+1]) != 0 {
			kept = append(kept, x)
		}
	}
	return kept
}

// snapshot reads the header of a snapshot.
func (r *reader) snapshot(d *manifest.Document) error {
	header, err := source.HeaderOf(d)
	if err != nil {
		return err
	}
	r.cluster.Snapshot = true
	for _, m := range header.Missing {
		r.cluster.Missing = append(r.cluster.Missing, Missing{
			strings.TrimSuffix(m.Resource+"."+m.Group, "."), "the snapshot was taken without them: " + m.Reason,
			"take it with the right to read them",
		})
	}
	r.snapshotHasRBAC = r.snapshotHasRBAC || header.RBACReadable
	if minor, err := kubeversion.Parse(header.KubernetesVersion); err == nil {
		r.cluster.Version = minor
	}
	return nil
}
