package noderestriction_test

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestMinors has the changes between minors: the decision up to the minor before, and
// from it on, with default gates. A change in a patch release counts for the whole
// minor.
func TestMinors(t *testing.T) {
	web := pod("shop", "web", "worker-1")
	csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	csiChanged := changed(csi, func(n *storagev1.CSINode) { n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "d"}} })
	certificate := podCertificate("shop", &certificatesv1.PodCertificateRequest{
		Spec: *certificateSpec(func(*certificatesv1.PodCertificateRequestSpec) {}),
	})
	slices := sliceVersions()
	const met, free = noderestriction.RestrictionsMet, noderestriction.NotRestricted

	for _, tc := range []struct {
		change  string
		request *noderestriction.Request
		before  verdict.Code
		minor   kubeversion.Minor
		since   verdict.Code
	}{
		{
			"certificate requests are checked",
			requestCertificate("kubernetes.io/kubelet-serving", signingRequest(t, "system:node:worker-2")), free, 31,
			noderestriction.SigningRequestForOtherName,
		},
		{
			"deletions of slices are checked", slice(noderestriction.Delete, nil, slices["v1"]("worker-2")), free, 31,
			noderestriction.NotOwnResourceSlice,
		},
		{
			"a node's owners stay (CVE-2025-5187, patches of 1.31 to 1.33)", updateNode("", owned), met, 31,
			noderestriction.OwnerReferencesChanged,
		},
		{"mirror pods have no resource claims (CVE-2025-4563, patches of 1.32 and 1.33)", createPod(func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x"}}
		}), met, 32, noderestriction.MirrorPodRefersToObject},
		{"allocated resources are the node's to write", updateClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResources = corev1.ResourceList{"storage": resource.MustParse("2Gi")}
		}), noderestriction.ClaimChanged, 32, met},
		{"audiences are restricted", requestToken("web", "vault"), met, 33, noderestriction.AudienceNotAllowed},
		{"mirror pods refer to nothing at all", createPod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{volume("v", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}})}
		}), met, 34, noderestriction.MirrorPodRefersToObject},
		{"extended claims stay", updateStatus(web, func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{}
		}), met, 34, noderestriction.ResourceClaimStatusChanged},
		{"allocatable claims stay", updateStatus(web, func(p *corev1.Pod) {
			p.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{}}
		}), met, 37, noderestriction.ResourceClaimStatusChanged},
		{
			"a CSINode's status has its own rule", csiNode(noderestriction.Update, "status", "worker-1", csiChanged, csi), met, 37,
			noderestriction.FeatureDisabled,
		},
		{"resources that later minors know pass in earlier ones", certificate, free, 34, noderestriction.FeatureDisabled},
		{"claims of pods, in every minor", updateStatus(web, func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{}}
		}), "", kubeversion.Oldest, noderestriction.ResourceClaimStatusChanged},
		{
			"slices that are created, in every minor", slice(noderestriction.Create, slices["v1alpha2"]("worker-2"), nil), "",
			kubeversion.Oldest, noderestriction.NotOwnResourceSlice,
		},
	} {
		t.Run(tc.change, func(t *testing.T) {
			for _, minor := range kubeversion.Minors() {
				want := tc.before
				if minor >= tc.minor {
					want = tc.since
				}
				gates := ""
				if minor == kubeversion.Latest && want == noderestriction.FeatureDisabled {
					gates = "PodCertificateRequest=false"
				}
				r := noderestriction.New(shop(), nil, features(t, minor, gates))
				expectation{rule: minor.String(), request: tc.request, code: want}.check(t, r)
			}
		})
	}
}

// TestGatesOfMinors has decisions that depend on a gate that is not at its default.
func TestGatesOfMinors(t *testing.T) {
	certificate := func(signer string) *noderestriction.Request {
		return podCertificate("shop", &certificatesv1.PodCertificateRequest{
			Spec: *certificateSpec(func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = signer }),
		})
	}
	updateCertificate := certificate("x")
	updateCertificate.Operation = noderestriction.Update
	granted := grants{"request-serviceaccounts-token-audience  v1 vault shop/web": true}
	disk := corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}}
	withDisk := func() *cluster {
		c := shop().withVolumes(volume("v", disk))
		c.addDriver("pd.csi.storage.gke.io", "vault")
		return c
	}
	for _, tc := range []struct {
		minor kubeversion.Minor
		gates string
		c     *cluster
		expectation
	}{
		{
			34, "PodCertificateRequest=true", shop(),
			expectation{rule: "1.34 does not ask for the signer", request: certificate("x"), code: noderestriction.RestrictionsMet},
		},
		{
			36, "PodCertificateRequest=true", shop(),
			expectation{rule: "1.36 does not ask for the signer", request: certificate("x"), code: noderestriction.RestrictionsMet},
		},
		{37, "", shop(), expectation{rule: "1.37 does", request: certificate("x"), code: noderestriction.SignerNotAllowed}},
		{
			36, "", shop(),
			expectation{
				rule: "without the gate no operation is allowed", request: updateCertificate, code: noderestriction.FeatureDisabled,
			},
		},
		{
			32, "ServiceAccountNodeAudienceRestriction=true", shop(),
			expectation{rule: "1.32 asks no authorizer", request: requestToken("web", "vault"), code: noderestriction.AudienceNotAllowed},
		},
		{
			33, "", shop(),
			expectation{rule: "1.33 asks an authorizer", request: requestToken("web", "vault"), code: noderestriction.RestrictionsMet},
		},
		{
			32, "ServiceAccountNodeAudienceRestriction=true", withDisk(),
			expectation{
				rule: "1.32 does not map migrated volumes", request: requestToken("web", "vault"),
				code: noderestriction.AudienceNotAllowed,
			},
		},
		{
			32, "ServiceAccountNodeAudienceRestriction=true", shop().withVolumes(tokenVolume("vault")),
			expectation{rule: "1.32 knows projected tokens", request: requestToken("web", "vault"), code: noderestriction.RestrictionsMet},
		},
		{
			32, "ServiceAccountNodeAudienceRestriction=true", shop(),
			expectation{rule: "1.32 has one audience", request: requestToken("web", "a", "b"), code: noderestriction.OneAudienceOnly},
		},
		{
			32, "ServiceAccountNodeAudienceRestriction=true", shop().withVolumes(claimVolume("gone")),
			expectation{
				rule: "1.32 refuses if a driver cannot be found", request: requestToken("web", "vault"),
				code: noderestriction.AudienceLookupFailed, stale: true,
			},
		},
		{
			37, "ServiceAccountNodeAudienceRestriction=false", shop(),
			expectation{
				rule: "without the gate any audience is allowed", request: requestToken("web", "a", "b"),
				code: noderestriction.RestrictionsMet,
			},
		},
		{
			31, "AllowInsecureKubeletCertificateSigningRequests=true", shop(),
			expectation{
				rule: "1.31 with insecure requests", request: requestCertificate("kubernetes.io/kubelet-serving", nil),
				code: noderestriction.NotRestricted,
			},
		},
	} {
		tc.check(t, noderestriction.New(tc.c, granted, features(t, tc.minor, tc.gates)))
	}
	migrated := noderestriction.New(withDisk(), nil, kubeversion.For(33))
	expectation{
		rule: "1.33 maps migrated volumes", request: requestToken("web", "vault"), code: noderestriction.RestrictionsMet,
	}.check(t, migrated)
}
