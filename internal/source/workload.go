package source

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/manifest"
	"github.com/node-authorizer/node-authorizer/inventory"
)

// workloadKind is a kind of object from whose template a controller makes pods. A state does not keep
// such objects, only their pods.
type workloadKind struct{ group, kind, resource string }

// workloadKinds is a table and never changes.
var workloadKinds = [...]workloadKind{
	{"apps", "Deployment", "deployments"},
	{"apps", "DaemonSet", "daemonsets"},
	{"apps", "StatefulSet", "statefulsets"},
	{"apps", "ReplicaSet", "replicasets"},
	{"", "ReplicationController", "replicationcontrollers"},
	{"batch", "Job", "jobs"},
	{"batch", "CronJob", "cronjobs"},
}

func workloadKindOf(group, kind string) (workloadKind, bool) {
	for _, w := range workloadKinds {
		if w.group == group && w.kind == kind {
			return w, true
		}
	}
	return workloadKind{}, false
}

// workload is an object with a pod template.
type workload struct {
	workloadKind
	// pod is one that the template makes.
	pod *corev1.Pod
	// claims are those that the controller of a StatefulSet makes for the pod.
	claims []*corev1.PersistentVolumeClaim
}

func (w *workload) identity() inventory.Workload {
	return inventory.Workload{Group: w.group, Resource: w.resource, Name: w.pod.Annotations[workloadName]}
}

// workloadName is the annotation that carries the name of the workload until the pod is added.
const workloadName = "node-authorizer.io/workload"

// plannedPodShape has the fields of inventoryPodShape, and those that only matter until the API server
// has made a pod.
type plannedPodShape struct {
	Spec struct {
		Automount      *bool                        `json:"automountServiceAccountToken"`
		Overhead       corev1.ResourceList          `json:"overhead"`
		Resources      *corev1.ResourceRequirements `json:"resources"`
		InitContainers []plannedContainerShape      `json:"initContainers"`
		Containers     []plannedContainerShape      `json:"containers"`
		Volumes        []struct {
			Name      string `json:"name"`
			Ephemeral *struct {
				VolumeClaimTemplate claimTemplateShape `json:"volumeClaimTemplate"`
			} `json:"ephemeral"`
		} `json:"volumes"`
	} `json:"spec"`
}

// claimTemplateShape is a claim that a controller makes for a pod.
type claimTemplateShape struct {
	Metadata identity       `json:"metadata"`
	Spec     claimSpecShape `json:"spec"`
}

type plannedContainerShape struct {
	Name          string                         `json:"name"`
	Resources     corev1.ResourceRequirements    `json:"resources"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
}

// template is a pod as two shapes.
type template struct {
	inventoryPodShape
	planned plannedPodShape
}

// pod returns a pod as the template asks for it, trimmed, with requests.
func (t *template) pod() *corev1.Pod {
	pod := t.object().(*corev1.Pod)
	trim(pod, true)
	pod.Spec.AutomountServiceAccountToken = t.planned.Spec.Automount
	pod.Spec.Overhead, pod.Spec.Resources = t.planned.Spec.Overhead, t.planned.Spec.Resources
	pod.Spec.InitContainers = withRequests(pod.Spec.InitContainers, t.planned.Spec.InitContainers)
	pod.Spec.Containers = withRequests(pod.Spec.Containers, t.planned.Spec.Containers)
	for i := range pod.Spec.Volumes {
		for _, v := range t.planned.Spec.Volumes {
			if own := &pod.Spec.Volumes[i]; own.Ephemeral != nil && v.Ephemeral != nil && v.Name == own.Name {
				own.Ephemeral.VolumeClaimTemplate = &corev1.PersistentVolumeClaimTemplate{Spec: v.Ephemeral.VolumeClaimTemplate.Spec.object()}
			}
		}
	}
	return pod
}

// addClaims adds the volumes that the controller of a StatefulSet adds to a pod, and returns their claims. They replace volumes
// of the template that have their names.
func (t *template) addClaims(pod string, templates []claimTemplateShape) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, c := range templates {
		name := c.Metadata.Name
		t.Spec.Volumes = slices.DeleteFunc(t.Spec.Volumes, func(v volumeShape) bool { return v.Name == name })
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + pod}}
		t.Spec.Volumes = append(t.Spec.Volumes, volumeShape{Name: name, VolumeSource: source})
		claim := &corev1.PersistentVolumeClaim{Spec: c.Spec.object()}
		claim.Name = source.PersistentVolumeClaim.ClaimName
		claims = append(claims, claim)
	}
	return claims
}

// ephemeralClaims are the claims that the API server's controllers make for the ephemeral volumes of a pod that is to be created.
func ephemeralClaims(pod *corev1.Pod) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, v := range pod.Spec.Volumes {
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			claim := &corev1.PersistentVolumeClaim{Spec: v.Ephemeral.VolumeClaimTemplate.Spec}
			claim.Name = pod.Name + "-" + v.Name
			claims = append(claims, claim)
		}
	}
	return claims
}

// withRequests adds what containers request to those that are kept, in their order.
func withRequests(kept []corev1.Container, all []plannedContainerShape) []corev1.Container {
	var containers []corev1.Container
	for _, c := range all {
		at := slices.IndexFunc(kept, func(k corev1.Container) bool { return k.Name == c.Name })
		container := corev1.Container{Name: c.Name}
		if at >= 0 {
			container = kept[at]
		}
		container.Resources, container.RestartPolicy = c.Resources, c.RestartPolicy
		containers = append(containers, container)
	}
	return containers
}

// decodeWorkload reads an object with a pod template.
func decodeWorkload(d *manifest.Document, of workloadKind, namespace string) (*workload, error) {
	if d.Version() != "v1" {
		return nil, d.Fail(fmt.Errorf("apiVersion %s is not supported; the supported version is %s",
			d.APIVersion, strings.TrimPrefix(of.group+"/v1", "/")))
	}
	meta := struct {
		Metadata identity `json:"metadata"`
		Spec     struct {
			VolumeClaimTemplates []claimTemplateShape `json:"volumeClaimTemplates"`
		} `json:"spec"`
	}{}
	if err := d.Decode(&meta); err != nil {
		return nil, err
	}
	t, err := decodeTemplate(d, of)
	if err != nil {
		return nil, err
	}
	claims := t.addClaims(plannedName(meta.Metadata.Name), meta.Spec.VolumeClaimTemplates)
	pod := t.pod()
	pod.Namespace, pod.Name = orDefault(meta.Metadata.Namespace, namespace), plannedName(meta.Metadata.Name)
	if meta.Metadata.Name == "" {
		return nil, d.Fail(errNoName)
	}
	pod.Annotations = map[string]string{workloadName: meta.Metadata.Name}
	own(pod, of, meta.Metadata.Name)
	if of.kind == "DaemonSet" {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations(pod.Spec.HostNetwork)...)
	}
	return &workload{of, pod, claims}, nil
}

// plannedName is a name that no pod can have.
func plannedName(workload string) string { return workload + "-*" }

func decodeTemplate(d *manifest.Document, of workloadKind) (*template, error) {
	var t template
	if of.kind == "CronJob" {
		var kept struct {
			Spec struct {
				JobTemplate struct {
					Spec struct {
						Template inventoryPodShape `json:"template"`
					} `json:"spec"`
				} `json:"jobTemplate"`
			} `json:"spec"`
		}
		var planned struct {
			Spec struct {
				JobTemplate struct {
					Spec struct {
						Template plannedPodShape `json:"template"`
					} `json:"spec"`
				} `json:"jobTemplate"`
			} `json:"spec"`
		}
		if err := d.Decode(&kept); err != nil {
			return nil, err
		}
		if err := d.Decode(&planned); err != nil {
			return nil, err
		}
		t.inventoryPodShape, t.planned = kept.Spec.JobTemplate.Spec.Template, planned.Spec.JobTemplate.Spec.Template
		return &t, nil
	}
	var kept struct {
		Spec struct {
			Template inventoryPodShape `json:"template"`
		} `json:"spec"`
	}
	var planned struct {
		Spec struct {
			Template plannedPodShape `json:"template"`
		} `json:"spec"`
	}
	if err := d.Decode(&kept); err != nil {
		return nil, err
	}
	if err := d.Decode(&planned); err != nil {
		return nil, err
	}
	t.inventoryPodShape, t.planned = kept.Spec.Template, planned.Spec.Template
	return &t, nil
}

// decodePlannedPod reads a pod that is to be created.
func decodePlannedPod(d *manifest.Document, namespace string) (*corev1.Pod, error) {
	var t template
	if err := d.Decode(&t.inventoryPodShape); err != nil {
		return nil, err
	}
	if err := d.Decode(&t.planned); err != nil {
		return nil, err
	}
	pod := t.pod()
	if pod.Name == "" {
		return nil, d.Fail(errNoName)
	}
	pod.Namespace = orDefault(pod.Namespace, namespace)
	return pod, nil
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// own adds the controller that a pod of a workload has.
func own(pod *corev1.Pod, of workloadKind, name string) {
	yes := true
	owner := metav1.OwnerReference{APIVersion: strings.TrimPrefix(of.group+"/v1", "/"), Kind: of.kind, Name: name, Controller: &yes}
	pod.Labels = nil
	switch of.kind {
	case "Deployment":
		owner.Kind, owner.Name = "ReplicaSet", name+"-0"
		pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "0"}
	case "CronJob":
		owner.Kind, owner.Name = "Job", name+"-0"
	}
	pod.OwnerReferences = []metav1.OwnerReference{owner}
}

// daemonTolerations are those that the controller of DaemonSets adds.
//
// Source: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
func daemonTolerations(hostNetwork bool) []corev1.Toleration {
	add := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	all := []corev1.Toleration{
		add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule), add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule), add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if hostNetwork {
		all = append(all, add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return all
}

// admit does to a pod what the API server's admission of service accounts does.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#serviceaccount
func (s *State) admit(pod *corev1.Pod) {
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
	}
	account := inventory.Name{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}
	mounts := s.Inventory.Mounts(account)
	if own := pod.Spec.AutomountServiceAccountToken; own != nil {
		mounts = *own
	}
	if mounts {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			}},
		}})
	}
}
