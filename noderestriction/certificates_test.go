package noderestriction_test

import (
	"errors"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// certificateVersions makes a request in each version.
func certificateVersions() map[string]func(*certificatesv1.PodCertificateRequestSpec) runtime.Object {
	return map[string]func(*certificatesv1.PodCertificateRequestSpec) runtime.Object{
		"v1": func(s *certificatesv1.PodCertificateRequestSpec) runtime.Object {
			return &certificatesv1.PodCertificateRequest{Spec: *s}
		},
		"v1beta1": func(s *certificatesv1.PodCertificateRequestSpec) runtime.Object {
			return &certificatesv1beta1.PodCertificateRequest{Spec: certificatesv1beta1.PodCertificateRequestSpec{
				SignerName: s.SignerName, NodeName: s.NodeName, NodeUID: s.NodeUID, PodName: s.PodName, PodUID: s.PodUID,
				ServiceAccountName: s.ServiceAccountName, ServiceAccountUID: s.ServiceAccountUID,
			}}
		},
	}
}

const signer = "example.com/mesh"

func certificateSpec(change func(*certificatesv1.PodCertificateRequestSpec)) *certificatesv1.PodCertificateRequestSpec {
	spec := &certificatesv1.PodCertificateRequestSpec{
		SignerName: signer, NodeName: "worker-1", NodeUID: "uid-of-worker-1", PodName: "web", PodUID: "uid-of-web",
		ServiceAccountName: "web", ServiceAccountUID: "uid-of-web",
	}
	change(spec)
	return spec
}

func podCertificate(namespace string, object runtime.Object) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: noderestriction.Create, Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests",
		Namespace: namespace, Object: object,
	})
}

func certificateVolume(signer string) corev1.Volume {
	return volume("certificate", projected(
		corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}},
		corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: signer}},
	))
}

func staticPod(s *certificatesv1.PodCertificateRequestSpec) {
	s.PodName, s.PodUID = "static", "uid-of-static"
}

func TestPodCertificateRequests(t *testing.T) {
	const retry = 500
	withCertificates := func() *cluster {
		c := shop()
		for _, p := range c.pods {
			p.Spec.Volumes = []corev1.Volume{
				volume("data", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), certificateVolume(signer),
			}
		}
		return c
	}
	for version, of := range certificateVersions() {
		ask := func(change func(*certificatesv1.PodCertificateRequestSpec)) *noderestriction.Request {
			return podCertificate("shop", of(certificateSpec(change)))
		}
		t.Run(version, func(t *testing.T) {
			checkAll(t, withCertificates(), []expectation{
				{
					rule: "for a pod of the node", request: ask(func(*certificatesv1.PodCertificateRequestSpec) {}),
					code: noderestriction.RestrictionsMet,
				},
				{
					rule:    "naming another node",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeName = "worker-2" }),
					code:    noderestriction.CertificateForOtherNode,
				},
				{
					rule: "naming no node", request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeName = "" }),
					code: noderestriction.CertificateForOtherNode,
				},
				{
					rule:    "with another node uid",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeUID = "x" }),
					code:    noderestriction.NodeUIDMismatch, status: retry, stale: true,
				},
				{
					rule:    "for an unknown pod",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName = "gone" }),
					code:    noderestriction.PodNotFound, status: retry, stale: true,
				},
				{
					rule:    "with another pod uid",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodUID = "x" }),
					code:    noderestriction.PodUIDMismatch, status: retry, stale: true,
				},
				{
					rule:    "for a pod of another node",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName, s.PodUID = "db", "uid-of-db" }),
					code:    noderestriction.PodNotOnNode,
				},
				{
					rule:    "for a pod on no node",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName, s.PodUID = "new", "uid-of-new" }),
					code:    noderestriction.PodNotOnNode, stale: true,
				},
				{
					rule:    "for another service account",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountName = "db" }),
					code:    noderestriction.PodUsesOtherServiceAccount,
				},
				{
					rule:    "with another service account uid",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountUID = "x" }),
					code:    noderestriction.ServiceAccountUIDMismatch, status: retry, stale: true,
				},
				{
					rule:    "of another signer",
					request: ask(func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = "example.com/other" }),
					code:    noderestriction.SignerNotAllowed,
				},
				{
					rule: "for a mirror pod", request: podCertificate("kube-system", of(certificateSpec(staticPod))),
					code: noderestriction.CertificateForMirrorPod,
				},
			})
			c := withCertificates()
			delete(c.accounts, "shop/web")
			checkAll(t, c, []expectation{
				{
					rule: "for an unknown service account", request: ask(func(*certificatesv1.PodCertificateRequestSpec) {}),
					code: noderestriction.ServiceAccountNotFound, status: retry, stale: true,
				},
			})
			c = withCertificates()
			delete(c.nodes, "worker-1")
			checkAll(t, c, []expectation{
				{
					rule: "from an unknown node", request: ask(func(*certificatesv1.PodCertificateRequestSpec) {}),
					code: noderestriction.NodeNotFound, status: retry, stale: true,
				},
			})
		})
	}
	own := &certificatesv1.PodCertificateRequest{Spec: *certificateSpec(func(*certificatesv1.PodCertificateRequestSpec) {})}
	updated := podCertificate("shop", own)
	updated.Operation = noderestriction.Update
	deleted := podCertificate("shop", own)
	deleted.Operation = noderestriction.Delete
	status := podCertificate("shop", own)
	status.Subresource = "status"
	updatedStatus := podCertificate("shop", own)
	updatedStatus.Operation, updatedStatus.Subresource = noderestriction.Update, "status"
	checkAll(t, withCertificates(), []expectation{
		{rule: "update", request: updated, code: noderestriction.OperationNotAllowed},
		{rule: "delete", request: deleted, code: noderestriction.OperationNotAllowed},
		{rule: "create a status", request: status, code: noderestriction.SubresourceNotAllowed},
		{rule: "update a status", request: updatedStatus, code: noderestriction.OperationNotAllowed},
		{rule: "no object", request: podCertificate("shop", nil), code: noderestriction.UnexpectedObject},
		{rule: "another type", request: podCertificate("shop", &corev1.Pod{}), code: noderestriction.UnexpectedObject},
		{
			rule: "an object that points nowhere", request: podCertificate("shop", (*certificatesv1.PodCertificateRequest)(nil)),
			code: noderestriction.UnexpectedObject,
		},
	})
}

func TestSignersThatAnAuthorizerGrants(t *testing.T) {
	own := podCertificate("shop", &certificatesv1.PodCertificateRequest{
		Spec: *certificateSpec(func(*certificatesv1.PodCertificateRequestSpec) {}),
	})
	other := podCertificate("shop", &certificatesv1.PodCertificateRequest{
		Spec: *certificateSpec(func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = "example.com/other" }),
	})
	granted := grants{"request-serviceaccounts-podcertificate-signer certificates.k8s.io v1 example.com:mesh shop/web": true}
	cause := errors.New("no answer")
	for _, tc := range []struct {
		authorizer noderestriction.Authorizer
		expectation
	}{
		{granted, expectation{rule: "one that is granted", request: own, code: noderestriction.RestrictionsMet}},
		{granted, expectation{rule: "another", request: other, code: noderestriction.SignerNotAllowed}},
		{nil, expectation{rule: "without authorizer", request: own, code: noderestriction.SignerNotAllowed}},
		{failing{err: cause}, expectation{rule: "an error is not an allowance", request: own, code: noderestriction.AuthorizationFailed}},
		{
			failing{err: cause, allowed: true},
			expectation{rule: "an error beside an allowance does not matter", request: own, code: noderestriction.RestrictionsMet},
		},
	} {
		tc.check(t, noderestriction.New(shop(), tc.authorizer, kubeversion.For(kubeversion.Latest)))
	}
}

// withPod names another pod.
func withPod(name string) func(*certificatesv1.PodCertificateRequestSpec) {
	return func(s *certificatesv1.PodCertificateRequestSpec) { s.PodName = name }
}
