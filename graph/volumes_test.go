package graph_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/graph"
)

// TestVolumeRelatesItsSecret has every field through which a persistent volume
// relates a secret to the nodes of the pods that use its claim, shop/orders.
func TestVolumeRelatesItsSecret(t *testing.T) {
	for _, tc := range []struct {
		rule      string
		source    corev1.PersistentVolumeSource
		namespace string // of the secret, which is called key
		field     string
	}{
		{"azureFile: in the secret's namespace", azureFile(new("vault")), "vault", "spec.azureFile.secretName"},
		{"azureFile: else in the claim's", azureFile(nil), "shop", "spec.azureFile.secretName"},
		{"azureFile: also where the namespace is empty", azureFile(new("")), "shop", "spec.azureFile.secretName"},

		{"cephfs: in the secret's namespace", cephFS("vault"), "vault", "spec.cephfs.secretRef"},
		{"cephfs: else in the claim's", cephFS(""), "shop", "spec.cephfs.secretRef"},
		{"flexVolume: in the secret's namespace", flexVolume("vault"), "vault", "spec.flexVolume.secretRef"},
		{"flexVolume: else in the claim's", flexVolume(""), "shop", "spec.flexVolume.secretRef"},
		{"rbd: in the secret's namespace", rbd("vault"), "vault", "spec.rbd.secretRef"},
		{"rbd: else in the claim's", rbd(""), "shop", "spec.rbd.secretRef"},
		{"scaleIO: in the secret's namespace", scaleIO("vault"), "vault", "spec.scaleIO.secretRef"},
		{"scaleIO: else in the claim's", scaleIO(""), "shop", "spec.scaleIO.secretRef"},
		{"iscsi: in the secret's namespace", iscsi("vault"), "vault", "spec.iscsi.secretRef"},
		{"iscsi: else in the claim's", iscsi(""), "shop", "spec.iscsi.secretRef"},

		{"cinder: in the secret's namespace", cinder("vault"), "vault", "spec.cinder.secretRef"},
		{"storageos: in the secret's namespace", storageOS("vault"), "vault", "spec.storageos.secretRef"},
		{"csi: the secret to publish on a node", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			NodePublishSecretRef: secretIn("vault", "key"),
		}}, "vault", "spec.csi.nodePublishSecretRef"},
		{"csi: the secret to stage on a node", stageSecret("vault", "key"), "vault", "spec.csi.nodeStageSecretRef"},
		{"csi: the secret to expand on a node", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			NodeExpandSecretRef: secretIn("vault", "key"),
		}}, "vault", "spec.csi.nodeExpandSecretRef"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			g := graph.New()
			g.SetPersistentVolume(newVolume("pv-1", "orders", tc.source))
			g.SetPod(newPod("api", "worker-1", withClaim("orders")))
			g.SetPod(newPod("other", "worker-2", withClaim("others")))

			secret := "secret " + tc.namespace + "/key"
			want := []string{"pod shop/api", secret, "persistentvolumeclaim shop/orders", "persistentvolume pv-1"}
			if got := reached(g, "worker-1"); !slices.Equal(got, want) {
				t.Fatalf("within reach are %v, want %v", got, want)
			}
			checkRelated(t, g, "worker-1", graph.Secret, tc.namespace, "key")
			checkUnrelated(t, g, "worker-2", graph.Secret, tc.namespace, "key")
			checkUnrelated(t, g, "worker-2", graph.PersistentVolume, "", "pv-1")

			wantPath := secret + " <- persistentvolume pv-1 (" + tc.field + ") <- persistentvolumeclaim shop/orders (spec.claimRef)" +
				" <- pod shop/api (spec.volumes[name=claim-orders].persistentVolumeClaim) <- node worker-1"
			path := g.Path("worker-1", graph.Secret, tc.namespace, "key")
			if path.String() != wantPath {
				t.Errorf("path is\n%v, want\n%v", path, wantPath)
			}
			for i, holder := range []string{"persistentvolume pv-1", "persistentvolume pv-1", "pod shop/api", "pod shop/api"} {
				if got := path[i].Holder.String(); got != holder {
					t.Errorf("edge %d is held by %s, want %s", i, got, holder)
				}
			}

			g.DeletePersistentVolume("pv-1")
			checkUnrelated(t, g, "worker-1", graph.Secret, tc.namespace, "key")
			checkUnrelated(t, g, "worker-1", graph.PersistentVolume, "", "pv-1")
			checkRelated(t, g, "worker-1", graph.PersistentVolumeClaim, "shop", "orders")
		})
	}
}

// TestVolumeRelatesNoSecret has the references that give a node nothing.
func TestVolumeRelatesNoSecret(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		source corev1.PersistentVolumeSource
	}{
		{"csi: what only controllers publish and expand with", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			ControllerPublishSecretRef: secretIn("vault", "key"), ControllerExpandSecretRef: secretIn("vault", "key"),
		}}},
		{"csi: a secret without a namespace", stageSecret("", "key")},
		{"cinder: a secret without a namespace", cinder("")},
		{"storageos: a secret without a namespace", storageOS("")},
		{"a secret without a name", stageSecret("vault", "")},
		{"azureFile without a secret", corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{}}},
		{"cephfs without a secret", corev1.PersistentVolumeSource{CephFS: &corev1.CephFSPersistentVolumeSource{}}},
		{"cinder without a secret", corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{}}},
		{"flexVolume without a secret", corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{}}},
		{"rbd without a secret", corev1.PersistentVolumeSource{RBD: &corev1.RBDPersistentVolumeSource{}}},
		{"scaleIO without a secret", corev1.PersistentVolumeSource{ScaleIO: &corev1.ScaleIOPersistentVolumeSource{}}},
		{"iscsi without a secret", corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{}}},
		{"storageos without a secret", corev1.PersistentVolumeSource{StorageOS: &corev1.StorageOSPersistentVolumeSource{}}},
		{"csi without a secret", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{}}},
		{"a source that has no secrets", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "files"}}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			g := graph.New()
			g.SetPod(newPod("api", "worker-1", withClaim("orders")))
			g.SetPersistentVolume(newVolume("pv-1", "orders", tc.source))
			want := []string{"pod shop/api", "persistentvolumeclaim shop/orders", "persistentvolume pv-1"}
			if got := reached(g, "worker-1"); !slices.Equal(got, want) {
				t.Errorf("within reach are %v, want %v", got, want)
			}
		})
	}
}

func TestVolumeIsRelatedByItsClaimRefAlone(t *testing.T) {
	t.Run("not without one", func(t *testing.T) {
		g := graph.New()
		g.SetPod(newPod("api", "worker-1", withClaim("orders")))
		g.SetPersistentVolume(newVolume("pv-1", "", stageSecret("vault", "key")))
		checkUnrelated(t, g, "worker-1", graph.PersistentVolume, "", "pv-1")
		checkUnrelated(t, g, "worker-1", graph.Secret, "vault", "key")
	})
	t.Run("for any uid and phase", func(t *testing.T) {
		g := graph.New()
		g.SetPod(newPod("api", "worker-1", withClaim("orders")))
		released := newVolume("pv-1", "orders", stageSecret("vault", "key"))
		released.Spec.ClaimRef.UID = types.UID("of a claim that is gone")
		released.Status.Phase = corev1.VolumeReleased
		g.SetPersistentVolume(released)
		checkRelated(t, g, "worker-1", graph.PersistentVolume, "", "pv-1")
		checkRelated(t, g, "worker-1", graph.Secret, "vault", "key")
	})
	t.Run("in its namespace", func(t *testing.T) {
		g := graph.New()
		g.SetPod(newPod("api", "worker-1", inNamespace("elsewhere"), withClaim("orders")))
		g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
		checkUnrelated(t, g, "worker-1", graph.PersistentVolume, "", "pv-1")
	})
	t.Run("also when several volumes name one claim", func(t *testing.T) {
		g := graph.New()
		g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "one")))
		g.SetPod(newPod("api", "worker-1", withClaim("orders")))
		g.SetPersistentVolume(newVolume("pv-2", "orders", stageSecret("vault", "two")))
		for _, volume := range []string{"pv-1", "pv-2"} {
			checkRelated(t, g, "worker-1", graph.PersistentVolume, "", volume)
		}
		g.DeletePersistentVolume("pv-1")
		checkUnrelated(t, g, "worker-1", graph.Secret, "vault", "one")
		checkRelated(t, g, "worker-1", graph.Secret, "vault", "two")
	})
	t.Run("also of a generic ephemeral volume", func(t *testing.T) {
		g := graph.New()
		g.SetPersistentVolume(newVolume("pv-1", "api-scratch", stageSecret("vault", "key")))
		g.SetPod(newPod("api", "worker-1", withVolume("scratch", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})))
		checkRelated(t, g, "worker-1", graph.Secret, "vault", "key")
	})
}

func TestVolumeWithSeveralSecretsRelatesEach(t *testing.T) {
	g := graph.New()
	g.SetPod(newPod("api", "worker-1", withClaim("orders")))
	g.SetPersistentVolume(newVolume("pv-1", "orders", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		NodePublishSecretRef: secretIn("vault", "publish"),
		NodeStageSecretRef:   secretIn("vault", "stage"),
		NodeExpandSecretRef:  secretIn("vault", "expand"),
	}}))
	for _, name := range []string{"publish", "stage", "expand"} {
		checkRelated(t, g, "worker-1", graph.Secret, "vault", name)
	}
}

func TestVolumeChanges(t *testing.T) {
	newGraph := func() *graph.Graph {
		g := graph.New()
		g.SetPod(newPod("api", "worker-1", withClaim("orders")))
		g.SetPod(newPod("web", "worker-2", withClaim("images")))
		g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "old")))
		return g
	}
	t.Run("another secret takes the place of the old one", func(t *testing.T) {
		g := newGraph()
		g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "new")))
		checkUnrelated(t, g, "worker-1", graph.Secret, "vault", "old")
		checkRelated(t, g, "worker-1", graph.Secret, "vault", "new")
	})
	t.Run("another claim takes volume and secret along", func(t *testing.T) {
		g := newGraph()
		g.SetPersistentVolume(newVolume("pv-1", "images", stageSecret("vault", "old")))
		checkUnrelated(t, g, "worker-1", graph.Secret, "vault", "old")
		checkUnrelated(t, g, "worker-1", graph.PersistentVolume, "", "pv-1")
		checkRelated(t, g, "worker-2", graph.Secret, "vault", "old")
		checkRelated(t, g, "worker-2", graph.PersistentVolume, "", "pv-1")
	})
	t.Run("no claim any more: no relation any more", func(t *testing.T) {
		g := newGraph()
		g.SetPersistentVolume(newVolume("pv-1", "", stageSecret("vault", "old")))
		checkUnrelated(t, g, "worker-1", graph.Secret, "vault", "old")
		if g.Has(graph.PersistentVolume, "", "pv-1") || g.Has(graph.Secret, "vault", "old") {
			t.Error("a volume without a claim is still known")
		}
	})
	t.Run("a second pod keeps what the first one leaves", func(t *testing.T) {
		g := newGraph()
		g.SetPod(newPod("replica", "worker-1", withClaim("orders")))
		g.DeletePod("shop", "api")
		checkRelated(t, g, "worker-1", graph.Secret, "vault", "old")
		g.DeletePod("shop", "replica")
		checkUnrelated(t, g, "worker-1", graph.Secret, "vault", "old")
	})
	t.Run("a pod that names the secret too keeps it", func(t *testing.T) {
		g := newGraph()
		g.SetPod(newPod("operator", "worker-1", inNamespace("vault"), withSecret("old")))
		g.DeletePersistentVolume("pv-1")
		checkRelated(t, g, "worker-1", graph.Secret, "vault", "old")
		g.DeletePod("vault", "operator")
		checkUnrelated(t, g, "worker-1", graph.Secret, "vault", "old")
	})
}

func azureFile(namespace *string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "key", SecretNamespace: namespace}}
}

func cephFS(namespace string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CephFS: &corev1.CephFSPersistentVolumeSource{SecretRef: secretIn(namespace, "key")}}
}

func flexVolume(namespace string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{SecretRef: secretIn(namespace, "key")}}
}

func rbd(namespace string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{RBD: &corev1.RBDPersistentVolumeSource{SecretRef: secretIn(namespace, "key")}}
}

func scaleIO(namespace string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{ScaleIO: &corev1.ScaleIOPersistentVolumeSource{SecretRef: secretIn(namespace, "key")}}
}

func iscsi(namespace string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{SecretRef: secretIn(namespace, "key")}}
}

func cinder(namespace string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{SecretRef: secretIn(namespace, "key")}}
}

func storageOS(namespace string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{StorageOS: &corev1.StorageOSPersistentVolumeSource{
		SecretRef: &corev1.ObjectReference{Namespace: namespace, Name: "key"},
	}}
}
