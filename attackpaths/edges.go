package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// edgeStore keeps the edges of many vertices in few allocations.
type edgeStore struct {
	// current are the edges of the vertex that is being expanded.
	current []edge
	// free is the rest of the last allocation.
	free []edge
}

// edgesAtOnce is how many edges one allocation has room for.
const edgesAtOnce = 1 << 14

// begin returns a slice to which the edges of a vertex are appended, after those that it has.
func (s *edgeStore) begin(known []edge) []edge { return append(s.current[:0], known...) }

// end copies the edges of a vertex.
func (s *edgeStore) end(edges []edge) []edge {
	s.current = edges
	if len(edges) > len(s.free) {
		s.free = make([]edge, max(edgesAtOnce, len(edges)))
	}
	kept := s.free[:len(edges):len(edges)]
	s.free = s.free[len(edges):]
	copy(kept, edges)
	return kept
}

// reserve makes room for the vertices of what the cluster holds, and as many for rights and facts
// as a usual cluster needs.
func (b *builder) reserve() {
	n := 2*len(b.nodes) + len(b.pods) + 4*len(b.roles) + 4*len(b.bindings)
	for _, ns := range b.namespaces {
		n += len(b.accounts[ns]) + len(b.secrets[ns])
	}
	b.templates = map[*inventory.Template]*templateVertices{}
	b.index = make(map[key]vertex, n)
	b.keys, b.out, b.joinsOf = make([]key, 0, n), make([][]edge, 0, n), make([][]int32, 0, n)
}

// templateVertices are the vertices of what the pods of a template name. They are looked up once for all its pods.
type templateVertices struct {
	account vertex // none if they have none
	// scoped is what scopes say about the account; nil if none is about it.
	scoped *scopedAccount
	// volumes are those of secrets that lie in volumes.
	secrets, volumes []vertex
}

// templateOf returns the vertices of what a pod names.
func (b *builder) templateOf(p *inventory.Pod) *templateVertices {
	t := b.templates[p.Template]
	if t != nil {
		return t
	}
	t = &templateVertices{account: none}
	if p.ServiceAccount != "" {
		t.account, t.scoped = b.accountVertex(p.Namespace, p.ServiceAccount), b.scopeOf(p.Namespace, p.ServiceAccount)
	}
	for _, name := range p.Secrets {
		v := b.vertex(key{kind: isSecret, namespace: p.Namespace, name: name})
		t.secrets = append(t.secrets, v)
		if slices.Contains(p.VolumeSecrets, name) {
			t.volumes = append(t.volumes, v)
		}
	}
	b.templates[p.Template] = t
	return t
}
