package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Volume is a PersistentVolume.
type Volume struct {
	Name string
	// Folder is the folder of a node that the volume is; empty for other volumes, which give nothing of a node.
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
func (v *Volume) OnNode(n *Node) bool { return n.matches(nil, requiring(v.on)) }

// WaysOut lists what a mount of the volume gives, as [Pod.WaysOut] does, without the fields that make it possible.
func (v *Volume) WaysOut() []Escape {
	ways, _ := waysOf(v.Folder, both)
	return sortedEscapes(ways)
}

func newVolume(pv *corev1.PersistentVolume) Volume {
	v := Volume{Name: pv.Name, class: intern(pv.Spec.StorageClassName), on: value(pv.Spec.NodeAffinity).Required}
	if pv.Spec.HostPath != nil || pv.Spec.Local != nil {
		v.Folder = folderIn(cmp.Or(value(pv.Spec.HostPath).Path, value(pv.Spec.Local).Path), "")
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		v.Claim = Name{ref.Namespace, ref.Name}
	}
	return v
}

// References are what pods refer to by name that decides about ways out of them.
type References struct {
	// Claimed are the volumes that are a folder of a node, by the claims that are bound to them, that one of the two names, or that
	// may be bound to them: a claim that is bound to none may get each volume of its class that no claim has. Sizes, access modes and
	// labels may keep it from that. Claims share lists, which must not be changed.
	//
	// Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#class-1
	Claimed map[Name][]Volume
	// Free are the volumes that are a folder of a node and that no claim has, by name. Some wait for a claim that does not exist.
	Free []Volume

	inventory *Inventory
}

// References returns what the pods of the inventory refer to. It must not be changed meanwhile.
func (i *Inventory) References() References {
	r := References{Claimed: map[Name][]Volume{}, inventory: i}
	isOther := func(v Volume) bool { return v.Folder == "" }
	volumes, taken := slices.DeleteFunc(list[Volume](i, "PersistentVolume"), isOther), map[string]bool{}
	for _, v := range volumes {
		if c, ok := record[claim](i, "PersistentVolumeClaim", v.Claim); ok && (c.volume == v.Name || c.volume == "") {
			r.Claimed[v.Claim], taken[v.Name] = append(r.Claimed[v.Claim], v), true
		}
	}
	claims := i.records["PersistentVolumeClaim"]
	for name, c := range claims {
		v, ok := record[Volume](i, "PersistentVolume", Name{"", c.(claim).volume})
		if ok && !isOther(v) && v.Claim == (Name{}) {
			r.Claimed[name], taken[v.Name] = append(r.Claimed[name], v), true
		}
	}
	r.Free = slices.DeleteFunc(volumes, func(v Volume) bool { return claims[v.Claim] != nil || taken[v.Name] })
	all, ofClass := bindable(r.Free)
	for name, record := range claims {
		c, may := record.(claim), all
		if c.class != nil {
			may = ofClass[*c.class]
		}
		if c.volume == "" && len(r.Claimed[name]) == 0 && len(may) > 0 {
			r.Claimed[name] = may
		}
	}
	return r
}

// bindable lists the volumes that any claim may be bound to, and by storage class. The folders that give most come first.
func bindable(free []Volume) (all []Volume, ofClass map[string][]Volume) {
	gives := map[string][]Escape{}
	for _, v := range free {
		if v.Claim == (Name{}) {
			v.DependsOn = dependsOnBinding
			all, gives[v.Folder] = append(all, v), v.WaysOut()
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

// sandbox says what decides about a pod with a runtime class; empty if the pod runs on the kernel of its node.
func (r References) sandbox(class string) string {
	switch handler, known := record[string](r.inventory, "RuntimeClass", Name{"", class}); {
	case class == "":
		return ""
	case !known:
		return dependsOnClass
	case slices.ContainsFunc(sandboxes, func(s string) bool { return strings.Contains(strings.ToLower(handler), s) }):
		return dependsOnSandbox
	}
	return ""
}

// claimOf is the name of the claim that a pod has.
func (m *mount) claimOf(pod string) string { return strings.Replace(m.claim, thePod, pod, 1) }

// WaysOut lists the ways out of the containers of a pod, those behind its claims included: Escapes is what Pod Security sees.
func (p *Pod) WaysOut(r References) []Escape {
	sandbox := r.sandbox(p.RuntimeClass)
	behind, _ := p.behindClaims(r)
	all := slices.Concat(p.Escapes, behind)
	for i := range all {
		again := ""
		if all[i].init && p.Running {
			again = dependsOnInit
		}
		all[i].DependsOn, all[i].init = conditions(all[i].DependsOn, again, sandbox), false
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
	return p.anyClaim(claimed, func(of string) bool { return of == claim })
}

// ClaimOfTemplateGives reports whether a claim that the controller of a StatefulSet made has a folder of the host.
func (p *Pod) ClaimOfTemplateGives(claimed map[Name][]Volume) bool {
	return p.Workload.Resource == "statefulsets" && p.anyClaim(claimed, func(of string) bool { return strings.HasSuffix(of, "-"+thePod) })
}

func (p *Pod) anyClaim(claimed map[Name][]Volume, wanted func(claim string) bool) bool {
	return slices.ContainsFunc(p.mounts, func(m mount) bool {
		return wanted(m.claim) && len(claimed[Name{p.Namespace, m.claimOf(p.Name.Name)}]) > 0
	})
}

// WithoutHost is a template without ways out of the containers, and without claims.
func (t Template) WithoutHost() Template {
	t.Escapes, t.HostPath, t.HostPathsNotFollowed, t.mounts = nil, false, nil, nil
	return t
}
