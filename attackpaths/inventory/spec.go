package inventory

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// generatedToken begins the names of the volumes that the API server adds to pods.
const generatedToken = "kube-api-access-"

// specReader reads what the spec of a pod gives to its containers and its node, and where it says so.
type specReader struct {
	*Template
	pod  string
	spec *corev1.PodSpec
	// places are where the volumes are in the pod's template, -1 for volumes that it does not have.
	places []int
}

// read fills the template of a pod. Fields are in an order in which the changes can be made one after the other: of a list, the
// last entry first.
func (t *Template) read(pod *corev1.Pod) {
	r := &specReader{Template: t, pod: pod.Name, spec: &pod.Spec}
	r.place()
	r.eachContainer(r.container)
	for i := range r.spec.Volumes {
		r.volume(i)
	}
	for i, s := range r.spec.ImagePullSecrets {
		r.PullSecrets = append(r.PullSecrets, s.Name)
		r.entry(Field{Gives: GivesNodeSecret, Secret: s.Name}, "/imagePullSecrets", i, "/name", s.Name)
	}
	if podHostProcess(r.spec) {
		r.turnOff(Field{Path: "/securityContext/windowsOptions/hostProcess", Value: "false"})
	}
	if r.spec.HostPID {
		r.escape("the pod sees the processes of its node (hostPID)", TakesNode, dependsOnRuntime)
		r.turnOff(Field{Path: "/hostPID"})
	}
	if r.spec.HostNetwork {
		r.escape("the pod is in the network of its node (hostNetwork)", TakesNode, "services that trust callers from the node itself")
		r.turnOff(Field{Path: "/hostNetwork"})
	}
	slices.SortStableFunc(r.Fields, Field.compare)
	if t.Fields = slices.Clip(t.Fields); t.Mirror {
		t.Fields = nil
	}
	t.Secrets, t.PullSecrets, t.Audiences = distinct(t.Secrets), distinct(t.PullSecrets), sorted(t.Audiences)
	t.Escapes, t.HostPathsNotFollowed, t.mounts = sortedEscapes(t.Escapes), sorted(t.HostPathsNotFollowed), slices.Clip(t.mounts)
}

// distinct interns, sorts and drops repetitions and empty names.
func distinct(names []string) []string {
	return sorted(slices.DeleteFunc(names, func(s string) bool { return s == "" }))
}

func sorted(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	for i := range values {
		values[i] = intern(values[i])
	}
	slices.Sort(values)
	return slices.Clip(slices.Compact(values))
}

// place counts the volumes that the template has: the API server adds volumes for tokens, and the
// controller of a StatefulSet volumes for its claims.
func (r *specReader) place() {
	next := 0
	for i := range r.spec.Volumes {
		v := &r.spec.Volumes[i]
		claim := v.PersistentVolumeClaim
		if strings.HasPrefix(v.Name, generatedToken) ||
			r.Workload.Resource == "statefulsets" && claim != nil && claim.ClaimName == v.Name+"-"+r.pod {
			r.places = append(r.places, -1)
			continue
		}
		r.places = append(r.places, next)
		next++
	}
}

// escape notes a way out of the containers.
func (r *specReader) escape(means string, effect Effect, dependsOn ...string) {
	r.Escapes = append(r.Escapes, Escape{intern(means), intern(conditions(dependsOn...)), effect})
}

func (r *specReader) add(f Field) {
	f.Path, f.Secret = intern(f.Path), intern(f.Secret)
	r.Fields = append(r.Fields, f)
}

// turnOff adds a field of the whole pod that is true and gives a right over the host.
func (r *specReader) turnOff(f Field) {
	f.Gives, f.Checks = GivesHost, []Check{{f.Path, "true"}}
	r.add(f)
}

// entry adds the removal of an entry of a list that is known by one of its fields.
func (r *specReader) entry(f Field, list string, place int, field, value string) {
	f.Path = fmt.Sprintf("%s/%d", list, place)
	f.Checks = append(slices.Clip(f.Checks), Check{intern(f.Path + field), quote(value)})
	r.add(f)
}

func quote(s string) string { return intern(strconv.Quote(s)) }

// eachContainer visits all kinds of containers, with the start of their fields.
func (r *specReader) eachContainer(do func(c *corev1.Container, f Field)) {
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

// container reads what a container has of its own. F is the container.
func (r *specReader) container(c *corev1.Container, f Field) {
	path, name := f.Path, "container "+c.Name
	user, namespace := userOf(r.spec, c), ""
	if users := r.spec.HostUsers; users != nil && !*users {
		namespace = dependsOnNamespace
	}
	host, secret := f, f
	host.Gives, secret.Gives = GivesHost, GivesSecret
	if own := hostProcess(c); value(own) || own == nil && podHostProcess(r.spec) {
		r.escape(name+" is a process of its node (hostProcess)", TakesNode)
		if own != nil {
			field := host
			field.Path, field.Value = path+"/securityContext/windowsOptions/hostProcess", "false"
			r.add(field)
		}
	}
	if value(value(c.SecurityContext).Privileged) {
		r.escape(name+" is privileged", TakesNode, user, namespace)
		field := host
		field.Path, field.Value = path+"/securityContext/privileged", "false"
		r.add(field)
	}
	for i, capability := range added(c) {
		means := name + " has the capability " + string(capability)
		if !slices.Contains(powerful, capability) {
			if capability != "SYS_PTRACE" || !r.spec.HostPID {
				continue
			}
			means += " and sees the processes of its node"
		}
		r.escape(means, TakesNode, cmp.Or(user, dependsOnRuntime), namespace)
		r.entry(host, path+"/securityContext/capabilities/add", i, "", string(c.SecurityContext.Capabilities.Add[i]))
	}
	for i, m := range c.VolumeMounts {
		read := mount{container: intern(c.Name), user: user, readOnly: m.ReadOnly, subPath: m.SubPath, anyFolder: m.SubPathExpr != ""}
		if r.mount(read, m.Name) {
			r.entry(host, path+"/volumeMounts", i, "/name", m.Name)
		}
	}
	for i, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			r.secretIn(secret, path+"/env", i, "/valueFrom/secretKeyRef/name", e.ValueFrom.SecretKeyRef.Name)
		}
	}
	for i, e := range c.EnvFrom {
		if e.SecretRef != nil {
			r.secretIn(secret, path+"/envFrom", i, "/secretRef/name", e.SecretRef.Name)
		}
	}
}

// secretIn reads an entry of a list that names a secret.
func (r *specReader) secretIn(f Field, list string, place int, field, name string) {
	r.Secrets = append(r.Secrets, name)
	f.Secret = name
	r.entry(f, list, place, field, name)
}

// mount reads a mount of a volume, and reports whether it is of a folder of the host that gives something.
func (r *specReader) mount(m mount, volume string) (gives bool) {
	i := slices.IndexFunc(r.spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	if i < 0 {
		return false
	}
	switch v := &r.spec.Volumes[i]; {
	case v.HostPath != nil:
		ways, unknown := m.of(v.HostPath.Path, "")
		for _, way := range ways {
			r.escape(way.Means, way.Effect, way.DependsOn)
		}
		if unknown != "" {
			r.HostPathsNotFollowed = append(r.HostPathsNotFollowed, unknown)
		}
		if hasKeys(path.Join(v.HostPath.Path, m.subPath)) {
			r.ControlPlaneDependsOn = dependsOnKeys
		}
		return len(ways) > 0
	case v.Ephemeral != nil:
		m.claim, m.after = intern(v.Name), true
	case v.PersistentVolumeClaim == nil:
		return false
	case v.PersistentVolumeClaim.ClaimName == v.Name+"-"+r.pod:
		m.claim, m.before = intern(v.Name), true
	default:
		m.claim = intern(v.PersistentVolumeClaim.ClaimName)
	}
	r.mounts = append(r.mounts, m)
	return false
}

// volume reads what a volume gives.
func (r *specReader) volume(i int) {
	v := &r.spec.Volumes[i]
	r.HostPath = r.HostPath || v.HostPath != nil
	if v.PersistentVolumeClaim != nil {
		r.wholeVolume(i, Field{Gives: GivesClaim, Secret: v.PersistentVolumeClaim.ClaimName})
	}
	if v.Ephemeral != nil {
		r.wholeVolume(i, Field{Gives: GivesClaim, Secret: v.Name})
	}
	if v.Secret != nil {
		r.Secrets = append(r.Secrets, v.Secret.SecretName)
		r.wholeVolume(i, Field{Gives: GivesSecret, Secret: v.Secret.SecretName})
	}
	if name := nodeSecret(&v.VolumeSource); name != "" {
		r.wholeVolume(i, Field{Gives: GivesNodeSecret, Secret: name})
	}
	if v.Projected == nil {
		return
	}
	list := fmt.Sprintf("/volumes/%d/projected/sources", r.places[i])
	for j, s := range v.Projected.Sources {
		f := Field{Gives: GivesToken}
		switch {
		case s.Secret != nil:
			f.Gives, f.Secret = GivesSecret, s.Secret.Name
			r.Secrets = append(r.Secrets, s.Secret.Name)
		case s.ServiceAccountToken != nil:
			r.Audiences = append(r.Audiences, s.ServiceAccountToken.Audience)
		default:
			continue
		}
		switch {
		case r.places[i] < 0 && f.Gives == GivesToken:
			r.add(Field{Gives: GivesToken, Path: "/automountServiceAccountToken", Value: "false"})
		case len(v.Projected.Sources) == 1:
			r.wholeVolume(i, f)
		case r.places[i] >= 0:
			f.Path, f.Checks = fmt.Sprintf("%s/%d", list, j), []Check{{fmt.Sprintf("/volumes/%d/name", r.places[i]), quote(v.Name)}}
			if s.Secret != nil {
				f.Checks = append(f.Checks, Check{f.Path + "/secret/name", quote(s.Secret.Name)})
			}
			r.add(f)
		}
	}
}

// wholeVolume adds the removal of a volume that the template has, and of its mounts.
func (r *specReader) wholeVolume(i int, f Field) {
	if r.places[i] < 0 {
		return
	}
	name := r.spec.Volumes[i].Name
	r.entry(f, "/volumes", r.places[i], "/name", name)
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

// nodeSecret is the secret that a kubelet reads to mount a volume; empty if there is none.
func nodeSecret(v *corev1.VolumeSource) string {
	var ref *corev1.LocalObjectReference
	switch {
	case v.AzureFile != nil:
		return v.AzureFile.SecretName
	case v.CephFS != nil:
		ref = v.CephFS.SecretRef
	case v.Cinder != nil:
		ref = v.Cinder.SecretRef
	case v.FlexVolume != nil:
		ref = v.FlexVolume.SecretRef
	case v.RBD != nil:
		ref = v.RBD.SecretRef
	case v.ScaleIO != nil:
		ref = v.ScaleIO.SecretRef
	case v.ISCSI != nil:
		ref = v.ISCSI.SecretRef
	case v.StorageOS != nil:
		ref = v.StorageOS.SecretRef
	case v.CSI != nil:
		ref = v.CSI.NodePublishSecretRef
	}
	if ref == nil {
		return ""
	}
	return ref.Name
}
