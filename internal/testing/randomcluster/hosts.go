package randomcluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hostFolders are folders of a node of which mounts give different things.
var hostFolders = []string{
	"/", "/etc", "/etc/kubernetes", "/etc/kubernetes/pki", "/var/lib/kubelet", "/var/lib/kubelet/pki", "/var/lib/kubelet/pods", "/dev",
	"/run/containerd/containerd.sock", "/var/log", "/var/log", "/usr/share/zoneinfo", "/data", "/root",
}

// mountHost mounts a folder of the node into a pod, by itself or behind a claim.
func (rc *Cluster) mountHost(p *corev1.Pod) {
	volume := corev1.Volume{Name: "host"}
	if rc.runs.chance(3) {
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pick(rc.runs, []string{"folder", "missing"})}
	} else {
		volume.HostPath = &corev1.HostPathVolumeSource{Path: pick(rc.runs, hostFolders)}
	}
	p.Spec.Volumes = append(p.Spec.Volumes, volume)
	p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{
		Name: volume.Name, MountPath: "/host", ReadOnly: rc.runs.chance(2),
	})
	switch rc.runs.IntN(8) {
	case 0:
		p.Spec.Containers[0].Command = []string{"/usr/bin/" + pick(rc.runs, []string{"kube-apiserver", "kube-scheduler", "etcd"})}
	case 1:
		no := false
		p.Spec.HostUsers = &no
	case 2:
		sandbox := "gvisor"
		p.Spec.RuntimeClassName = &sandbox
	}
}

// addHostVolumes adds claims whose volumes are folders of nodes.
func (rc *Cluster) addHostVolumes() {
	for _, ns := range randomNamespaces {
		if !rc.runs.chance(6) {
			continue
		}
		name := "folder-of-" + ns
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if folder := pick(rc.runs, hostFolders); rc.runs.chance(2) {
			pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: folder}
		} else {
			pv.Spec.Local = &corev1.LocalVolumeSource{Path: folder}
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "node-restriction.kubernetes.io/pool", Operator: corev1.NodeSelectorOpExists},
				}}},
			}}
		}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: "folder"}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "folder"}}
		if claim.Spec.VolumeName = name; rc.runs.chance(4) {
			claim.Spec.VolumeName = "gone-" + fmt.Sprint(rc.runs.IntN(2))
		}
		if rc.runs.chance(8) {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "quota"}}
			counted := pick(rc.runs, []corev1.ResourceName{"pods", "count/deployments.apps", "secrets", "count/rolebindings." + rbacGroup})
			quota.Spec.Hard = corev1.ResourceList{counted: resource.MustParse("0")}
			rc.add(quota)
		}
		free := rc.runs.chance(3)
		if free && rc.runs.chance(2) {
			pv.Spec.ClaimRef = nil
		}
		if rc.add(pv); !free {
			rc.add(claim)
		}
	}
}
