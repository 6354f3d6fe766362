package generate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Write is one request as admission sees it. The objects are versioned ones of
// the API, or nil.
type Write struct {
	// Aim names the request and its mistake: "pods create: no
	// owner".
	Aim string

	User, UID string
	Groups    []string
	Extra     map[string][]string
	Operation string

	Group, Version, Resource, Subresource string
	Namespace, Name                       string

	Object, OldObject runtime.Object
	// Undefaulted is true if the objects have what defaults would hide: a volume
	// of a kind that is not known, which would become an emptyDir.
	Undefaulted bool
}

// String renders the write for people.
func (w *Write) String() string {
	resource := strings.TrimSuffix(w.Resource+"."+w.Version+"."+w.Group, ".")
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s %s %q %q by %q %q (%s)", w.Operation, resource, w.Namespace, w.Name, w.User, w.Groups, w.Aim)
}

// Outcome is the possible outcome of a mutation of a request that is fine.
type Outcome uint8

// The outcomes.
const (
	// Refused: never allowed.
	Refused Outcome = iota
	// Allowed: allowed at times; other random parts may still be refused.
	Allowed
	// Either: both occur.
	Either
)

// Aims returns the aims of writes, with the outcome of each.
func Aims() map[string]Outcome {
	aims := make(map[string]Outcome)
	for _, k := range kinds() {
		if k.routes == nil {
			aims[k.name] = k.outcome
		}
		for _, route := range k.routes {
			aims[k.name+", "+route.name] = route.outcome
		}
		for _, t := range slices.Concat(k.mutations, k.late) {
			aims[k.name+": "+t.name] = t.outcome
		}
	}
	for _, t := range envelopeMutations() {
		aims["any: "+t.name] = t.outcome
	}
	return aims
}

// kind is one kind of request: how to draw one that is fine, and what can be
// wrong with it.
type kind struct {
	name    string
	weight  int
	outcome Outcome
	draw    func(*draft)
	// routes are the aims that draw may choose from, if there are several.
	routes []aim
	// mutations change the draft's objects, late ones the write made of them.
	mutations, late []mutation
	// finish makes the write's objects of the draft's.
	finish func(*draft)
}

type aim struct {
	name    string
	outcome Outcome
}

// mutation changes one thing about a request.
type mutation struct {
	name    string
	outcome Outcome
	apply   func(*draft)
}

// Writer draws writes about a state.
type Writer struct {
	r         *rand.Rand
	state     *State
	index     *stateIndex
	kinds     []kind
	weights   int
	envelopes []mutation
}

// NewWriter returns the writer of a seed.
func NewWriter(seed uint64, s *State) *Writer {
	w := &Writer{r: source(seed, "writes"), state: s, index: newStateIndex(s), kinds: kinds(), envelopes: envelopeMutations()}
	for i := range w.kinds {
		w.weights += w.kinds[i].weight
	}
	return w
}

// Next draws a write: a fine one, or with one or more things wrong with it.
func (w *Writer) Next() *Write {
	k := w.kind()
	d := &draft{Writer: w, Write: &Write{Version: "v1"}, node: pick(w.r, w.state.NodeNames)}
	d.User, d.UID = "system:node:"+d.node, "node-uid"
	d.Groups = []string{"system:nodes", "system:authenticated"}
	if chance(w.r, 30) {
		d.Extra = map[string][]string{"authentication.kubernetes.io/credential-id": {"X509SHA256=1"}}
	}
	k.draw(d)
	d.Aim = k.name + d.route
	aims := w.mutations(&k)
	for _, t := range aims {
		if !t.late {
			t.apply(d)
		}
	}
	k.finish(d)
	for _, t := range aims {
		if t.late {
			t.apply(d)
		}
	}
	switch {
	case len(aims) > 1:
		d.Aim = "several at once"
	case len(aims) == 1:
		d.Aim = aims[0].of + ": " + aims[0].name
	}
	return d.Write
}

func (w *Writer) kind() kind {
	n := w.r.IntN(w.weights)
	for _, k := range w.kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	panic("the weights of kinds do not add up")
}

// drawn is a mutation that was drawn.
type drawn struct {
	mutation
	of   string // the kind's name, "any"
	late bool
}

// mutations draws the mistakes of a request.
func (w *Writer) mutations(k *kind) []drawn {
	n := 1
	switch {
	case chance(w.r, 20), k.routes != nil && chance(w.r, 60):
		n = 0
	case chance(w.r, 20):
		n = 2 + w.r.IntN(2)
	}
	list := make([]drawn, n)
	for i := range list {
		own := len(k.mutations) + len(k.late)
		if own == 0 || chance(w.r, 12) {
			list[i] = drawn{pick(w.r, w.envelopes), "any", true}
		} else if j := w.r.IntN(own); j < len(k.mutations) {
			list[i] = drawn{k.mutations[j], k.name, false}
		} else {
			list[i] = drawn{k.late[j-len(k.mutations)], k.name, true}
		}
	}
	return list
}

// sorted orders mutations that come out of a map.
func sorted(mutations []mutation) []mutation {
	slices.SortFunc(mutations, func(a, b mutation) int { return strings.Compare(a.name, b.name) })
	return mutations
}
