package source

import (
	"context"
	"sync"

	"k8s.io/client-go/rest"
)

// Part is a part of a cluster: the objects of some kinds, in a namespace, on a node, with a
// name. An empty field stands for all of them. The node counts only for kinds that the API
// server selects by it (pods, resource slices, requests for pod certificates); of other kinds,
// the objects of all nodes are in the part.
type Part struct {
	Kinds                 Kinds
	Namespace, Node, Name string
}

// parts reads the parts of a cluster that a State asks for, each once.
type parts struct {
	// ctx bounds all requests. Look-ups, which have no context, read too.
	ctx    context.Context
	lister *lister
	served *discovered
	done   func()
	// file is set if the parts are of a snapshot.
	file *partialFile

	mu   sync.Mutex
	read [kindCount]map[Part]struct{}
	err  error
	// asked has the kinds of which it is known whether the user may list all of them.
	asked Kinds
	// rbacExists is true if a list showed a role or binding that the state may not have.
	rbacExists, rbacProbed bool
}

// Open returns a State of a cluster that reads only the parts that are asked for. The context
// bounds all requests that are made for the State. The options Retain and Inventory have no
// effect.
//
// Look-ups of objects by name read the object first. All else shows only what has been read:
// before the absence of an object counts, call [State.Read] with a part that the object would be
// in, or [State.HasRead]. Such a State is not [State.Complete]. What the user may not list is
// in [State.Missing], as in a State of [List], once a part of it is read. NodeScopes and Quarantines are
// read whole at once: they are few, and every answer about an account depends on them.
func Open(ctx context.Context, cfg *rest.Config, opts LiveOptions) (*State, error) {
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	l := &lister{client: c, state: d.state(c.host), report: reporter(opts.Progress)}
	p := newParts(ctx)
	p.lister, p.served = l, d
	if opts.ReadDone != nil {
		p.done = opts.ReadDone
	}
	l.state.parts, l.state.facts.complete = p, false
	if err := l.state.Read(Part{Kinds: NodeScopes | Quarantines}); err != nil {
		return nil, err
	}
	return l.state, nil
}

func newParts(ctx context.Context) *parts {
	p := &parts{ctx: ctx, done: func() {}}
	for k := range p.read {
		p.read[k] = map[Part]struct{}{}
	}
	return p
}

// Partial reports whether the State reads only the parts of a cluster or a snapshot that are asked
// for.
func (s *State) Partial() bool { return s.parts != nil }

// OfFile reports whether the State is partial and of a snapshot. Unlike the State of a cluster, it has the
// facts of the whole: [State.Missing], [State.Complete], and all roles and bindings. [State.Gaps]
// reads what it depends on.
func (s *State) OfFile() bool { return s.parts != nil && s.parts.file != nil }

// HasRead reports whether a part has been read, or could not be read because the user may not
// list it. It is true for each part of a State that is not partial.
func (s *State) HasRead(part Part) bool {
	if s.parts == nil {
		return true
	}
	for k := range kindCount {
		if part.Kinds&(1<<k) != 0 && !s.parts.covers(k, part.of(k)) {
			return false
		}
	}
	return true
}

// Read reads parts of the cluster that have not been read. Parts that the user may not list are
// no error. It does nothing if the State is not partial.
func (s *State) Read(wanted ...Part) error {
	if s.parts == nil {
		return nil
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, parallelReads)
	for k, unread := range s.parts.unread(wanted) {
		for part := range unread {
			slots <- struct{}{}
			running.Go(func() {
				s.parts.fetch(k, part)
				<-slots
			})
		}
	}
	running.Wait()
	s.parts.done()
	return s.ReadErr()
}

// unread returns the parts that have not been read, by kind and each once.
func (p *parts) unread(wanted []Part) map[kind]map[Part]struct{} {
	unread := map[kind]map[Part]struct{}{}
	for k := range kindCount {
		for _, part := range wanted {
			if part.Kinds&(1<<k) == 0 || p.covers(k, part.of(k)) {
				continue
			}
			if unread[k] == nil {
				unread[k] = map[Part]struct{}{}
			}
			unread[k][part.of(k)] = struct{}{}
		}
	}
	return unread
}

// parallelReads is how many lists are requested at the same time.
const parallelReads = 16

// ReadErr returns the first error of reading parts, look-ups included. An answer from the
// State does not count then.
func (s *State) ReadErr() error {
	if s.parts == nil {
		return nil
	}
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	return s.parts.err
}

// lookUp reads an object by name before it is looked up, unless the state has it. No object has an
// empty name, and none of a namespaced kind an empty namespace.
func (s *State) lookUp(k kind, namespace, name string) {
	if s.parts != nil && name != "" && (namespace != "" || !k.describe().namespaced) && !s.holds(k, namespace, name) {
		_ = s.Read(Part{Kinds: 1 << k, Namespace: namespace, Name: name}) // ReadErr keeps the error
	}
}

// of returns the part of one kind, without the fields that do not restrict it.
func (p Part) of(k kind) Part {
	p.Kinds = 1 << k
	if !k.describe().namespaced {
		p.Namespace = ""
	}
	if !selectsNode(k) {
		p.Node = ""
	}
	return p
}

// selectsNode reports whether API servers support the field selector spec.nodeName for a kind.
func selectsNode(k kind) bool {
	return k == kindPod || k == kindResourceSlice || k == kindPodCertificateRequest
}

// covers reports whether a part, or one that contains it, has been read.
func (p *parts) covers(k kind, part Part) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, namespace := range []string{part.Namespace, ""} {
		for _, node := range []string{part.Node, ""} {
			for _, name := range []string{part.Name, ""} {
				if _, ok := p.read[k][Part{Kinds: part.Kinds, Namespace: namespace, Node: node, Name: name}]; ok {
					return true
				}
			}
		}
	}
	return false
}

// markRead records that a part of a kind needs no further request.
func (p *parts) markRead(k kind, part Part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read[k][part] = struct{}{}
}

func (p *parts) markAllRead(k kind) { p.markRead(k, Part{Kinds: 1 << k}) }

func (p *parts) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

func (p *parts) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}
