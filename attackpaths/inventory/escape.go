package inventory

import (
	"cmp"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Escape is a way from the containers of a pod to what is on its node.
type Escape struct {
	// Means names the field that makes it possible, for people: "container agent is
	// privileged".
	Means string
	// DependsOn is what else decides; empty for a way that is certain.
	DependsOn string
	// Effect is what the way gives.
	Effect Effect
}

// What decides about escapes that are not certain.
const (
	dependsOnUser      = "whether the image runs as root"
	dependsOnOtherUser = "what a user other than root can do there"
	dependsOnRuntime   = "the container runtime's confinement (seccomp, AppArmor, SELinux)"
	dependsOnNamespace = "what root in the pod's own user namespace can do there"
	dependsOnSandbox   = "what the sandbox of the pod's runtime class lets through"
	dependsOnClass     = "which runtime the pod's runtime class names, of which nothing is known"
	dependsOnFolder    = "which folder it is"
)

// powerful are capabilities with which root in a container takes over the host unless the
// runtime confines it. Source: capabilities(7).
var powerful = []corev1.Capability{"ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF"}

// sandboxes are parts of the names of handlers of runtime classes that run pods in a virtual machine or on a kernel of their own.
var sandboxes = []string{"kata", "gvisor", "runsc", "firecracker", "hyperv"}

// sandboxed reports whether the handler of a runtime class has the name of a sandbox.
func sandboxed(handler string) bool {
	return slices.ContainsFunc(sandboxes, func(s string) bool { return strings.Contains(strings.ToLower(handler), s) })
}

// userNamespace says what decides about root in a pod with a user namespace of its own; empty for others.
func userNamespace(spec *corev1.PodSpec) string {
	if spec.HostUsers != nil && !*spec.HostUsers {
		return dependsOnNamespace
	}
	return ""
}

// escapes lists the ways out of a pod's containers.
func escapes(spec *corev1.PodSpec) []Escape {
	var all []Escape
	namespace := userNamespace(spec)
	add := func(means string, effect Effect, dependsOn ...string) {
		all = append(all, Escape{intern(means), intern(conditions(dependsOn...)), effect})
	}
	eachContainer(spec, func(c *corev1.Container) {
		user := userOf(spec, c)
		if hostProcess(spec, c) {
			add("container "+c.Name+" is a process of its node (hostProcess)", TakesNode)
		}
		if privileged(c) {
			add("container "+c.Name+" is privileged", TakesNode, user, namespace)
		}
		for _, capability := range added(c) {
			switch {
			case slices.Contains(powerful, capability):
				add("container "+c.Name+" has the capability "+string(capability), TakesNode, cmp.Or(user, dependsOnRuntime), namespace)
			case capability == "SYS_PTRACE" && spec.HostPID:
				add("container "+c.Name+" has the capability SYS_PTRACE and sees the processes of its node", TakesNode,
					cmp.Or(user, dependsOnRuntime), namespace)
			}
		}
		for _, mount := range c.VolumeMounts {
			means, grants, _ := hostMount(spec, c, mount)
			for _, g := range grants {
				add(means, g.effect, user, g.dependsOn)
			}
		}
	})
	if spec.HostPID {
		add("the pod sees the processes of its node (hostPID)", TakesNode, dependsOnRuntime)
	}
	if spec.HostNetwork {
		add("the pod is in the network of its node (hostNetwork)", TakesNode, "services that trust callers from the node itself")
	}
	return sortedEscapes(all)
}

// sortedEscapes puts what is certain first, then what gives more. A certain way to the node gives all that is on it.
func sortedEscapes(all []Escape) []Escape {
	slices.SortStableFunc(all, func(a, b Escape) int { return a.grant().compare(b.grant()) })
	if len(all) > 0 && all[0].grant() == (grant{TakesNode, ""}) {
		all = slices.DeleteFunc(all, func(e Escape) bool { return e.Effect != TakesNode })
	}
	return slices.Clip(slices.Compact(all))
}

func (e Escape) grant() grant { return grant{e.Effect, e.DependsOn} }

// conditions joins conditions, of which any may be empty.
func conditions(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c == "" }), "; ")
}

// hostProcess reports whether a container of Windows runs as a process of its node.
func hostProcess(spec *corev1.PodSpec, c *corev1.Container) bool {
	if c.SecurityContext != nil {
		if is := hostProcessOf(c.SecurityContext.WindowsOptions); is != nil {
			return *is
		}
	}
	return podHostProcess(spec)
}

func podHostProcess(spec *corev1.PodSpec) bool {
	if spec.SecurityContext == nil {
		return false
	}
	is := hostProcessOf(spec.SecurityContext.WindowsOptions)
	return is != nil && *is
}

func hostProcessOf(o *corev1.WindowsSecurityContextOptions) *bool {
	if o == nil {
		return nil
	}
	return o.HostProcess
}

func privileged(c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

func added(c *corev1.Container) []corev1.Capability {
	if c.SecurityContext == nil || c.SecurityContext.Capabilities == nil {
		return nil
	}
	var all []corev1.Capability
	for _, capability := range c.SecurityContext.Capabilities.Add {
		all = append(all, corev1.Capability(strings.TrimPrefix(strings.ToUpper(string(capability)), "CAP_")))
	}
	return all
}

// userOf says what decides whether a container has the rights of root; empty if nothing in
// the pod keeps it from having them. A pod that names no user is taken to run as the image's
// usual one, root.
func userOf(spec *corev1.PodSpec, c *corev1.Container) string {
	var user *int64
	var nonRoot *bool
	if s := spec.SecurityContext; s != nil {
		user, nonRoot = s.RunAsUser, s.RunAsNonRoot
	}
	if s := c.SecurityContext; s != nil {
		user, nonRoot = cmp.Or(s.RunAsUser, user), cmp.Or(s.RunAsNonRoot, nonRoot)
	}
	switch {
	case user != nil && *user != 0:
		return dependsOnOtherUser
	case user == nil && nonRoot != nil && *nonRoot:
		return dependsOnUser
	}
	return ""
}

// hostMount says what a mount of a folder of the host gives. Unknown is the folder if the table has no row for it.
func hostMount(spec *corev1.PodSpec, c *corev1.Container, mount corev1.VolumeMount) (means string, grants []grant, unknown string) {
	i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if i < 0 || spec.Volumes[i].HostPath == nil {
		return "", nil, ""
	}
	m := folderMount{readOnly: mount.ReadOnly, subPath: mount.SubPath, anyFolder: mount.SubPathExpr != ""}
	return m.of(c.Name, spec.Volumes[i].HostPath.Path)
}

// notFollowed lists the mounted folders of the host for which the table has no row.
func notFollowed(spec *corev1.PodSpec) []string {
	var all []string
	eachContainer(spec, func(c *corev1.Container) {
		for _, mount := range c.VolumeMounts {
			if _, _, unknown := hostMount(spec, c, mount); unknown != "" {
				all = append(all, unknown)
			}
		}
	})
	return sorted(all)
}

// folderMount is a mount of a folder of the host.
type folderMount struct {
	readOnly bool
	subPath  string
	// anyFolder is true if a variable names the folder below the mounted one.
	anyFolder bool
}

// of says what the mount gives to a container.
func (m folderMount) of(container, folder string) (means string, grants []grant, unknown string) {
	if !isWindows(folder) {
		folder = path.Join(path.Clean("/"+folder), m.subPath)
	} else if m.subPath != "" {
		folder += "/" + m.subPath
	}
	access, suffix := both, ""
	if m.readOnly {
		access, suffix = reads, " (read only)"
	}
	grants, known := grantsOf(folder, access)
	if !known {
		unknown = folder + suffix
	}
	if m.readOnly && slices.ContainsFunc(grants, func(g grant) bool { return g.effect == TakesNode }) {
		suffix = "" // it is no protection
	}
	means = "container " + container + " mounts " + folder + " of its node" + suffix
	if m.anyFolder {
		means = "container " + container + " mounts a folder below " + folder + " of its node" + suffix
		for i := range grants {
			grants[i].dependsOn = conditions(dependsOnFolder, grants[i].dependsOn)
		}
	}
	return means, grants, unknown
}
