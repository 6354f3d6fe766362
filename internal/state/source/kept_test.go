package source

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// An inventory of files, and of a snapshot of them, is the inventory of the whole objects: parts of an object that are not
// kept do not matter to it.
func TestInventoryNeedsOnlyKeptFields(t *testing.T) {
	seeds := uint64(600)
	if testing.Short() {
		seeds = 150
	}
	for seed := range seeds {
		pod := podOf(rand.New(rand.NewPCG(seed, 1)))
		whole := inventory.New()
		whole.Set(pod)
		text, err := stdjson.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		s := mustLoad(t, "pod.json", string(text))
		samePods(t, seed, "of files", text, whole, s.Inventory)
		if seed%10 == 0 {
			again := mustLoad(t, "pod.snapshot", string(takeSnapshot(t, s)))
			samePods(t, seed, "of a snapshot", text, whole, again.Inventory)
		}
		if t.Failed() {
			return
		}
	}
}

func samePods(t *testing.T, seed uint64, of string, text []byte, whole, kept *inventory.Inventory) {
	t.Helper()
	want, got := whole.Pods(), kept.Pods()
	if len(want) != 1 || len(got) != 1 {
		t.Fatalf("%d pods of %d", len(got), len(want))
	}
	if !reflect.DeepEqual(want[0], got[0]) {
		var indented bytes.Buffer
		_ = stdjson.Indent(&indented, text, "", " ")
		t.Errorf("seed %d: the inventory %s has\n%+v\n%+v\nwant\n%+v\n%+v\nof %s",
			seed, of, *got[0], *got[0].Template, *want[0], *want[0].Template, indented.String())
	}
}

// podOf makes a pod with some of the fields that inventories read, and some that they do not.
func podOf(r *rand.Rand) *corev1.Pod {
	maybe := func() bool { return r.IntN(3) == 0 }
	yes := func() *bool { b := r.IntN(4) > 0; return &b }
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: []string{"shop", "kube-system"}[r.IntN(2)], Name: "web-1", UID: "u"},
	}
	pod.Spec.NodeName, pod.Spec.ServiceAccountName = "n1", "web"
	if maybe() {
		pod.Spec.HostPID, pod.Spec.HostNetwork, pod.Spec.HostIPC = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	}
	if maybe() {
		pod.Spec.HostUsers = yes()
	}
	if maybe() {
		class := "kata"
		pod.Spec.RuntimeClassName = &class
	}
	if maybe() {
		pod.Annotations = map[string]string{[]string{corev1.MirrorPodAnnotationKey, "note"}[r.IntN(2)]: "x"}
	}
	if maybe() {
		label := inventory.ControlPlaneLabels[r.IntN(len(inventory.ControlPlaneLabels))]
		pod.Labels = map[string]string{label: []string{"kube-apiserver", "etcd", "web"}[r.IntN(3)]}
	}
	if maybe() {
		phases := []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown}
		pod.Status.Phase = phases[r.IntN(len(phases))]
	}
	if maybe() {
		owner := []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-abc", Controller: yes()},
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: yes()},
			{APIVersion: "example.com/v1", Kind: "Runner", Name: "x", Controller: yes()},
		}[r.IntN(3)]
		pod.OwnerReferences = []metav1.OwnerReference{owner}
		if maybe() {
			pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "abc"}
		}
	}
	if maybe() {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: windowsContext(r)}
		pod.Spec.SecurityContext.RunAsUser, pod.Spec.SecurityContext.RunAsNonRoot = userContextOf(r)
	}
	if maybe() {
		pod.Spec.NodeSelector = map[string]string{"pool": "a"}
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
	}
	if maybe() {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}, {Name: "other"}}
	}
	for i := range r.IntN(4) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, volumeOf(r, i))
	}
	for i := range r.IntN(3) {
		c := containerOf(r, fmt.Sprint("init-", i), pod.Spec.Volumes)
		if maybe() {
			policy := []corev1.ContainerRestartPolicy{"Always", "Never"}[r.IntN(2)]
			c.RestartPolicy = &policy
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i := range r.IntN(3) + 1 {
		pod.Spec.Containers = append(pod.Spec.Containers, containerOf(r, fmt.Sprint("c-", i), pod.Spec.Volumes))
	}
	if maybe() {
		common := corev1.EphemeralContainerCommon(containerOf(r, "debug", pod.Spec.Volumes))
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: common}}
	}
	return pod
}

func windowsContext(r *rand.Rand) *corev1.WindowsSecurityContextOptions {
	user, is := "x", r.IntN(2) == 0
	return []*corev1.WindowsSecurityContextOptions{nil, {RunAsUserName: &user}, {HostProcess: &is}}[r.IntN(3)]
}

func userContextOf(r *rand.Rand) (user *int64, nonRoot *bool) {
	id, is := int64(r.IntN(2)*1000), r.IntN(2) == 0
	return []*int64{nil, &id}[r.IntN(2)], []*bool{nil, &is}[r.IntN(2)]
}

func volumeOf(r *rand.Rand, i int) corev1.Volume {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	projected := []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: []string{"", "vault"}[r.IntN(2)], Path: "t"}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: local("p")}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("m")}},
		{DownwardAPI: &corev1.DownwardAPIProjection{}},
	}
	r.Shuffle(len(projected), func(i, j int) { projected[i], projected[j] = projected[j], projected[i] })
	template := &corev1.PersistentVolumeClaimTemplate{}
	claim := []string{"claim", fmt.Sprint("v", i, "-web-1")}[r.IntN(2)]
	sources := []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{HostPath: &corev1.HostPathVolumeSource{Path: []string{"/", "/etc", "/data", "/var/log", "/etc/kubernetes/pki"}[r.IntN(5)]}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("m")}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
		{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: projected[:r.IntN(len(projected)+1)]}},
		{CSI: &corev1.CSIVolumeSource{Driver: "d", NodePublishSecretRef: &corev1.LocalObjectReference{Name: "csi"}}},
		{NFS: &corev1.NFSVolumeSource{Server: "x"}},
		{CephFS: &corev1.CephFSVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: "ceph"}}},
	}
	name := fmt.Sprint("v", i)
	if r.IntN(5) == 0 {
		name = fmt.Sprint(generatedToken, i)
	}
	return corev1.Volume{Name: name, VolumeSource: sources[r.IntN(len(sources))]}
}

func containerOf(r *rand.Rand, name string, volumes []corev1.Volume) corev1.Container {
	maybe := func() bool { return r.IntN(3) == 0 }
	c := corev1.Container{Name: name, Image: []string{"web", "registry.k8s.io/kube-apiserver:v1.37.1"}[r.IntN(8)/7]}
	for _, v := range volumes {
		if r.IntN(2) == 0 {
			m := corev1.VolumeMount{Name: v.Name, MountPath: "/m", ReadOnly: maybe()}
			if maybe() {
				m.SubPath = "sub"
			} else if maybe() {
				m.SubPathExpr = "$(X)"
			}
			c.VolumeMounts = append(c.VolumeMounts, m)
		}
	}
	for i := range r.IntN(3) {
		ref := corev1.LocalObjectReference{Name: fmt.Sprint("e", i)}
		c.Env = append(c.Env, []corev1.EnvVar{
			{Name: "A", Value: "plain"},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref}}},
			{Name: "C", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref}}},
			{Name: "D", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "x"}}},
		}[r.IntN(4)])
		c.EnvFrom = append(c.EnvFrom, []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}},
		}[r.IntN(2)])
	}
	if maybe() {
		yes := r.IntN(2) == 0
		c.SecurityContext = &corev1.SecurityContext{Privileged: &yes, WindowsOptions: windowsContext(r)}
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsNonRoot = userContextOf(r)
		if maybe() {
			c.SecurityContext.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN", "NET_RAW"}[r.IntN(2):]}
		}
	}
	if maybe() {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	}
	return c
}
