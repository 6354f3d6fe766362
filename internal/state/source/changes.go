package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

var errNoName = errors.New("metadata.name is empty")

// Changes are objects to add to a state, as kubectl apply would.
type Changes struct {
	added []addition
	// Skipped counts objects of other kinds, by kind and group.
	Skipped map[string]int
	// Origin says where the objects are from.
	Origin string
}

// addition is one object with its place.
type addition struct {
	object   object
	workload *workload
	file     string
	line     int
}

// ChangeOptions are options for reading changes.
type ChangeOptions struct {
	// Stdin is the input for the path "-".
	Stdin io.Reader
	// Progress, if set, is called from time to time, never concurrently.
	Progress func(manifest.Progress)
	// Namespace is the namespace of objects that name none.
	Namespace string
}

// ReadChanges reads manifests as [LoadFiles] does, and objects with pod templates too. The first invalid
// document ends it with a [manifest.Error].
func ReadChanges(ctx context.Context, paths []string, opts ChangeOptions) (*Changes, error) {
	files, err := manifest.Files(paths)
	if err != nil {
		return nil, err
	}
	c := &Changes{Skipped: map[string]int{}, Origin: render.Files(manifest.Names(files))}
	for _, file := range files {
		if err := c.read(ctx, file, opts); err != nil {
			return nil, err
		}
	}
	if len(c.added) == 0 && len(c.Skipped) == 0 {
		return nil, fmt.Errorf("no objects in %s, so that nothing would change: see whether what writes it has failed", c.Origin)
	}
	return c, nil
}

// additions are the decoded objects of a batch of documents.
type additions struct {
	objects []addition
	skipped []string
}

func (c *Changes) read(ctx context.Context, file manifest.File, opts ChangeOptions) error {
	read := manifest.Parallel[additions]{
		Stdin:  opts.Stdin,
		Decode: func(into *additions, d *manifest.Document) error { return into.decode(d, opts.Namespace) },
		Apply: func(a *additions) error {
			c.added = append(c.added, a.objects...)
			for _, kind := range a.skipped {
				c.Skipped[kind]++
			}
			return nil
		},
		Progress: func(stored int64) {
			if opts.Progress != nil {
				opts.Progress(manifest.Progress{Source: file.Name, Done: stored, Total: file.Size, Objects: len(c.added)})
			}
		},
	}
	return read.Read(ctx, file)
}

func (a *additions) decode(d *manifest.Document, namespace string) error {
	if err := d.CheckType(); err != nil {
		return err
	}
	if d.Group() == snapshotGroup {
		return d.Fail(errors.New("a snapshot is a whole state, not a change: name it with --from or --to"))
	}
	at := addition{file: d.File(), line: d.Line("metadata", "name")}
	if w, ok := workloadKindOf(d.Group(), d.Kind); ok {
		var err error
		if at.workload, err = decodeWorkload(d, w, namespace); err != nil {
			return err
		}
		a.objects = append(a.objects, at)
		return nil
	}
	k, kept := kindOf(d.Group(), d.Kind)
	if !kept {
		a.skipped = append(a.skipped, withGroup(d.Kind, d.Group()))
		return d.Validate()
	}
	o, err := decodeAddition(d, k, namespace)
	if err != nil {
		return err
	}
	at.object = o
	a.objects = append(a.objects, at)
	return nil
}

func decodeAddition(d *manifest.Document, k kind, namespace string) (object, error) {
	if versions := k.describe().versions; !slices.Contains(versions, d.Version()) {
		return object{}, unsupportedVersion(d, versions)
	}
	if k == kindPod {
		pod, err := decodePlannedPod(d, namespace)
		return object{kind: k, api: pod, position: d.Position()}, err
	}
	o, err := decodeDocument(d, k, true, namespace)
	if err != nil {
		return object{}, err
	}
	if ns, ok := o.(*corev1.Namespace); ok {
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	return object{kind: k, api: o, position: d.Position()}, nil
}

// Len is how many objects of known kinds there are.
func (c *Changes) Len() int { return len(c.added) }

// place renders where an object is, for messages.
func (a *addition) place() string { return fmt.Sprintf("%s:%d", a.file, a.line) }

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
	// claims are the claims that the controller of a StatefulSet makes for the pod.
	claims []*corev1.PersistentVolumeClaim
}

func (w *workload) identity() inventory.Workload {
	return inventory.Workload{Group: w.group, Resource: w.resource, Name: w.pod.Annotations[workloadName]}
}

// workloadName is the annotation that carries the name of the workload until the pod is added.
const workloadName = "node-authorizer.io/workload"

// planned returns a pod as a template asks for it, trimmed, with requests and what else only matters until the API
// server has made a pod.
func planned(pod *corev1.Pod) *corev1.Pod {
	asked := pod.Spec
	init, containers := requesting(asked.InitContainers), requesting(asked.Containers)
	templates := map[string]*corev1.PersistentVolumeClaimTemplate{}
	for _, v := range asked.Volumes {
		if v.Ephemeral != nil {
			templates[v.Name] = v.Ephemeral.VolumeClaimTemplate
		}
	}
	trim(pod, true)
	s := &pod.Spec
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Ephemeral != nil {
			v.Ephemeral.VolumeClaimTemplate = templates[v.Name]
		}
	}
	s.AutomountServiceAccountToken, s.Overhead, s.Resources = asked.AutomountServiceAccountToken, asked.Overhead, asked.Resources
	s.InitContainers, s.Containers = withRequests(s.InitContainers, init), withRequests(s.Containers, containers)
	return pod
}

// addClaims adds the volumes that the controller of a StatefulSet adds to a pod, and returns their claims. They replace volumes
// of the template that have their names.
func addClaims(spec *corev1.PodSpec, pod string, templates []corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for i := range templates {
		claim := &templates[i]
		volume := claim.Name
		claim.Name += "-" + pod
		spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: source})
		claims = append(claims, claim)
	}
	return claims
}

// ephemeralClaims are the claims that the API server's controllers make for the ephemeral volumes of a new pod.
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

// requesting keeps what containers request.
func requesting(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		c := &containers[i]
		kept = append(kept, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return kept
}

// withRequests adds what containers request to the kept containers, in their order.
func withRequests(kept, all []corev1.Container) []corev1.Container {
	for i := range all {
		at := slices.IndexFunc(kept, func(k corev1.Container) bool { return k.Name == all[i].Name })
		if at >= 0 {
			resources, restarts := all[i].Resources, all[i].RestartPolicy
			all[i] = kept[at]
			all[i].Resources, all[i].RestartPolicy = resources, restarts
		}
	}
	return all
}

// decodeWorkload reads an object with a pod template.
func decodeWorkload(d *manifest.Document, of workloadKind, namespace string) (*workload, error) {
	if d.Version() != "v1" {
		return nil, d.Fail(fmt.Errorf("apiVersion %s is not supported; the supported version is %s",
			d.APIVersion, strings.TrimPrefix(of.group+"/v1", "/")))
	}
	var w struct {
		Metadata identity `json:"metadata"`
		Spec     struct {
			Template    corev1.PodTemplateSpec `json:"template"`
			JobTemplate struct {
				Spec struct {
					Template corev1.PodTemplateSpec `json:"template"`
				} `json:"spec"`
			} `json:"jobTemplate"`
			VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
		} `json:"spec"`
	}
	if err := d.Decode(&w); err != nil {
		return nil, err
	}
	t := &w.Spec.Template
	if of.kind == "CronJob" {
		t = &w.Spec.JobTemplate.Spec.Template
	}
	meta := w.Metadata
	claims := addClaims(&t.Spec, plannedName(meta.Name), w.Spec.VolumeClaimTemplates)
	pod := planned(&corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec})
	pod.Namespace, pod.Name = orDefault(meta.Namespace, namespace), plannedName(meta.Name)
	if meta.Name == "" {
		return nil, d.Fail(errNoName)
	}
	pod.Annotations = map[string]string{workloadName: meta.Name}
	own(pod, of, meta.Name)
	if of.kind == "DaemonSet" {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, daemonTolerations(pod.Spec.HostNetwork)...)
	}
	return &workload{of, pod, claims}, nil
}

// plannedName is a name that no pod can have.
func plannedName(workload string) string { return workload + "-*" }

// decodePlannedPod reads a pod that a change creates.
func decodePlannedPod(d *manifest.Document, namespace string) (*corev1.Pod, error) {
	var decoded corev1.Pod
	if err := d.Decode(&decoded); err != nil {
		return nil, err
	}
	pod := planned(&decoded)
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

// daemonTolerations are the tolerations that the controller of DaemonSets adds.
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
