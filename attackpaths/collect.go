package attackpaths

import (
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// collect reads the cluster into tables.
func (b *builder) collect() {
	if b.objects == nil {
		b.objects = b.cluster.objects()
	}
	o := b.objects
	b.collectClaims()
	known := map[string]bool{}
	for _, ns := range o.known {
		known[ns] = true
	}
	for _, n := range o.namespaces {
		known[n.Name], b.labels[n.Name] = true, n.Labels
		if n.Terminating {
			b.terminating[n.Name] = true
		}
	}
	b.nodes, b.pods, b.admission = slices.Clone(o.nodes), o.pods, o.admission
	accounts, secrets, templates := map[inventory.Name]bool{}, map[inventory.Name]bool{}, map[*inventory.Template]bool{}
	for _, a := range o.accounts {
		accounts[a] = true
	}
	for i, p := range b.pods {
		known[p.Namespace] = true
		b.podsIn[p.Namespace] = append(b.podsIn[p.Namespace], int32(i))
		if p.Node != "" {
			b.podsOn[p.Node] = append(b.podsOn[p.Node], int32(i))
		}
		if templates[p.Template] {
			continue
		}
		templates[p.Template] = true
		if p.ServiceAccount != "" && !p.Mirror {
			accounts[inventory.Name{Namespace: p.Namespace, Name: p.ServiceAccount}] = true
		}
		for _, name := range slices.Concat(p.Secrets, p.PullSecrets) {
			secrets[inventory.Name{Namespace: p.Namespace, Name: name}] = true
		}
	}
	for a := range accounts {
		known[a.Namespace] = true
		b.accounts[a.Namespace] = append(b.accounts[a.Namespace], a.Name)
	}
	for _, names := range b.accounts {
		slices.Sort(names)
	}
	b.collectSecrets(known, secrets)
	b.collectNodes()
	b.roles, b.existing, b.bindings = slices.Clip(o.roles), o.existing, o.bindings
	b.roleIndex, b.roles = o.roleIndex(), append(b.roles, everyRule)
	b.collectAccountNames()
	for _, bound := range b.bindings {
		if bound.Binding.Namespace != "" {
			known[bound.Binding.Namespace] = true
		}
	}
	b.namespaces = slices.Sorted(maps.Keys(known))
}

// collectAccountNames also takes the accounts that bindings name: to impersonate one, it need not
// exist.
func (b *builder) collectAccountNames() {
	b.accountNames = maps.Clone(b.accounts)
	for _, user := range b.subjectsOf("User") {
		if namespace, name, ok := accountOfUser(user); ok {
			names := append(slices.Clone(b.accountNames[namespace]), name)
			slices.Sort(names)
			b.accountNames[namespace] = slices.Compact(names)
		}
	}
}

// collectSecrets also takes the secrets that pods name and that could not be listed.
func (b *builder) collectSecrets(known map[string]bool, named map[inventory.Name]bool) {
	for _, s := range b.objects.secrets {
		delete(named, s.Name)
		known[s.Namespace] = true
		b.secrets[s.Namespace] = append(b.secrets[s.Namespace], s)
	}
	for n := range named {
		b.secrets[n.Namespace] = append(b.secrets[n.Namespace], inventory.Secret{Name: n})
	}
	for _, list := range b.secrets {
		slices.SortFunc(list, func(a, b inventory.Secret) int { return strings.Compare(a.Name.Name, b.Name.Name) })
	}
}

// collectClaims takes the claims behind which there is something of a node.
func (b *builder) collectClaims() {
	b.references, b.claimsIn = b.cluster.Inventory.References(), map[string][]inventory.Name{}
	claimed := b.references.Claimed
	b.references.Free = slices.DeleteFunc(b.references.Free, func(v inventory.Volume) bool {
		return len(v.WaysOut()) == 0 || b.objects.removed[verdict.Object{Kind: volumeKind, Name: v.Name}]
	})
	gives := map[*inventory.Volume]bool{} // by the lists that claims share
	for _, volumes := range claimed {
		if _, known := gives[&volumes[0]]; !known {
			gives[&volumes[0]] = slices.ContainsFunc(volumes, func(v inventory.Volume) bool { return len(v.WaysOut()) > 0 })
		}
	}
	for claim, volumes := range claimed {
		if b.objects.removed[verdict.Object{Kind: claimKind, Namespace: claim.Namespace, Name: claim.Name}] {
			delete(claimed, claim)
		} else if gives[&volumes[0]] {
			b.claimsIn[claim.Namespace] = append(b.claimsIn[claim.Namespace], claim)
		}
	}
	for _, claims := range b.claimsIn {
		slices.SortFunc(claims, func(a, b inventory.Name) int { return strings.Compare(a.Name, b.Name) })
	}
}

// collectNodes also takes the nodes that pods are bound to and that could not be listed.
func (b *builder) collectNodes() {
	have := map[string]bool{}
	for _, n := range b.nodes {
		have[n.Name] = true
	}
	for name := range b.podsOn {
		if !have[name] {
			b.nodes = append(b.nodes, inventory.Node{Name: name})
		}
	}
	slices.SortFunc(b.nodes, func(a, b inventory.Node) int { return strings.Compare(a.Name, b.Name) })
}
