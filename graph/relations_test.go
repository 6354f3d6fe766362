package graph_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/graph"
)

// TestPodRelates has every field through which a pod relates an object to its
// node. In each case the pod names one object, and exactly the pod and that
// object must be related.
func TestPodRelates(t *testing.T) {
	for _, tc := range []struct {
		rule  string
		part  func(*corev1.Pod)
		kind  graph.Kind
		name  string
		field string
	}{
		{
			"its service account", withServiceAccount("api"),
			graph.ServiceAccount, "api", "spec.serviceAccountName",
		},
		{"its service account, also when it mounts no token", func(pod *corev1.Pod) {
			pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = "api", new(bool)
		}, graph.ServiceAccount, "api", "spec.serviceAccountName"},
		{
			"image pull secrets", func(pod *corev1.Pod) { pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{local("registry")} },
			graph.Secret, "registry", "spec.imagePullSecrets",
		},

		{
			"a secret in a container's env", withEnv("api", secretEnv("db")),
			graph.Secret, "db", "spec.containers[name=api].env",
		},
		{
			"a config map in a container's env", withEnv("api", configEnv("settings")),
			graph.ConfigMap, "settings", "spec.containers[name=api].env",
		},
		{
			"a secret in a container's envFrom", withEnvFrom("api", fromSecret("db")),
			graph.Secret, "db", "spec.containers[name=api].envFrom",
		},
		{
			"a config map in a container's envFrom", withEnvFrom("api", fromConfigMap("settings")),
			graph.ConfigMap, "settings", "spec.containers[name=api].envFrom",
		},
		{
			"a secret that is optional", withEnv("api", optional(secretEnv("db"))),
			graph.Secret, "db", "spec.containers[name=api].env",
		},
		{
			"a secret in an init container's env", withInitContainer(corev1.Container{
				Name: "migrate", Env: []corev1.EnvVar{secretEnv("db")},
			}),
			graph.Secret, "db", "spec.initContainers[name=migrate].env",
		},
		{
			"a config map in an init container's env", withInitContainer(corev1.Container{
				Name: "migrate", Env: []corev1.EnvVar{configEnv("settings")},
			}),
			graph.ConfigMap, "settings", "spec.initContainers[name=migrate].env",
		},
		{
			"a secret in an init container's envFrom", withInitContainer(corev1.Container{
				Name: "migrate", EnvFrom: []corev1.EnvFromSource{fromSecret("db")},
			}),
			graph.Secret, "db", "spec.initContainers[name=migrate].envFrom",
		},
		{
			"a config map in an init container's envFrom", withInitContainer(corev1.Container{
				Name: "migrate", EnvFrom: []corev1.EnvFromSource{fromConfigMap("settings")},
			}),
			graph.ConfigMap, "settings", "spec.initContainers[name=migrate].envFrom",
		},
		{
			"a secret in an ephemeral container's env", withEphemeralContainer("debug", secretEnv("db")),
			graph.Secret, "db", "spec.ephemeralContainers[name=debug].env",
		},
		{
			"a config map in an ephemeral container's env", withEphemeralContainer("debug", configEnv("settings")),
			graph.ConfigMap, "settings", "spec.ephemeralContainers[name=debug].env",
		},
		{
			"a secret in an ephemeral container's envFrom", withEphemeralEnvFrom("debug", fromSecret("db")),
			graph.Secret, "db", "spec.ephemeralContainers[name=debug].envFrom",
		},
		{
			"a config map in an ephemeral container's envFrom", withEphemeralEnvFrom("debug", fromConfigMap("settings")),
			graph.ConfigMap, "settings", "spec.ephemeralContainers[name=debug].envFrom",
		},

		{
			"a secret volume", withVolume("data", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}),
			graph.Secret, "db", "spec.volumes[name=data].secret",
		},
		{
			"a projected secret", withProjection(corev1.VolumeProjection{
				Secret: &corev1.SecretProjection{LocalObjectReference: local("db")},
			}),
			graph.Secret, "db", "spec.volumes[name=data].projected",
		},
		{
			"an azureFile volume", withVolume("data", corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "db"}}),
			graph.Secret, "db", "spec.volumes[name=data].azureFile",
		},
		{
			"a cephfs volume", withVolume("data", corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: localRef("db")}}),
			graph.Secret, "db", "spec.volumes[name=data].cephfs",
		},
		{
			"a cinder volume", withVolume("data", corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{SecretRef: localRef("db")}}),
			graph.Secret, "db", "spec.volumes[name=data].cinder",
		},
		{
			"a flexVolume volume", withVolume("data", corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: localRef("db")}}),
			graph.Secret, "db", "spec.volumes[name=data].flexVolume",
		},
		{
			"an rbd volume", withVolume("data", corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: localRef("db")}}),
			graph.Secret, "db", "spec.volumes[name=data].rbd",
		},
		{
			"a scaleIO volume", withVolume("data", corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: localRef("db")}}),
			graph.Secret, "db", "spec.volumes[name=data].scaleIO",
		},
		{
			"an iscsi volume", withVolume("data", corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: localRef("db")}}),
			graph.Secret, "db", "spec.volumes[name=data].iscsi",
		},
		{
			"a storageos volume", withVolume("data", corev1.VolumeSource{
				StorageOS: &corev1.StorageOSVolumeSource{SecretRef: localRef("db")},
			}),
			graph.Secret, "db", "spec.volumes[name=data].storageos",
		},
		{
			"a csi volume", withVolume("data", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: localRef("db")}}),
			graph.Secret, "db", "spec.volumes[name=data].csi.nodePublishSecretRef",
		},

		{
			"a configMap volume", withVolume("data", corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("settings")},
			}),
			graph.ConfigMap, "settings", "spec.volumes[name=data].configMap",
		},
		{
			"a projected config map", withProjection(corev1.VolumeProjection{
				ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("settings")},
			}),
			graph.ConfigMap, "settings", "spec.volumes[name=data].projected",
		},

		{
			"a claim", withVolume("data", corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "orders"},
			}),
			graph.PersistentVolumeClaim, "orders", "spec.volumes[name=data].persistentVolumeClaim",
		},
		{
			"the claim that is made for a generic ephemeral volume", withVolume("scratch", corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{},
			}),
			graph.PersistentVolumeClaim, "api-scratch", "spec.volumes[name=scratch].ephemeral",
		},

		{
			"a resource claim by name", withResourceClaims(corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: new("a100")}),
			graph.ResourceClaim, "a100", "spec.resourceClaims[name=gpu]",
		},
		{"the resource claim that was made from a template", func(pod *corev1.Pod) {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("any-gpu")}}
			pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new("api-gpu-x7c2p")}}
		}, graph.ResourceClaim, "api-gpu-x7c2p", "status.resourceClaimStatuses[name=gpu]"},
		{"the resource claim that was made for extended resources", func(pod *corev1.Pod) {
			pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "api-extended"}
		}, graph.ResourceClaim, "api-extended", "status.extendedResourceClaimStatus"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			g := graph.New()
			g.SetPod(newPod("api", "worker-1", tc.part))
			g.SetPod(newPod("other", "worker-2"))

			checkRelated(t, g, "worker-1", graph.Pod, "shop", "api")
			checkRelated(t, g, "worker-1", tc.kind, "shop", tc.name)
			if all := g.Reach("worker-1"); len(all) != 2 {
				t.Errorf("want the pod and one object, got %v", all)
			}
			checkUnrelated(t, g, "worker-2", tc.kind, "shop", tc.name)
			checkUnrelated(t, g, "worker-1", tc.kind, "elsewhere", tc.name)
			checkUnrelated(t, g, "worker-1", tc.kind, "", tc.name)

			path := g.Path("worker-1", tc.kind, "shop", tc.name)
			if len(path) != 2 {
				t.Fatalf("want a path over the pod, got %v", path)
			}
			if path[0].Field != tc.field || path[0].Holder != path[0].To || path[0].Holder.Name != "api" {
				t.Errorf("want field %s of the pod, got %q of %v", tc.field, path[0].Field, path[0].Holder)
			}
			if path[1].Field != "spec.nodeName" || path[1].Holder != path[1].From {
				t.Errorf("want the pod's spec.nodeName, got %+v", path[1])
			}

			g.DeletePod("shop", "api")
			checkUnrelated(t, g, "worker-1", tc.kind, "shop", tc.name)
			checkUnrelated(t, g, "worker-1", graph.Pod, "shop", "api")
		})
	}
}

// TestPodRelatesNothingThrough has fields that look like references but are not.
func TestPodRelatesNothingThrough(t *testing.T) {
	template := corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: new("any-gpu")}
	for _, tc := range []struct {
		rule string
		part func(*corev1.Pod)
	}{
		{"an empty service account name", withServiceAccount("")},
		{"an empty image pull secret", func(pod *corev1.Pod) { pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{}} }},
		{"an empty name in env", withEnv("api", secretEnv(""), configEnv(""))},
		{"an empty name in envFrom", withEnvFrom("api", fromSecret(""), fromConfigMap(""))},
		{"an env with a literal value", withEnv("api", corev1.EnvVar{Name: "MODE", Value: "db"})},
		{"an env from a field", withEnv("api", corev1.EnvVar{
			Name:      "NODE",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}},
		})},
		{"an envFrom without a source", withEnvFrom("api", corev1.EnvFromSource{Prefix: "DB_"})},
		{"an empty secret volume", withSecret("")},
		{"an empty configMap volume", withConfigMap("")},
		{"an empty claim", withClaim("")},
		{"a volume without a source", withVolume("data", corev1.VolumeSource{})},
		{"volumes that have no secret", func(pod *corev1.Pod) {
			for _, source := range []corev1.VolumeSource{
				{CephFS: &corev1.CephFSVolumeSource{}},
				{Cinder: &corev1.CinderVolumeSource{}},
				{FlexVolume: &corev1.FlexVolumeSource{}},
				{RBD: &corev1.RBDVolumeSource{}},
				{ScaleIO: &corev1.ScaleIOVolumeSource{}},
				{ISCSI: &corev1.ISCSIVolumeSource{}},
				{StorageOS: &corev1.StorageOSVolumeSource{}},
				{CSI: &corev1.CSIVolumeSource{}},
				{AzureFile: &corev1.AzureFileVolumeSource{}},
				{Projected: &corev1.ProjectedVolumeSource{}},
				{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}},
			} {
				withVolume("data", source)(pod)
			}
		}},
		{"projections of what is not a secret or config map", withProjection(
			corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: new("ca"), Path: "ca"}},
			corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}},
		)},
		{
			"a glusterfs volume's endpoints",
			withVolume("data", corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{EndpointsName: "gluster"}}),
		},
		{"a template whose claim has not been made", withResourceClaims(template)},
		{"a template that needed no claim", func(pod *corev1.Pod) {
			withResourceClaims(template)(pod)
			pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu"}}
		}},
		{"a later status of a template's claim", func(pod *corev1.Pod) {
			withResourceClaims(template)(pod)
			pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
				{Name: "gpu"}, {Name: "gpu", ResourceClaimName: new("second")},
			}
		}},
		{"a status of a claim that the pod does not have", func(pod *corev1.Pod) {
			pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "stray", ResourceClaimName: new("a100")}}
		}},
		{"claims of node-allocatable resources", func(pod *corev1.Pod) {
			pod.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "cpus"}}
		}},
		{"an empty extended resource claim", func(pod *corev1.Pod) {
			pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{}
		}},
		{"a nominated node", func(pod *corev1.Pod) { pod.Status.NominatedNodeName = "worker-2" }},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			g := graph.New()
			g.SetPod(newPod("api", "worker-1", tc.part))
			if got := reached(g, "worker-1"); !slices.Equal(got, []string{"pod shop/api"}) {
				t.Errorf("want the pod alone, got %v", got)
			}
			if got := g.Nodes(); !slices.Equal(got, []string{"worker-1"}) {
				t.Errorf("want the pod's node alone, got %v", got)
			}
		})
	}
}

// TestObjectRelatesToItsNode has the objects that name a node themselves.
func TestObjectRelatesToItsNode(t *testing.T) {
	for _, tc := range []struct {
		kind      graph.Kind
		namespace string
		set       func(g *graph.Graph, node string)
		delete    func(g *graph.Graph)
	}{
		{
			graph.Pod, "shop",
			func(g *graph.Graph, node string) { g.SetPod(newPod("object", node)) },
			func(g *graph.Graph) { g.DeletePod("shop", "object") },
		},
		{
			graph.VolumeAttachment, "",
			func(g *graph.Graph, node string) { g.SetVolumeAttachment(newAttachment("object", node)) },
			func(g *graph.Graph) { g.DeleteVolumeAttachment("object") },
		},
		{
			graph.ResourceSlice, "",
			func(g *graph.Graph, node string) { g.SetResourceSlice(newSlice("object", &node)) },
			func(g *graph.Graph) { g.DeleteResourceSlice("object") },
		},
		{
			graph.PodCertificateRequest, "shop",
			func(g *graph.Graph, node string) { g.SetPodCertificateRequest(newRequest("object", node)) },
			func(g *graph.Graph) { g.DeletePodCertificateRequest("shop", "object") },
		},
	} {
		t.Run(tc.kind.String(), func(t *testing.T) {
			g := graph.New()
			tc.delete(g) // unknown: nothing happens
			tc.set(g, "")
			if g.Has(tc.kind, tc.namespace, "object") || g.HasNode("") {
				t.Error("an object without a node is related to something")
			}

			tc.set(g, "worker-1")
			checkRelated(t, g, "worker-1", tc.kind, tc.namespace, "object")
			if path := g.Path("worker-1", tc.kind, tc.namespace, "object"); len(path) != 1 || path[0].Field != "spec.nodeName" ||
				path[0].Holder.Name != "object" {
				t.Errorf("want one edge, the object's spec.nodeName, got %+v", path)
			}

			tc.set(g, "worker-2")
			checkRelated(t, g, "worker-2", tc.kind, tc.namespace, "object")
			checkUnrelated(t, g, "worker-1", tc.kind, tc.namespace, "object")
			if g.HasNode("worker-1") {
				t.Error("the node that the object left is still known")
			}

			tc.set(g, "")
			checkUnrelated(t, g, "worker-2", tc.kind, tc.namespace, "object")
			tc.set(g, "worker-3")
			tc.delete(g)
			checkUnrelated(t, g, "worker-3", tc.kind, tc.namespace, "object")
			checkEmpty(t, g)
		})
	}
}

func TestResourceSliceOfAllNodesRelatesToNone(t *testing.T) {
	g := graph.New()
	all := newSlice("network-attached", nil)
	all.Spec.AllNodes = new(true)
	g.SetResourceSlice(all)
	checkEmpty(t, g)
}
