package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Gives is what a field of a pod's spec gives to its containers or its node.
type Gives uint8

// What fields give.
const (
	// GivesToken is a token of the pod's account.
	GivesToken Gives = 1 + iota
	// GivesSecret is the content of a secret, to the containers.
	GivesSecret
	// GivesNodeSecret is the content of a secret, to the node alone.
	GivesNodeSecret
	// GivesHost is a right over the host.
	GivesHost
	// GivesClaim is the volume of a claim, to the containers. It may be a folder of the host.
	GivesClaim
)

// Field is a change of a pod's spec that takes something from its containers or its node.
type Field struct {
	Gives Gives
	// Secret is the name of the secret, or of the claim: of claims that are made for each pod, that of the volume.
	Secret string
	// Path is a JSON pointer into the spec of the template that the pod is made from. What is
	// there is removed, unless Value is set: then that is put there, as JSON.
	Path, Value string
	// Checks are what the template has to have so that Path is what it is in the pod: JSON
	// pointers, each with the JSON value that is expected there.
	Checks []Check
	// Added is true for what only the pod has: it was added when the pod ran.
	Added bool
}

// Check is a value that is expected.
type Check struct{ Path, Value string }

// generatedToken begins the names of the volumes that the API server adds to pods.
const generatedToken = "kube-api-access-"

// fieldReader collects the fields of one pod.
type fieldReader struct {
	spec *corev1.PodSpec
	// places are those of the volumes in the template, -1 for volumes that it does not have.
	places []int
	fields []Field
}

// fieldsOf lists what can be taken from a pod, in an order in which the changes can be made one
// after the other: of a list, the last entry first.
func fieldsOf(pod *corev1.Pod, workload Workload) []Field {
	r := &fieldReader{spec: &pod.Spec}
	r.place(pod.Name, workload)
	r.eachContainer(r.container)
	for i := range r.spec.Volumes {
		r.volume(i)
	}
	for i, s := range r.spec.ImagePullSecrets {
		r.entry(Field{Gives: GivesNodeSecret, Secret: s.Name}, "/imagePullSecrets", i, "/name", s.Name)
	}
	if podHostProcess(r.spec) {
		const field = "/securityContext/windowsOptions/hostProcess"
		r.add(Field{Gives: GivesHost, Path: field, Value: "false", Checks: []Check{{field, "true"}}})
	}
	if r.spec.HostPID {
		r.add(Field{Gives: GivesHost, Path: "/hostPID", Checks: []Check{{"/hostPID", "true"}}})
	}
	if r.spec.HostNetwork {
		r.add(Field{Gives: GivesHost, Path: "/hostNetwork", Checks: []Check{{"/hostNetwork", "true"}}})
	}
	slices.SortStableFunc(r.fields, Field.compare)
	return slices.Clip(r.fields)
}

// compare puts what lies inside of something else before that, and later entries of lists before
// earlier ones.
func (f Field) compare(g Field) int {
	list, place := splitPath(f.Path)
	otherList, otherPlace := splitPath(g.Path)
	return cmp.Or(
		cmp.Compare(strings.Count(g.Path, "/"), strings.Count(f.Path, "/")), cmp.Compare(list, otherList), cmp.Compare(otherPlace, place),
	)
}

// splitPath separates the last part of a path; place is -1 if it is not the place in a list.
func splitPath(path string) (list string, place int) {
	i := strings.LastIndexByte(path, '/')
	place, err := strconv.Atoi(path[i+1:])
	if err != nil {
		return path, -1
	}
	return path[:i], place
}

// place counts the volumes that the template has: the API server adds volumes for tokens, and the
// controller of a StatefulSet those of its claims.
func (r *fieldReader) place(pod string, workload Workload) {
	next := 0
	for i := range r.spec.Volumes {
		v := &r.spec.Volumes[i]
		claim := v.PersistentVolumeClaim
		if strings.HasPrefix(v.Name, generatedToken) ||
			workload.Resource == "statefulsets" && claim != nil && claim.ClaimName == v.Name+"-"+pod {
			r.places = append(r.places, -1)
			continue
		}
		r.places = append(r.places, next)
		next++
	}
}

func (r *fieldReader) add(f Field) {
	f.Path, f.Secret = intern(f.Path), intern(f.Secret)
	r.fields = append(r.fields, f)
}

// entry adds the removal of an entry of a list that is known by one of its fields.
func (r *fieldReader) entry(f Field, list string, place int, field, value string) {
	f.Path = fmt.Sprintf("%s/%d", list, place)
	f.Checks = append(slices.Clip(f.Checks), Check{intern(f.Path + field), quote(value)})
	r.add(f)
}

func quote(s string) string { return intern(strconv.Quote(s)) }

// eachContainer visits containers with the start of their fields.
func (r *fieldReader) eachContainer(do func(c *corev1.Container, f Field)) {
	visit := func(c *corev1.Container, list string, i int, added bool) {
		path := fmt.Sprintf("/%s/%d", list, i)
		do(c, Field{Path: path, Checks: []Check{{intern(path + "/name"), quote(c.Name)}}, Added: added})
	}
	for i := range r.spec.InitContainers {
		visit(&r.spec.InitContainers[i], "initContainers", i, false)
	}
	for i := range r.spec.Containers {
		visit(&r.spec.Containers[i], "containers", i, false)
	}
	for i := range r.spec.EphemeralContainers {
		c := corev1.Container(r.spec.EphemeralContainers[i].EphemeralContainerCommon)
		visit(&c, "ephemeralContainers", i, true)
	}
}

// container adds what a container has of its own. F is the container.
func (r *fieldReader) container(c *corev1.Container, f Field) {
	path := f.Path
	host, secret := f, f
	host.Gives, secret.Gives = GivesHost, GivesSecret
	if privileged(c) {
		field := host
		field.Path, field.Value = path+"/securityContext/privileged", "false"
		r.add(field)
	}
	if c.SecurityContext != nil && hostProcessOf(c.SecurityContext.WindowsOptions) != nil && hostProcess(r.spec, c) {
		field := host
		field.Path, field.Value = path+"/securityContext/windowsOptions/hostProcess", "false"
		r.add(field)
	}
	for i, capability := range added(c) {
		if slices.Contains(powerful, capability) || capability == "SYS_PTRACE" && r.spec.HostPID {
			r.entry(host, path+"/securityContext/capabilities/add", i, "", string(c.SecurityContext.Capabilities.Add[i]))
		}
	}
	for i, m := range c.VolumeMounts {
		if _, grants, _ := hostMount(r.spec, c, m); len(grants) > 0 {
			r.entry(host, path+"/volumeMounts", i, "/name", m.Name)
		}
	}
	for i, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			secret.Secret = e.ValueFrom.SecretKeyRef.Name
			r.entry(secret, path+"/env", i, "/valueFrom/secretKeyRef/name", e.ValueFrom.SecretKeyRef.Name)
		}
	}
	for i, e := range c.EnvFrom {
		if e.SecretRef != nil {
			secret.Secret = e.SecretRef.Name
			r.entry(secret, path+"/envFrom", i, "/secretRef/name", e.SecretRef.Name)
		}
	}
}

// volume adds what a volume gives.
func (r *fieldReader) volume(i int) {
	v := &r.spec.Volumes[i]
	if r.places[i] < 0 {
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, isToken) {
			r.add(Field{Gives: GivesToken, Path: "/automountServiceAccountToken", Value: "false"})
		}
		return
	}
	if v.PersistentVolumeClaim != nil {
		r.wholeVolume(i, Field{Gives: GivesClaim, Secret: v.PersistentVolumeClaim.ClaimName})
	}
	if v.Ephemeral != nil {
		r.wholeVolume(i, Field{Gives: GivesClaim, Secret: v.Name})
	}
	if v.Secret != nil {
		r.wholeVolume(i, Field{Gives: GivesSecret, Secret: v.Secret.SecretName})
	}
	for _, name := range nodeSecrets(&v.VolumeSource) {
		r.wholeVolume(i, Field{Gives: GivesNodeSecret, Secret: name})
	}
	if v.Projected == nil {
		return
	}
	list := fmt.Sprintf("/volumes/%d", r.places[i])
	named := []Check{{list + "/name", quote(v.Name)}}
	for j, s := range v.Projected.Sources {
		f := Field{Gives: GivesToken, Checks: named}
		switch {
		case s.Secret != nil:
			f.Gives, f.Secret = GivesSecret, s.Secret.Name
		case s.ServiceAccountToken == nil:
			continue
		}
		if len(v.Projected.Sources) == 1 {
			r.wholeVolume(i, f)
			continue
		}
		f.Path = fmt.Sprintf("%s/projected/sources/%d", list, j)
		if s.Secret != nil {
			f.Checks = append(slices.Clip(f.Checks), Check{f.Path + "/secret/name", quote(s.Secret.Name)})
		}
		r.add(f)
	}
}

func isToken(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }

// wholeVolume adds the removal of a volume and of its mounts.
func (r *fieldReader) wholeVolume(i int, f Field) {
	name := r.spec.Volumes[i].Name
	volume := f
	volume.Checks = nil
	r.entry(volume, "/volumes", r.places[i], "/name", name)
	r.eachContainer(func(c *corev1.Container, in Field) {
		mount := f
		mount.Checks, mount.Added = in.Checks, in.Added
		for j, m := range c.VolumeMounts {
			if m.Name == name {
				r.entry(mount, in.Path+"/volumeMounts", j, "/name", name)
			}
		}
	})
}

// nodeSecrets are those that a kubelet reads to mount a volume.
func nodeSecrets(v *corev1.VolumeSource) []string {
	var names []string
	local := func(ref *corev1.LocalObjectReference) {
		if ref != nil && ref.Name != "" {
			names = append(names, ref.Name)
		}
	}
	if v.AzureFile != nil {
		local(&corev1.LocalObjectReference{Name: v.AzureFile.SecretName})
	}
	if v.CephFS != nil {
		local(v.CephFS.SecretRef)
	}
	if v.Cinder != nil {
		local(v.Cinder.SecretRef)
	}
	if v.FlexVolume != nil {
		local(v.FlexVolume.SecretRef)
	}
	if v.RBD != nil {
		local(v.RBD.SecretRef)
	}
	if v.ScaleIO != nil {
		local(v.ScaleIO.SecretRef)
	}
	if v.ISCSI != nil {
		local(v.ISCSI.SecretRef)
	}
	if v.StorageOS != nil {
		local(v.StorageOS.SecretRef)
	}
	if v.CSI != nil {
		local(v.CSI.NodePublishSecretRef)
	}
	return names
}
