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
	// init is true for a way out of a container that ends before the other containers of its pod start.
	init bool
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
	dependsOnInit      = "when the init container runs again"
)

// powerful are capabilities with which root in a container takes over the host unless the
// runtime confines it. Source: capabilities(7).
var powerful = []string{"ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF"}

// sandboxes are parts of the names of handlers of runtime classes that run pods in a virtual machine or on a kernel of their own.
var sandboxes = []string{"kata", "gvisor", "runsc", "firecracker", "hyperv"}

// sortedEscapes puts what is certain first, then what gives more. A certain way to the node gives all that is on it.
func sortedEscapes(all []Escape) []Escape {
	slices.SortStableFunc(all, Escape.compare)
	if slices.ContainsFunc(all, func(e Escape) bool { return e.Effect == TakesNode && e.DependsOn == "" && !e.init }) {
		all = slices.DeleteFunc(all, func(e Escape) bool { return e.Effect != TakesNode })
	}
	return slices.Clip(slices.Compact(all))
}

// compare puts what is certain first, then what gives more.
func (e Escape) compare(f Escape) int {
	if certain := e.DependsOn == ""; certain != (f.DependsOn == "") {
		if certain {
			return -1
		}
		return 1
	}
	return int(e.Effect) - int(f.Effect)
}

// conditions joins conditions, of which any may be empty.
func conditions(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c == "" }), "; ")
}

// value is what a pointer points to; the zero value for nil.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// hostProcess says whether a container of Windows runs as a process of its node; nil if only its pod says.
func hostProcess(c *corev1.Container) *bool {
	return value(value(c.SecurityContext).WindowsOptions).HostProcess
}

// podHostProcess reports whether the containers of a pod of Windows run as processes of their node, unless they say otherwise.
func podHostProcess(spec *corev1.PodSpec) bool {
	return value(value(value(spec.SecurityContext).WindowsOptions).HostProcess)
}

// shortName is the name of a capability as in the table of powerful ones: any case is accepted, with and without CAP_.
func shortName(c corev1.Capability) string {
	return strings.TrimPrefix(strings.ToUpper(string(c)), "CAP_")
}

// userOf says what decides whether a container has the rights of root; empty if nothing in
// the pod keeps it from having them. A pod that names no user is taken to run as the image's
// usual one, root.
func userOf(spec *corev1.PodSpec, c *corev1.Container) string {
	ofPod, own := value(spec.SecurityContext), value(c.SecurityContext)
	user, nonRoot := cmp.Or(own.RunAsUser, ofPod.RunAsUser), cmp.Or(own.RunAsNonRoot, ofPod.RunAsNonRoot)
	switch {
	case user != nil && *user != 0:
		return dependsOnOtherUser
	case user == nil && nonRoot != nil && *nonRoot:
		return dependsOnUser
	}
	return ""
}

// mount is a mount of a folder of the host, or of a claim, by a container.
type mount struct {
	container string
	// init is true if the container ends before the other ones start.
	init bool
	// user is what decides whether the container has the rights of root.
	user     string
	readOnly bool
	subPath  string
	// anyFolder is true if a variable names the folder below the mounted one.
	anyFolder bool
	// claim is the claim's name. A claim that a controller makes for each pod has thePod in the place of the pod's name.
	claim string
}

// thePod stands for the name of a pod.
const thePod = "*"

// folderIn is a folder below another one of a node.
func folderIn(folder, below string) string {
	switch {
	case !isWindows(folder):
		return path.Join("/", folder, below)
	case below == "":
		return folder
	}
	return folder + "/" + below
}

// of says what the mount gives to its container if it is of a folder. Unknown is the folder if the table has no row for it.
func (m *mount) of(folder, dependsOn string) (ways []Escape, unknown string) {
	folder = folderIn(folder, m.subPath)
	access, suffix := both, ""
	if m.readOnly {
		access, suffix = reads, " (read only)"
	}
	ways, known := waysOf(folder, access)
	if !known {
		unknown = folder + suffix
	}
	if m.readOnly && slices.ContainsFunc(ways, func(e Escape) bool { return e.Effect == TakesNode }) {
		suffix = "" // it is no protection
	}
	means, whichFolder := "container "+m.container+" mounts ", ""
	if m.anyFolder {
		means, whichFolder = means+"a folder below ", dependsOnFolder
	}
	for i := range ways {
		ways[i].Means = means + folder + " of its node" + suffix
		ways[i].DependsOn = conditions(m.user, dependsOn, whichFolder, ways[i].DependsOn)
		ways[i].init = m.init
	}
	return ways, unknown
}
