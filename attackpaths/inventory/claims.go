package inventory

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Volume is a PersistentVolume that is a folder of a node.
type Volume struct {
	Name string
	// Folder is the folder of the node.
	Folder string
	// Claim is the claim that the volume is for; zero if each claim may get it.
	Claim Name
	// DependsOn is what else decides whether a claim has the volume; empty if it does.
	DependsOn string
	// class is the volume's storage class; empty for none.
	class string
	// on are the nodes that may mount it; nil for all.
	on *corev1.NodeSelector
}

// dependsOnBinding is what else decides about a claim that is not bound yet.
const dependsOnBinding = "whether the claim is bound to the volume"

// claim is a PersistentVolumeClaim.
type claim struct {
	// volume is the volume that it is bound to, or asks for; empty for none.
	volume string
	// class is its storage class; nil for the cluster's default one, which is not known.
	class *string
}

// OnNode reports whether a node may mount the volume.
func (v *Volume) OnNode(n *Node) bool {
	return v.on == nil || slices.ContainsFunc(v.on.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return allowsTerm(t, n, func(string) bool { return false })
	})
}

// WaysOut lists what a mount of the volume gives, as [Pod.WaysOut] does.
func (v *Volume) WaysOut() []Escape {
	ways, _ := waysOf(v.Folder, both)
	for i := range ways {
		ways[i].Means = "volume " + v.Name + " is " + v.Folder + " of its node"
	}
	return sortedEscapes(ways)
}

// setVolume adds a volume, or replaces the one of the same name. Only those count that are a folder of a node.
func (i *Inventory) setVolume(pv *corev1.PersistentVolume) {
	i.Delete("PersistentVolume", "", pv.Name)
	v := Volume{Name: pv.Name}
	switch {
	case pv.Spec.HostPath != nil:
		v.Folder = path.Clean("/" + pv.Spec.HostPath.Path)
		if isWindows(pv.Spec.HostPath.Path) {
			v.Folder = pv.Spec.HostPath.Path
		}
	case pv.Spec.Local != nil:
		v.Folder = path.Clean("/" + pv.Spec.Local.Path)
	default:
		i.otherVolumes[pv.Name] = true
		return
	}
	v.class = intern(pv.Spec.StorageClassName)
	if ref := pv.Spec.ClaimRef; ref != nil {
		v.Claim = Name{ref.Namespace, ref.Name}
	}
	if a := pv.Spec.NodeAffinity; a != nil {
		v.on = a.Required
	}
	i.volumes[pv.Name] = v
}

// References are what pods refer to by name that decides about ways out of them.
type References struct {
	// Claimed are the volumes that are a folder of a node, by the claims that have or may get them.
	Claimed map[Name][]Volume
	// handlers are the handlers of runtime classes.
	handlers map[string]string
}

// References returns what the pods of the inventory refer to. It must not be changed meanwhile.
func (i *Inventory) References() References { return References{i.ClaimedVolumes(), i.handlers} }

// sandbox says what decides about a pod with a runtime class; empty if the pod runs on the kernel of its node.
func (r References) sandbox(class string) string {
	switch handler, known := r.handlers[class]; {
	case class == "":
		return ""
	case !known:
		return dependsOnClass
	case slices.ContainsFunc(sandboxes, func(s string) bool { return strings.Contains(strings.ToLower(handler), s) }):
		return dependsOnSandbox
	}
	return ""
}

// HasClaim reports whether there is a claim, and HasVolume whether there is a volume.
func (i *Inventory) HasClaim(namespace, name string) bool {
	_, ok := i.claims[Name{namespace, name}]
	return ok
}

// HasVolume reports whether there is a volume, of whatever kind.
func (i *Inventory) HasVolume(name string) bool {
	_, ok := i.volumes[name]
	return ok || i.otherVolumes[name]
}

// ClaimedVolumes lists the volumes that are a folder of a node by the claims that are bound to them, that one of the two names,
// or that may be bound to them: a claim that is bound to none may get each volume of its class that no claim has. Sizes, access
// modes and labels may keep it from that. Claims share lists, which must not be changed.
//
// Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#class-1
func (i *Inventory) ClaimedVolumes() map[Name][]Volume {
	claimed, taken := i.boundVolumes()
	all, ofClass := i.bindable(taken)
	for name, c := range i.claims {
		may := all
		if c.class != nil {
			may = ofClass[*c.class]
		}
		if c.volume == "" && len(claimed[name]) == 0 && len(may) > 0 {
			claimed[name] = may
		}
	}
	return claimed
}

// boundVolumes lists the volumes by the claims that have them, and the names of these volumes.
func (i *Inventory) boundVolumes() (claimed map[Name][]Volume, taken map[string]bool) {
	claimed, taken = map[Name][]Volume{}, map[string]bool{}
	for _, v := range i.volumes {
		if c, ok := i.claims[v.Claim]; ok && (c.volume == v.Name || c.volume == "") {
			claimed[v.Claim], taken[v.Name] = append(claimed[v.Claim], v), true
		}
	}
	for name, c := range i.claims {
		if v, ok := i.volumes[c.volume]; ok && v.Claim == (Name{}) {
			claimed[name], taken[v.Name] = append(claimed[name], v), true
		}
	}
	return claimed, taken
}

// bindable lists the volumes that claims may be bound to, and by storage class. The folders that give most come first.
func (i *Inventory) bindable(taken map[string]bool) (all []Volume, ofClass map[string][]Volume) {
	gives := map[string][]Escape{}
	for _, v := range i.volumes {
		if v.Claim == (Name{}) && !taken[v.Name] {
			v.DependsOn = dependsOnBinding
			all = append(all, v)
			gives[v.Folder] = v.WaysOut()
		}
	}
	slices.SortFunc(all, func(a, b Volume) int {
		return cmp.Or(compareWays(gives[a.Folder], gives[b.Folder]), cmp.Compare(a.Folder, b.Folder), cmp.Compare(a.Name, b.Name))
	})
	ofClass = map[string][]Volume{}
	for _, v := range all {
		ofClass[v.class] = append(ofClass[v.class], v)
	}
	return all, ofClass
}

// FreeVolumes lists the volumes that are a folder of a node and that no claim has, by name. Some wait for a claim that does not exist.
func (i *Inventory) FreeVolumes() []Volume {
	_, taken := i.boundVolumes()
	var all []Volume
	for _, v := range i.volumes {
		if _, exists := i.claims[v.Claim]; !exists && !taken[v.Name] {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b Volume) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// claimOf is the name of the claim that a pod has.
func (m *mount) claimOf(pod string) string {
	switch {
	case m.before:
		return m.claim + "-" + pod
	case m.after:
		return pod + "-" + m.claim
	}
	return m.claim
}

// WaysOut lists the ways out of the containers of a pod, those behind its claims included: Escapes is what Pod Security sees.
func (p *Pod) WaysOut(r References) []Escape {
	sandbox := r.sandbox(p.RuntimeClass)
	behind, _ := p.behindClaims(r)
	if sandbox == "" && len(behind) == 0 {
		return p.Escapes
	}
	all := slices.Concat(p.Escapes, behind)
	for i := range all {
		all[i].DependsOn = conditions(all[i].DependsOn, sandbox)
	}
	return sortedEscapes(all)
}

// NotFollowed lists the folders of the host that containers mount and of which it is not known what they give, also behind its
// claims.
func (p *Pod) NotFollowed(r References) []string {
	_, unknown := p.behindClaims(r)
	if len(unknown) == 0 {
		return p.HostPathsNotFollowed
	}
	return sorted(append(unknown, p.HostPathsNotFollowed...))
}

// compareWays puts first what gives more: by the strongest way, and nothing last.
func compareWays(a, b []Escape) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(b), len(a))
	}
	return a[0].compare(b[0])
}

// maxFolders is how many folders are examined of the volumes that a claim may get.
const maxFolders = 32

// behindClaims lists what the volumes give of the claims that containers mount, and the folders of which that is not known. Of
// volumes that a claim may get, it examines one of each folder, up to a bound.
func (p *Pod) behindClaims(r References) (ways []Escape, unknown []string) {
	for i := range p.mounts {
		m := &p.mounts[i]
		claim := m.claimOf(p.Name.Name)
		behind := " (claim " + claim + ")"
		volumes, folders := r.Claimed[Name{p.Namespace, claim}], 0
		for n, v := range volumes {
			if n > 0 && v.Folder == volumes[n-1].Folder {
				continue
			}
			if folders++; folders > maxFolders {
				unknown = append(unknown, fmt.Sprintf("the folders of more than %d volumes", n)+behind)
				break
			}
			more, folder := m.of(v.Folder, v.DependsOn)
			for _, way := range more {
				way.Means += behind
				ways = append(ways, way)
			}
			if folder != "" {
				unknown = append(unknown, folder+behind)
			}
		}
	}
	return ways, unknown
}

// ClaimGives reports whether the volume of a claim, by the name that is in [Field.Secret], is a folder of the host.
func (p *Pod) ClaimGives(claim string, claimed map[Name][]Volume) bool {
	return p.anyClaim(claimed, func(m *mount, name string) bool { return name == claim || m.after && m.claim == claim })
}

// ClaimOfTemplateGives reports whether a claim that the controller of a StatefulSet made has a folder of the host.
func (p *Pod) ClaimOfTemplateGives(claimed map[Name][]Volume) bool {
	return p.Workload.Resource == "statefulsets" && p.anyClaim(claimed, func(m *mount, _ string) bool { return m.before })
}

// WithoutHost is a template without ways out of the containers, and without claims.
func (t Template) WithoutHost() Template {
	t.Escapes, t.HostPath, t.HostPathsNotFollowed, t.mounts = nil, false, nil, nil
	return t
}

func (p *Pod) anyClaim(claimed map[Name][]Volume, wanted func(m *mount, name string) bool) bool {
	return slices.ContainsFunc(p.mounts, func(m mount) bool {
		name := m.claimOf(p.Name.Name)
		_, ok := claimed[Name{p.Namespace, name}]
		return ok && wanted(&m, name)
	})
}
