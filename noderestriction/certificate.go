package noderestriction

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// certificateSpec has the fields of a pod certificate request that the rules read, in
// any version.
type certificateSpec struct {
	signer     string
	node       string
	nodeUID    types.UID
	pod        string
	podUID     types.UID
	account    string
	accountUID types.UID
}

func certificateSpecOf(o runtime.Object) (*certificateSpec, bool) {
	switch request := o.(type) {
	case *certificatesv1.PodCertificateRequest:
		if request != nil {
			s := &request.Spec
			return &certificateSpec{
				s.SignerName, string(s.NodeName), s.NodeUID, s.PodName, s.PodUID, s.ServiceAccountName, s.ServiceAccountUID,
			}, true
		}
	case *certificatesv1beta1.PodCertificateRequest:
		if request != nil {
			s := &request.Spec
			return &certificateSpec{
				s.SignerName, string(s.NodeName), s.NodeUID, s.PodName, s.PodUID, s.ServiceAccountName, s.ServiceAccountUID,
			}, true
		}
	}
	return nil, false
}

// certificateForNode stores the request's spec for the later checks.
func certificateForNode(q *question) *refusal {
	spec, ok := certificateSpecOf(q.req.Object)
	if !ok {
		return unexpected("object", q.req.Object)
	}
	if spec.node != q.node {
		return forbid(CertificateForOtherNode, "spec.nodeName is %q, not %s", spec.node, q.node)
	}
	q.certificate = spec
	return nil
}

// certificateNodeUID and the checks of other UIDs return an error, as Kubernetes
// does, so that a kubelet retries if the state lags behind.
func certificateNodeUID(q *question) *refusal {
	node, ok := q.state.Node(q.node)
	switch {
	case !ok:
		return forbid(NodeNotFound, "node %s does not exist", q.node).withStatus(statusInternalError).lagging(true)
	case node.UID != q.certificate.nodeUID:
		return forbid(NodeUIDMismatch, "node %s has another uid than spec.nodeUID %q", q.node, q.certificate.nodeUID).
			withStatus(statusInternalError).lagging(true)
	}
	return nil
}

func certificatePodUID(q *question) *refusal {
	if refusal := q.findPod(q.certificate.pod, statusInternalError); refusal != nil {
		return refusal
	}
	if q.pod.UID != q.certificate.podUID {
		return forbid(PodUIDMismatch, "pod %s/%s has another uid than spec.podUID %q", q.req.Namespace, q.pod.Name, q.certificate.podUID).
			withStatus(statusInternalError).lagging(true)
	}
	return nil
}

func certificateNotForMirrorPod(q *question) *refusal {
	if _, mirror := q.pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return forbid(CertificateForMirrorPod, "pod %s/%s is a mirror pod", q.req.Namespace, q.pod.Name)
	}
	return nil
}

func certificateServiceAccount(q *question) *refusal {
	if q.certificate.account != q.pod.Spec.ServiceAccountName {
		return forbid(PodUsesOtherServiceAccount, "pod %s/%s does not run as spec.serviceAccountName %q", q.req.Namespace,
			q.pod.Name, q.certificate.account)
	}
	return nil
}

func certificateServiceAccountUID(q *question) *refusal {
	account, ok := q.state.ServiceAccount(q.req.Namespace, q.certificate.account)
	switch {
	case !ok:
		return forbid(ServiceAccountNotFound, "service account %s/%s does not exist", q.req.Namespace, q.certificate.account).
			withStatus(statusInternalError).lagging(true)
	case account.UID != q.certificate.accountUID:
		return forbid(ServiceAccountUIDMismatch, "service account %s/%s has another uid than spec.serviceAccountUID %q",
			q.req.Namespace, q.certificate.account, q.certificate.accountUID).withStatus(statusInternalError).lagging(true)
	}
	return nil
}

func signerAllowed(q *question) *refusal {
	signer := q.certificate.signer
	if mountsCertificate(q.pod, signer) {
		return nil
	}
	// RBAC treats the text after a slash as a subresource.
	allowed, err := q.ask("request-serviceaccounts-podcertificate-signer", strings.ReplaceAll(signer, "/", ":"), q.certificate.account)
	switch {
	case allowed:
		return nil
	case err != nil:
		return forbid(AuthorizationFailed, "whether node %s may request certificates of signer %q could not be decided", q.node,
			signer).because(err)
	}
	return forbid(SignerNotAllowed, "no volume of pod %s/%s has a certificate of signer %q, and no authorizer lets node %s request one",
		q.req.Namespace, q.pod.Name, signer, q.node)
}

func mountsCertificate(pod *corev1.Pod, signer string) bool {
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for j := range projected.Sources {
			if c := projected.Sources[j].PodCertificate; c != nil && c.SignerName == signer {
				return true
			}
		}
	}
	return false
}
