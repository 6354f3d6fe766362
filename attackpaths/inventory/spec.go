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
	pod     string
	spec    *corev1.PodSpec
	volumes []podVolume
	// init is true while a container is read that ends before the other ones start.
	init bool
}

// podVolume is a volume of a pod.
type podVolume struct {
	*corev1.Volume
	// place is where the volume is in the pod's template; -1 if the template does not have it.
	place int
	// claim is the volume's claim, as in a mount; empty if there is none.
	claim string
	// gives is what is taken away with the volume and its mounts; zero if there is nothing.
	gives Field
}

// read fills the template of a pod. Fields are in an order in which the changes can be made one after the other: of a list, the
// last entry first.
func (t *Template) read(pod *corev1.Pod) {
	r := &specReader{Template: t, pod: pod.Name, spec: &pod.Spec}
	r.readVolumes()
	for i := range r.spec.InitContainers {
		c := &r.spec.InitContainers[i]
		r.init = value(c.RestartPolicy) != corev1.ContainerRestartPolicyAlways
		r.container(c, fmt.Sprint("/initContainers/", i), false)
	}
	r.init = false
	for i := range r.spec.Containers {
		r.container(&r.spec.Containers[i], fmt.Sprint("/containers/", i), false)
	}
	for i := range r.spec.EphemeralContainers {
		c := corev1.Container(r.spec.EphemeralContainers[i].EphemeralContainerCommon)
		r.container(&c, fmt.Sprint("/ephemeralContainers/", i), true)
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
	r.sortFields()
	if t.Fields = slices.Clip(t.Fields); t.Mirror {
		t.Fields = nil
	}
	t.Secrets, t.VolumeSecrets = distinct(slices.Concat(t.Secrets, t.VolumeSecrets)), distinct(t.VolumeSecrets)
	t.PullSecrets, t.Audiences = distinct(t.PullSecrets), sorted(t.Audiences)
	t.Escapes, t.HostPathsNotFollowed, t.mounts = sortedEscapes(t.Escapes), sorted(t.HostPathsNotFollowed), slices.Clip(t.mounts)
}

// sortFields puts what lies inside of something else before that, and later entries of lists, which are read later, before earlier
// ones.
func (r *specReader) sortFields() {
	slices.Reverse(r.Fields)
	slices.SortStableFunc(r.Fields, func(f, g Field) int {
		return cmp.Or(
			cmp.Compare(strings.Count(g.Path, "/"), strings.Count(f.Path, "/")), cmp.Compare(path.Dir(f.Path), path.Dir(g.Path)),
		)
	})
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

// escape notes a way out of the containers.
func (r *specReader) escape(means string, effect Effect, dependsOn ...string) {
	r.Escapes = append(r.Escapes, Escape{intern(means), intern(conditions(dependsOn...)), effect, r.init})
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

// container reads what a container has of its own, and what it mounts.
func (r *specReader) container(c *corev1.Container, at string, added bool) {
	user, namespace := userOf(r.spec, c), ""
	if users := r.spec.HostUsers; users != nil && !*users {
		namespace = dependsOnNamespace
	}
	field := func(gives Gives, secret string) Field {
		return Field{Gives: gives, Secret: secret, Checks: []Check{{intern(at + "/name"), quote(c.Name)}}, Added: added}
	}
	turnOff := func(path string) {
		f := field(GivesHost, "")
		f.Path, f.Value = at+path, "false"
		r.add(f)
	}
	name := "container " + c.Name
	own := hostProcess(c)
	if value(own) || own == nil && podHostProcess(r.spec) {
		r.escape(name+" is a process of its node (hostProcess)", TakesNode)
		if own != nil {
			turnOff("/securityContext/windowsOptions/hostProcess")
		}
	}
	if value(value(c.SecurityContext).Privileged) {
		r.escape(name+" is privileged", TakesNode, user, namespace)
		turnOff("/securityContext/privileged")
	}
	for i, capability := range value(value(c.SecurityContext).Capabilities).Add {
		means, known := name+" has the capability "+shortName(capability), slices.Contains(powerful, shortName(capability))
		if !known && shortName(capability) == "SYS_PTRACE" && r.spec.HostPID {
			means, known = means+" and sees the processes of its node", true
		}
		if known {
			r.escape(means, TakesNode, cmp.Or(user, dependsOnRuntime), namespace)
			r.entry(field(GivesHost, ""), at+"/securityContext/capabilities/add", i, "", string(capability))
		}
	}
	for i, m := range c.VolumeMounts {
		volume := slices.IndexFunc(r.volumes, func(v podVolume) bool { return v.Name == m.Name })
		if volume < 0 {
			continue
		}
		v := &r.volumes[volume]
		if v.gives.Gives != 0 {
			r.entry(field(v.gives.Gives, v.gives.Secret), at+"/volumeMounts", i, "/name", m.Name)
		}
		read := mount{
			container: intern(c.Name), init: r.init, user: user, readOnly: m.ReadOnly, subPath: m.SubPath, anyFolder: m.SubPathExpr != "",
			claim: v.claim,
		}
		if v.claim != "" {
			r.mounts = append(r.mounts, read)
		} else if v.HostPath != nil && r.hostPath(&read, v.HostPath.Path) {
			r.entry(field(GivesHost, ""), at+"/volumeMounts", i, "/name", m.Name)
		}
	}
	for i, e := range c.Env {
		if ref := value(e.ValueFrom).SecretKeyRef; ref != nil {
			r.Secrets = append(r.Secrets, ref.Name)
			r.entry(field(GivesSecret, ref.Name), at+"/env", i, "/valueFrom/secretKeyRef/name", ref.Name)
		}
	}
	for i, e := range c.EnvFrom {
		if e.SecretRef != nil {
			r.Secrets = append(r.Secrets, e.SecretRef.Name)
			r.entry(field(GivesSecret, e.SecretRef.Name), at+"/envFrom", i, "/secretRef/name", e.SecretRef.Name)
		}
	}
}

// hostPath reads a mount of a folder of the host, and reports whether it gives something.
func (r *specReader) hostPath(m *mount, folder string) (gives bool) {
	ways, unknown := m.of(folder, "")
	for _, way := range ways {
		r.escape(way.Means, way.Effect, way.DependsOn)
	}
	if unknown != "" {
		r.HostPathsNotFollowed = append(r.HostPathsNotFollowed, unknown)
	}
	if hasKeys(path.Join(folder, m.subPath)) {
		r.ControlPlaneDependsOn = dependsOnKeys
	}
	return len(ways) > 0
}

// readVolumes reads what the volumes give. The API server adds volumes for tokens to a pod, and the controller of a StatefulSet
// volumes for its claims: the template does not have these.
func (r *specReader) readVolumes() {
	next := 0
	for i := range r.spec.Volumes {
		v := podVolume{Volume: &r.spec.Volumes[i], place: next, claim: value(r.spec.Volumes[i].PersistentVolumeClaim).ClaimName}
		ofPod := v.claim != "" && v.claim == v.Name+"-"+r.pod
		switch {
		case v.Ephemeral != nil:
			v.claim = thePod + "-" + v.Name
		case ofPod:
			v.claim = v.Name + "-" + thePod
		}
		if strings.HasPrefix(v.Name, generatedToken) || ofPod && r.Workload.Resource == "statefulsets" {
			v.place = -1
		} else {
			next++
		}
		v.claim, r.HostPath = intern(v.claim), r.HostPath || v.HostPath != nil
		if gives := r.given(&v); gives.Gives != 0 && v.place >= 0 {
			v.gives = gives
			r.entry(gives, "/volumes", v.place, "/name", v.Name)
		}
		r.volumes = append(r.volumes, v)
	}
}

// given is what is taken away with a whole volume.
func (r *specReader) given(v *podVolume) Field {
	nodes := nodeSecret(&v.VolumeSource)
	switch {
	case v.claim != "":
		return Field{Gives: GivesClaim, Secret: v.claim}
	case v.Secret != nil:
		r.VolumeSecrets = append(r.VolumeSecrets, v.Secret.SecretName)
		return Field{Gives: GivesSecret, Secret: v.Secret.SecretName}
	case nodes != "":
		return Field{Gives: GivesNodeSecret, Secret: nodes}
	}
	for j, s := range value(v.Projected).Sources {
		f := Field{Gives: GivesToken}
		switch {
		case s.Secret != nil:
			f.Gives, f.Secret = GivesSecret, s.Secret.Name
			r.VolumeSecrets = append(r.VolumeSecrets, s.Secret.Name)
		case s.ServiceAccountToken != nil:
			r.Audiences = append(r.Audiences, s.ServiceAccountToken.Audience)
		default:
			continue
		}
		switch {
		case v.place < 0 && f.Gives == GivesToken:
			r.add(Field{Gives: GivesToken, Path: "/automountServiceAccountToken", Value: "false"})
		case len(v.Projected.Sources) == 1:
			return f
		case v.place >= 0:
			f.Path = fmt.Sprintf("/volumes/%d/projected/sources/%d", v.place, j)
			f.Checks = []Check{{fmt.Sprintf("/volumes/%d/name", v.place), quote(v.Name)}}
			if s.Secret != nil {
				f.Checks = append(f.Checks, Check{f.Path + "/secret/name", quote(s.Secret.Name)})
			}
			r.add(f)
		}
	}
	return Field{}
}

// nodeSecret is the secret that a kubelet reads to mount a volume; empty if there is none.
func nodeSecret(v *corev1.VolumeSource) string {
	ref := cmp.Or(
		value(v.CephFS).SecretRef, value(v.Cinder).SecretRef, value(v.FlexVolume).SecretRef, value(v.RBD).SecretRef,
		value(v.ScaleIO).SecretRef, value(v.ISCSI).SecretRef, value(v.StorageOS).SecretRef, value(v.CSI).NodePublishSecretRef,
	)
	return cmp.Or(value(v.AzureFile).SecretName, value(ref).Name)
}
