package noderestriction_test

import (
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// requestToken is worker-1's request for a token of service account shop/web,
// bound to a pod of namespace shop.
func requestToken(pod string, audiences ...string) *noderestriction.Request {
	return requestBoundToken(&authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("uid-of-" + pod),
	},
		audiences...)
}

func requestBoundToken(ref *authenticationv1.BoundObjectReference, audiences ...string) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: noderestriction.Create, Version: "v1", Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "web",
		Object: &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, BoundObjectRef: ref}},
	})
}

// tokenVolume projects a token for an audience.
func tokenVolume(audience string) corev1.Volume {
	return volume("token", projected(
		corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}},
		corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience}},
	))
}

func TestTokenIsBoundToAPodOnTheNode(t *testing.T) {
	c := shop()
	for _, p := range c.pods {
		p.Spec.Volumes = []corev1.Volume{tokenVolume("")}
	}
	bound := func(change func(*authenticationv1.BoundObjectReference)) *noderestriction.Request {
		ref := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "uid-of-web"}
		change(ref)
		return requestBoundToken(ref)
	}
	noObject := requestToken("web")
	noObject.Object = nil
	other := requestToken("web")
	other.Object = &corev1.Pod{}
	account := requestToken("web")
	account.Subresource = ""
	updated := requestToken("web")
	updated.Operation = noderestriction.Update

	checkAll(t, c, []expectation{
		{rule: "a pod of the node", request: requestToken("web"), code: noderestriction.RestrictionsMet},
		{rule: "no pod", request: requestBoundToken(nil), code: noderestriction.TokenNotBoundToPod},
		{
			rule: "a secret", request: bound(func(r *authenticationv1.BoundObjectReference) { r.Kind = "Secret" }),
			code: noderestriction.TokenNotBoundToPod,
		},
		{
			rule: "a node", request: bound(func(r *authenticationv1.BoundObjectReference) { r.Kind, r.Name = "Node", "worker-1" }),
			code: noderestriction.TokenNotBoundToPod,
		},
		{
			rule: "another version", request: bound(func(r *authenticationv1.BoundObjectReference) { r.APIVersion = "" }),
			code: noderestriction.TokenNotBoundToPod,
		},
		{
			rule: "no pod name", request: bound(func(r *authenticationv1.BoundObjectReference) { r.Name = "" }),
			code: noderestriction.TokenNotBoundToPod,
		},
		{
			rule: "no uid", request: bound(func(r *authenticationv1.BoundObjectReference) { r.UID = "" }),
			code: noderestriction.TokenNotBoundToPod,
		},
		{
			rule: "another uid", request: bound(func(r *authenticationv1.BoundObjectReference) { r.UID = "old" }),
			code: noderestriction.PodUIDMismatch, stale: true,
		},
		{rule: "an unknown pod", request: requestToken("gone"), code: noderestriction.PodNotFound, status: 404, stale: true},
		{rule: "a pod of another node", request: requestToken("db"), code: noderestriction.PodNotOnNode},
		{rule: "a pod on no node", request: requestToken("new"), code: noderestriction.PodNotOnNode, stale: true},
		{rule: "no object", request: noObject, code: noderestriction.UnexpectedObject},
		{rule: "another type", request: other, code: noderestriction.UnexpectedObject},
		{rule: "service accounts themselves are the authorizer's to decide", request: account, code: noderestriction.NotRestricted},
		{rule: "tokens are only created", request: updated, code: noderestriction.NotRestricted},
	})
}

func csiVolume(driver string) corev1.Volume {
	return volume("csi", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver}})
}

func claimVolume(claim string) corev1.Volume {
	return volume("claim", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}})
}

// withStorage adds drivers: vault.example.com requests tokens for audience vault, the
// drivers that in-tree volumes migrate to request one for their name, and
// plain.example.com requests none. Claims are named after their driver.
func (c *cluster) withStorage() *cluster {
	c.addDriver("vault.example.com", "other", "vault")
	c.addDriver("plain.example.com")
	c.addClaim("vault", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "vault.example.com"}})
	c.addClaim("plain", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "plain.example.com"}})
	c.addClaim("driverless", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "gone.example.com"}})
	c.addClaim("nfs", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}})
	c.addClaim("web-scratch", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "vault.example.com"}})
	c.addClaim("volumeless", corev1.PersistentVolumeSource{})
	delete(c.volumes, "pv-volumeless")
	c.addClaim("unbound", corev1.PersistentVolumeSource{})
	c.claims["shop/unbound"].Spec.VolumeName = ""
	return c
}

func (c *cluster) addDriver(name string, audiences ...string) {
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, a := range audiences {
		driver.Spec.TokenRequests = append(driver.Spec.TokenRequests, storagev1.TokenRequest{Audience: a})
	}
	c.drivers[name] = driver
}

func (c *cluster) addClaim(name string, source corev1.PersistentVolumeSource) {
	c.claims["shop/"+name] = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name},
	}
	c.volumes["pv-"+name] = &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source},
	}
}

// withVolumes adds volumes to pod shop/web.
func (c *cluster) withVolumes(volumes ...corev1.Volume) *cluster {
	c.pods["shop/web"].Spec.Volumes = volumes
	return c
}

func TestAudiences(t *testing.T) {
	ephemeral := volume("scratch", corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
	})
	untemplated := volume("scratch", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})
	const (
		allowed = noderestriction.RestrictionsMet
		refused = noderestriction.AudienceNotAllowed
		failed  = noderestriction.AudienceLookupFailed
	)
	for _, tc := range []struct {
		rule      string
		volumes   []corev1.Volume
		audiences []string
		code      verdict.Code
		stale     bool
	}{
		{"a projected token's", []corev1.Volume{tokenVolume("vault")}, []string{"vault"}, allowed, false},
		{"none, for a projected token without one", []corev1.Volume{tokenVolume("")}, nil, allowed, false},
		{"the empty one is none", []corev1.Volume{tokenVolume("")}, []string{""}, allowed, false},
		{"none, without a token for it", []corev1.Volume{tokenVolume("vault")}, nil, refused, false},
		{"another than the projected token's", []corev1.Volume{tokenVolume("vault")}, []string{"bank"}, refused, false},
		{"one of a pod without volumes", nil, []string{"vault"}, refused, false},
		{"two", []corev1.Volume{tokenVolume("a"), tokenVolume("b")}, []string{"a", "b"}, noderestriction.OneAudienceOnly, false},
		{"the same one twice", []corev1.Volume{tokenVolume("a")}, []string{"a", "a"}, noderestriction.OneAudienceOnly, false},
		{"one of an inline CSI volume's driver", []corev1.Volume{csiVolume("vault.example.com")}, []string{"vault"}, allowed, false},
		{"one that the driver does not request", []corev1.Volume{csiVolume("vault.example.com")}, []string{"bank"}, refused, true},
		{"one of a driver that requests none", []corev1.Volume{csiVolume("plain.example.com")}, []string{"vault"}, refused, true},
		{"one of an unknown driver", []corev1.Volume{csiVolume("gone.example.com")}, []string{"vault"}, failed, true},
		{"one of the driver behind a claim", []corev1.Volume{claimVolume("vault")}, []string{"vault"}, allowed, false},
		{"one of the driver behind an ephemeral volume's claim", []corev1.Volume{ephemeral}, []string{"vault"}, allowed, false},
		{"an ephemeral volume without template has no driver", []corev1.Volume{untemplated}, []string{"vault"}, refused, false},
		{"a claim whose driver does not request it", []corev1.Volume{claimVolume("plain")}, []string{"vault"}, refused, true},
		{"a claim whose driver is unknown", []corev1.Volume{claimVolume("driverless")}, []string{"vault"}, failed, true},
		{"an unknown claim", []corev1.Volume{claimVolume("gone")}, []string{"vault"}, failed, true},
		{"a claim without volume", []corev1.Volume{claimVolume("unbound")}, []string{"vault"}, failed, true},
		{"a claim whose volume is unknown", []corev1.Volume{claimVolume("volumeless")}, []string{"vault"}, failed, true},
		{"a volume that no CSI driver serves", []corev1.Volume{claimVolume("nfs")}, []string{"vault"}, refused, false},
		{
			"what cannot be followed does not stop the search",
			[]corev1.Volume{claimVolume("gone"), csiVolume("gone.example.com"), tokenVolume("vault")},
			[]string{"vault"},
			allowed,
			false,
		},
		{
			"a later volume that does not help leaves it undecided",
			[]corev1.Volume{claimVolume("gone"), tokenVolume("bank")},
			[]string{"vault"},
			failed, true,
		},
	} {
		checkAll(t, shop().withStorage().withVolumes(tc.volumes...), []expectation{
			{rule: tc.rule, request: requestToken("web", tc.audiences...), code: tc.code, stale: tc.stale},
		})
	}
}

func TestAudiencesAreNotRestrictedWithoutTheGate(t *testing.T) {
	c := shop().withVolumes(tokenVolume("vault"))
	for gate, want := range map[string]bool{"": true, "ServiceAccountNodeAudienceRestriction=false": false} {
		r := noderestriction.New(c, nil, features(t, 36, gate))
		if _, restricted := r.Audiences(c.pods["shop/web"]); restricted != want {
			t.Errorf("with gates %q restricted is %v", gate, restricted)
		}
	}
}

func TestAudienceOfAnotherServiceAccount(t *testing.T) {
	request := requestToken("web", "vault")
	request.Name = "someone-else"
	checkAll(t, shop().withVolumes(tokenVolume("vault")), []expectation{
		{rule: "the account need not be the pod's", request: request, code: noderestriction.RestrictionsMet},
	})
}

// TestMigratedVolumes has in-tree volumes and the drivers that serve them since their
// migration, each of which requests tokens with its own name as audience.
func TestMigratedVolumes(t *testing.T) {
	shared, dedicated, namespace := corev1.AzureSharedBlobDisk, corev1.AzureManagedDisk, "shop"
	for _, tc := range []struct {
		kind, driver string
		inline       corev1.VolumeSource
		persistent   corev1.PersistentVolumeSource
	}{
		{
			"awsElasticBlockStore", "ebs.csi.aws.com",
			corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}},
			corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}},
		},
		{
			"gcePersistentDisk", "pd.csi.storage.gke.io",
			corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}},
			corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}},
		},
		{
			"cinder", "cinder.csi.openstack.org",
			corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "v"}},
			corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "v"}},
		},
		{
			"azureDisk", "disk.csi.azure.com",
			corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{Kind: &dedicated}},
			corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{Kind: &dedicated}},
		},
		{
			"azureFile", "file.csi.azure.com",
			corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s"}},
			corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "s", SecretNamespace: &namespace}},
		},
		{
			"vsphereVolume", "csi.vsphere.vmware.com",
			corev1.VolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "p"}},
			corev1.PersistentVolumeSource{
				VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "p", StoragePolicyName: "gold"},
			},
		},
		{
			"portworxVolume", "pxd.portworx.com",
			corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "v"}},
			corev1.PersistentVolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "v"}},
		},
	} {
		c := shop()
		c.addDriver(tc.driver, tc.driver)
		c.addClaim(tc.kind, tc.persistent)
		checkAll(t, c.withVolumes(volume("v", tc.inline)), []expectation{
			{rule: "inline " + tc.kind, request: requestToken("web", tc.driver), code: noderestriction.RestrictionsMet},
			{
				rule: "another audience with inline " + tc.kind, request: requestToken("web", "x"),
				code: noderestriction.AudienceNotAllowed, stale: true,
			},
		})
		checkAll(t, c.withVolumes(claimVolume(tc.kind)), []expectation{
			{rule: "a claim of " + tc.kind, request: requestToken("web", tc.driver), code: noderestriction.RestrictionsMet},
		})
	}

	c := shop()
	empty := ""
	for name, source := range map[string]corev1.PersistentVolumeSource{
		"shared-disk":        {AzureDisk: &corev1.AzureDiskVolumeSource{Kind: &shared}},
		"file-nowhere":       {AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "s", SecretNamespace: &empty}},
		"malformed-ebs":      {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://zone/disk"}},
		"file-without-claim": {AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "s"}},
	} {
		c.addClaim(name, source)
		checkAll(t, c.withVolumes(claimVolume(name)), []expectation{
			{
				rule: name + " does not translate", request: requestToken("web", "x"), code: noderestriction.AudienceLookupFailed,
				stale: true,
			},
		})
	}
	policy := volume("v", corev1.VolumeSource{
		VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "p", StoragePolicyName: "gold"},
	})
	checkAll(t, c.withVolumes(policy), []expectation{
		{
			rule: "inline vSphere with a storage policy does not translate", request: requestToken("web", "x"),
			code: noderestriction.AudienceLookupFailed, stale: true,
		},
	})
	checkAll(t, c.withVolumes(policy, tokenVolume("x")), []expectation{
		{rule: "and does not stop the search", request: requestToken("web", "x"), code: noderestriction.RestrictionsMet},
	})
}

func TestAudiencesThatAnAuthorizerGrants(t *testing.T) {
	granted := grants{
		"request-serviceaccounts-token-audience  v1 vault shop/web": true,
		"request-serviceaccounts-token-audience  v1  shop/web":      true,
	}
	r := noderestriction.New(shop(), granted, kubeversion.For(kubeversion.Latest))
	other := requestToken("web", "vault")
	other.Name = "db"
	for _, e := range []expectation{
		{rule: "one that is granted", request: requestToken("web", "vault"), code: noderestriction.RestrictionsMet},
		{rule: "none, which is granted", request: requestToken("web"), code: noderestriction.RestrictionsMet},
		{rule: "another audience", request: requestToken("web", "bank"), code: noderestriction.AudienceNotAllowed},
		{rule: "another service account", request: other, code: noderestriction.AudienceNotAllowed},
		{rule: "a pod of another node", request: requestToken("db", "vault"), code: noderestriction.PodNotOnNode},
		{rule: "two audiences", request: requestToken("web", "vault", "vault"), code: noderestriction.OneAudienceOnly},
	} {
		e.check(t, r)
	}

	undecided := noderestriction.New(shop().withStorage().withVolumes(claimVolume("gone")), granted, kubeversion.For(kubeversion.Latest))
	expectation{
		rule: "what cannot be followed refuses even what is granted", request: requestToken("web", "vault"),
		code: noderestriction.AudienceLookupFailed, stale: true,
	}.check(t, undecided)
}

func TestAuthorizerThatFails(t *testing.T) {
	cause := errors.New("no answer from 10.0.0.1")
	refuses := noderestriction.New(shop(), failing{err: cause}, kubeversion.For(kubeversion.Latest))
	expectation{
		rule: "an error is not an allowance", request: requestToken("web", "vault"), code: noderestriction.AuthorizationFailed,
	}.check(t, refuses)
	got := refuses.Decide(t.Context(), requestToken("web", "vault"))
	if !errors.Is(got.Err, cause) {
		t.Errorf("the answer's error is %v, want %v", got.Err, cause)
	}
	if got.Reason.Message != `whether node worker-1 may request tokens for audience "vault" could not be decided` {
		t.Errorf("the node gets the message %q", got.Reason.Message)
	}
	allows := noderestriction.New(shop(), failing{err: cause, allowed: true}, kubeversion.For(kubeversion.Latest))
	expectation{
		rule: "an error beside an allowance does not matter", request: requestToken("web", "vault"),
		code: noderestriction.RestrictionsMet,
	}.check(t, allows)
}
