package attackpaths

import (
	"cmp"
	"slices"
	"strings"
)

// candidate is a change with the number of nodes that have it on a path.
type candidate struct {
	changeKey
	certain, entirely int
}

// candidates are the changes on one path of each node, those on the paths of most nodes first.
// Of nodes that reach cluster-admin certainly, the path is certain.
func (a *advisor) candidates(b *builder, reach []Certainty) []candidate {
	counts := map[changeKey]*candidate{}
	for _, certainty := range [...]Certainty{Certain, Possible} {
		wanted := map[vertex]bool{}
		for i, name := range a.nodes {
			if reach[i] == certainty {
				wanted[b.index[key{kind: isNode, name: name}]] = true
			}
		}
		if len(wanted) == 0 {
			continue
		}
		for _, changes := range b.changesOf(certainty == Possible, wanted) {
			for _, change := range a.lasting(changes) {
				if counts[change] == nil {
					counts[change] = &candidate{changeKey: change}
				}
				counts[change].entirely++
				if certainty == Certain {
					counts[change].certain++
				}
			}
		}
	}
	all := make([]candidate, 0, len(counts))
	for _, c := range counts {
		all = append(all, *c)
	}
	slices.SortFunc(all, candidate.compare)
	return all
}

func (c candidate) compare(d candidate) int {
	return cmp.Or(cmp.Compare(d.certain, c.certain), cmp.Compare(d.entirely, c.entirely), c.changeKey.compare(d.changeKey))
}

func (k changeKey) compare(o changeKey) int {
	return cmp.Or(cmp.Compare(k.kind.order(), o.kind.order()), k.object.Compare(o.object), cmp.Compare(k.rule, o.rule),
		strings.Compare(k.secret, o.secret))
}
