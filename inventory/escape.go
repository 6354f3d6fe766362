package inventory

import (
	"cmp"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Escape is a way from the containers of a pod to its node.
type Escape struct {
	// Means names the field that makes it possible, for people: "container agent is
	// privileged".
	Means string
	// DependsOn is what else decides; empty for a way that is certain.
	DependsOn string
}

// What decides about escapes that are not certain.
const (
	dependsOnUser    = "whether the image runs as root"
	dependsOnRuntime = "the container runtime's confinement (seccomp, AppArmor, SELinux)"
)

// hostPaths are folders of a node whose content gives the node: everything at or above them,
// and what is below those that end in a slash. Sources: the kubelet's, containerd's, CRI-O's
// and Docker's default paths.
var hostPaths = []string{
	"/boot", "/dev", "/etc/", "/home", "/opt/cni", "/proc", "/root/", "/run/containerd", "/run/crio", "/run/docker.sock",
	"/usr/", "/bin", "/sbin", "/lib", "/lib64", "/var/lib/containerd", "/var/lib/docker", "/var/lib/kubelet", "/var/lib/kubelet/pki",
	"/var/lib/kubelet/pods", "/var/lib/etcd", "/var/lib/rancher", "/var/lib/cloud", "/var/run/containerd", "/var/run/crio",
	"/var/run/docker.sock", "/var/spool/cron",
}

// readablePaths give the node's credentials or its pods' tokens to who can only read them.
var readablePaths = []string{
	"/var/lib/kubelet", "/var/lib/kubelet/pki", "/var/lib/kubelet/pods", "/etc/kubernetes", "/var/lib/etcd", "/var/lib/rancher",
}

// sockets take commands of who can connect, even through a mount that is read only.
var sockets = []string{
	"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/docker.sock",
	"/var/run/containerd/containerd.sock", "/var/run/crio/crio.sock", "/var/run/docker.sock",
}

// powerful are capabilities with which root in a container takes over the host unless the
// runtime confines it. Source: capabilities(7).
var powerful = []corev1.Capability{"ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF"}

// escapes lists the ways out of a pod's containers.
func escapes(spec *corev1.PodSpec) []Escape {
	var all []Escape
	add := func(means, dependsOn string) { all = append(all, Escape{intern(means), dependsOn}) }
	eachContainer(spec, func(c *corev1.Container) {
		user := userOf(spec, c)
		if privileged(c) {
			add("container "+c.Name+" is privileged", user)
		}
		for _, capability := range added(c) {
			switch {
			case slices.Contains(powerful, capability):
				add("container "+c.Name+" has the capability "+string(capability), cmp.Or(user, dependsOnRuntime))
			case capability == "SYS_PTRACE" && spec.HostPID:
				add("container "+c.Name+" has the capability SYS_PTRACE and sees the processes of its node", cmp.Or(user, dependsOnRuntime))
			}
		}
		for _, mount := range c.VolumeMounts {
			if means, dependsOn := hostMount(spec, c, mount, user); means != "" {
				add(means, dependsOn)
			}
		}
	})
	if spec.HostPID {
		add("the pod sees the processes of its node (hostPID)", dependsOnRuntime)
	}
	if spec.HostNetwork {
		add("the pod is in the network of its node (hostNetwork)", "services that trust callers from the node itself")
	}
	slices.SortStableFunc(all, func(a, b Escape) int { return cmp.Compare(rank(a), rank(b)) })
	return slices.Clip(slices.Compact(all))
}

func rank(e Escape) int {
	if e.DependsOn == "" {
		return 0
	}
	return 1
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
		return "what a user other than root can do there"
	case user == nil && nonRoot != nil && *nonRoot:
		return dependsOnUser
	}
	return ""
}

// hostMount says how a mount gives the node; empty if it does not.
func hostMount(spec *corev1.PodSpec, c *corev1.Container, mount corev1.VolumeMount, user string) (means, dependsOn string) {
	i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
	if i < 0 || spec.Volumes[i].HostPath == nil {
		return "", ""
	}
	folder := path.Clean("/" + spec.Volumes[i].HostPath.Path)
	if mount.SubPathExpr != "" {
		return "container " + c.Name + " mounts a folder below " + folder + " of its node", "which folder it is"
	}
	folder = path.Join(folder, mount.SubPath)
	means = "container " + c.Name + " mounts " + folder + " of its node"
	switch {
	case slices.ContainsFunc(sockets, func(s string) bool { return within(s, folder) }):
		return means, user
	case mount.ReadOnly && slices.ContainsFunc(readablePaths, func(p string) bool { return within(p, folder) || within(folder, p) }):
		return means + " (read only)", user
	case !mount.ReadOnly && gives(folder):
		return means, user
	}
	return "", ""
}

// gives reports whether writing to a folder gives the node.
func gives(folder string) bool {
	for _, p := range hostPaths {
		bare := strings.TrimSuffix(p, "/")
		if within(bare, folder) || (strings.HasSuffix(p, "/") && within(folder, bare)) {
			return true
		}
	}
	return false
}

// within reports whether a path is a folder or lies below it.
func within(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}
