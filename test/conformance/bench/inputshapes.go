package main

import (
	"encoding/json"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shape is the JSON text of an object, as kubectl prints it in a list, cut at
// the names that differ from object to object.
type shape struct {
	texts [][]byte // one more than names
	names []int    // indices of the name that follows each text
}

// The names that differ, as they stand in the objects below.
const (
	atNode = iota
	atNamespace
	atName
	atApp
	atNumber
	nameCount
)

var (
	placeholders = [nameCount]string{"@node@", "@namespace@", "@name@", "@app@", "@number@"}
	placeholder  = regexp.MustCompile("@[a-z]+@")
)

func newShape(object any) (shape, error) {
	text, err := json.MarshalIndent(object, "        ", "    ")
	if err != nil {
		return shape{}, fmt.Errorf("encoding the model of an object: %w", err)
	}
	var s shape
	rest := text
	for at := placeholder.FindIndex(rest); at != nil; at = placeholder.FindIndex(rest) {
		for i, p := range placeholders {
			if string(rest[at[0]:at[1]]) == p {
				s.names = append(s.names, i)
			}
		}
		s.texts = append(s.texts, rest[:at[0]])
		rest = rest[at[1]:]
	}
	s.texts = append(s.texts, rest)
	return s, nil
}

// append adds the object with the given names to text.
func (s *shape) append(text []byte, names *[nameCount]string) []byte {
	for i, name := range s.names {
		text = append(text, s.texts[i]...)
		text = append(text, names[name]...)
	}
	return append(text, s.texts[len(s.names)]...)
}

// shapes are the objects of a large cluster.
type shapes struct {
	node, daemon, replica, stateful, volume, attachment shape
}

// newShapes makes the shapes, after changes to the model of each pod.
func newShapes(change ...func(*corev1.Pod)) (*shapes, error) {
	s := new(shapes)
	for _, one := range []struct {
		into   *shape
		object any
	}{
		{&s.node, modelNode()},
		{&s.daemon, modelPod("DaemonSet", secretVolume("@app@-token"), configVolume("@app@-config"), hostVolume())},
		{&s.replica, modelPod("ReplicaSet", secretVolume("@app@-credentials"), configVolume("@app@-config"))},
		{&s.stateful, modelPod("StatefulSet", secretVolume("@app@-credentials"), configVolume("@app@-config"), claimVolume("data-@name@"))},
		{&s.volume, modelVolume()},
		{&s.attachment, modelAttachment()},
	} {
		if pod, ok := one.object.(*corev1.Pod); ok {
			for _, do := range change {
				do(pod)
			}
		}
		var err error
		if *one.into, err = newShape(one.object); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func modelMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              "@name@",
		UID:               types.UID("7f0c5a4e-91d4-4c1e-9b2f-@number@"),
		ResourceVersion:   "4182736455",
		CreationTimestamp: metav1.Unix(1_767_225_600, 0).Rfc3339Copy(),
		Labels: map[string]string{
			"app.kubernetes.io/name": "@app@", "app.kubernetes.io/version": "1.14.2",
			"app.kubernetes.io/managed-by": "Helm", "pod-template-hash": "6d4cf56db6",
		},
	}
}

func modelPod(owner string, volumes ...corev1.Volume) *corev1.Pod {
	meta := modelMeta()
	meta.Namespace = "@namespace@"
	meta.GenerateName = "@app@-6d4cf56db6-"
	meta.Annotations = map[string]string{
		"checksum/config":      "9d2b0bd5b7ed9d3a2d8d5d8ff8f52b0bd5b7ed9d3a2d8d5d8ff8f501be5d6c31",
		"prometheus.io/scrape": "true",
	}
	yes := true
	meta.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: owner, Name: "@app@-6d4cf56db6",
		UID: "0b9c7a4e-1d44-4c1e-8b2f-9a1f20c3d4e5", Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			NodeName: "@node@", ServiceAccountName: "@app@", DeprecatedServiceAccount: "@app@",
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: "default-scheduler",
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			Containers:       []corev1.Container{modelContainer()},
			Volumes:          append(volumes, tokenVolume()),
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
		},
		Status: modelStatus(),
	}
}

func modelContainer() corev1.Container {
	probe := &corev1.Probe{
		PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
		ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP},
		},
	}
	return corev1.Container{
		Name: "main", Image: "registry.example.com/team/@app@:1.14.2", ImagePullPolicy: corev1.PullIfNotPresent,
		Env: []corev1.EnvVar{
			{Name: "MODE", Value: "production"},
			{
				Name:      "POD_IP",
				ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}},
			},
			{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "@app@-credentials"}, Key: "password",
			}}},
		},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
			},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "credentials", MountPath: "/etc/credentials", ReadOnly: true},
			{Name: "config", MountPath: "/etc/config", ReadOnly: true},
			{Name: "kube-api-access-x7k2p", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		LivenessProbe: probe, ReadinessProbe: probe,
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

// tokenVolume is the volume that the API server adds to every pod.
func tokenVolume() corev1.Volume {
	expires, mode := int64(3607), int32(420)
	return corev1.Volume{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: &mode,
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expires, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}
}

func hostVolume() corev1.Volume {
	return corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}}
}

func modelStatus() corev1.PodStatus {
	since := metav1.Unix(1_767_225_660, 0).Rfc3339Copy()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "10.12.34.56", PodIP: "100.64.12.34",
		PodIPs: []corev1.PodIP{{IP: "100.64.12.34"}}, StartTime: &since, QOSClass: corev1.PodQOSBurstable,
	}
	for _, t := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
		corev1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: since})
	}
	started := true
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Ready: true, Started: &started,
		Image:       "registry.example.com/team/@app@:1.14.2",
		ImageID:     "registry.example.com/team/@app@@sha256:1be5d6c319d2b0bd5b7ed9d3a2d8d5d8ff8f52b0bd5b7ed9d3a2d8d5d8ff8f50",
		ContainerID: "containerd://9d2b0bd5b7ed9d3a2d8d5d8ff8f52b0bd5b7ed9d3a2d8d5d8ff8f501be5d6c31",
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
	}}
	return status
}

func modelNode() *corev1.Node {
	meta := modelMeta()
	meta.Annotations = map[string]string{
		"node.alpha.kubernetes.io/ttl": "300", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
	}
	node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: meta}
	node.Spec.ProviderID = "aws:///eu-central-1a/i-0@number@"
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: "v1.37.1", ContainerRuntimeVersion: "containerd://2.2.1", OperatingSystem: "linux",
		Architecture: "amd64",
	}
	for i := range 30 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			SizeBytes: 51_234_567,
			Names: []string{
				fmt.Sprintf(
					"registry.example.com/team/service-%06d@sha256:1be5d6c319d2b0bd5b7ed9d3a2d8d5d8ff8f52b0bd5b7ed9d3a2d8d5d8ff8f50",
					i),
			},
		})
	}
	return node
}

func modelVolume() *corev1.PersistentVolume {
	pv := newVolume("@name@", "@namespace@", "@app@", nil)
	pv.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}
	pv.UID = "7f0c5a4e-91d4-4c1e-9b2f-@number@"
	pv.Spec.CSI.VolumeHandle = "vol-0@number@"
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
	pv.Spec.StorageClassName = "fast"
	pv.Status.Phase = corev1.VolumeBound
	return pv
}

func modelAttachment() *storagev1.VolumeAttachment {
	volume := "@app@"
	return &storagev1.VolumeAttachment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment"},
		ObjectMeta: metav1.ObjectMeta{Name: "@name@", UID: "7f0c5a4e-91d4-4c1e-9b2f-@number@"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "disk.csi.example.com", NodeName: "@node@",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}
