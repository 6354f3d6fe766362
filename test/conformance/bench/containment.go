package main

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

const containmentMethod = `The same questions are asked by nodes, by an account with a NodeScope and tokens of the same
nodes, and by an account without one. There are %s NodeScopes. "Today" is a server without NodeScopes and
Quarantines. Served requests are measured as in the section about serving. The handler alone gets reviews without
network: it reads and decodes the body, decides and encodes the answer, on one core, with %s Quarantines of
other nodes; processor time counts. Servers and handlers are called alternately. The review of an account is
longer than the review of a node: it has the extra values of its token.`

// The number of NodeScopes and Quarantines.
const (
	benchScopes      = 1000
	benchQuarantines = 1000
)

// containment measures the cost of NodeScopes and Quarantines.
func (b *bench) containment() (section, error) {
	s := section{
		title:  "NodeScopes and Quarantines",
		method: fmt.Sprintf(containmentMethod, thousands(benchScopes), thousands(benchQuarantines)),
	}
	l := fileCluster{nodes: b.sizes.nodes, podsPerNode: b.sizes.podsPerNode}
	b.log("containment: loading")
	state, err := b.load(l)
	if err != nil {
		return s, err
	}
	documents, err := l.documents(b.sizes.questions, 10)
	if err != nil {
		return s, err
	}
	asked, err := newContainedQuestions(documents)
	if err != nil {
		return s, err
	}
	today, with, err := b.handlers(state)
	if err != nil {
		return s, err
	}
	t := table{
		caption: "**In the handler alone**, without network: the throughput as a share of today's.",
		header:  []string{"asked by", "share", "with NodeScopes and Quarantines", "today"},
	}
	for _, c := range []struct {
		who         string
		before, now [][]byte
	}{
		{"a node", asked.node, asked.node},
		{"an account without a NodeScope", asked.other, asked.other},
		{"an account with one, compared with a node today", asked.node, asked.scoped},
	} {
		b.log("containment: %s", c.who)
		r := b.alternateHandlers(with, today, c.now, c.before)
		t.add(c.who, r.ratio().String(), nanoseconds(r.of(ours)), nanoseconds(r.of(inTree)))
	}
	served, targets, err := b.servedContainment()
	if err != nil {
		return s, err
	}
	s.targets = targets
	s.tables = append(s.tables, served, t, heapOfContainment(), timeOfContainment())
	return s, nil
}

// containedQuestions are the same questions, asked by others.
type containedQuestions struct{ node, scoped, other [][]byte }

func newContainedQuestions(documents []byte) (q containedQuestions, err error) {
	for line := range bytes.Lines(documents) {
		var review authorizationv1.SubjectAccessReview
		if err := stdjson.Unmarshal(line, &review); err != nil {
			return q, fmt.Errorf("decoding a question: %w", err)
		}
		q.node = append(q.node, bytes.Clone(line))
		node := nodeidentity.Of(review.Spec.User, review.Spec.Groups).Name
		review.Spec.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}
		review.Spec.UID = "1c7b8c3a-2f0e-4c55-9d6f-1a2b3c4d5e6f"
		review.Spec.Extra = map[string]authorizationv1.ExtraValue{
			nodeidentity.ExtraCredential: {"JTI=8b7c2a4e-1f35-4d9b-8a77-60d6c1f0a911"},
			nodeidentity.ExtraNode:       {node},
			nodeidentity.ExtraNodeUID:    {"b9b0c6d0-77a5-4c8a-9a0f-3f0c5a1b2c3d"},
			nodeidentity.ExtraPod:        {"agent-x7k2p"},
			nodeidentity.ExtraPodUID:     {"0d9e8f7a-6b5c-4d3e-8f2a-1b0c9d8e7f6a"},
		}
		for _, as := range []struct {
			name string
			into *[][]byte
		}{{"agent-0", &q.scoped}, {"coredns", &q.other}} {
			review.Spec.User = nodeidentity.ServiceAccountUser("kube-system", as.name)
			text, err := stdjson.Marshal(&review)
			if err != nil {
				return q, fmt.Errorf("encoding a question: %w", err)
			}
			*as.into = append(*as.into, text)
		}
	}
	return q, nil
}

// benchScope is a scope of the shape of an agent's.
func benchScope(i int) *v1alpha1.NodeScope {
	name := fmt.Sprintf("agent-%d", i)
	return &v1alpha1.NodeScope{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeScopeSpec{
			Subjects: []v1alpha1.Subject{{Namespace: "kube-system", Name: name}}, Mode: v1alpha1.Enforce, AsNode: true,
			NamedAsNode: []v1alpha1.NamedRule{
				{APIGroups: []string{"cilium.io"}, Resources: []string{"ciliumnodes", "ciliumnodes/status"}, Verbs: []string{"*"}},
			},
			SelectsNode: []v1alpha1.SelectedRule{
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}, Field: "spec.nodeName"},
			},
			PodsOnNode: []v1alpha1.PodRule{{Resources: []string{"pods", "pods/status"}, Verbs: []string{"get", "patch"}}},
			Anywhere: []v1alpha1.AnywhereRule{
				{APIGroups: []string{""}, Resources: []string{"services", "namespaces"}, Verbs: []string{"get", "list", "watch"}},
			},
		},
	}
}

func benchPolicy(n int) *nodescope.Policy {
	scopes := make([]*nodescope.Scope, 0, n)
	for i := range n {
		scope, errs := nodescope.Compile(benchScope(i))
		if len(errs) > 0 {
			panic(errs.ToAggregate())
		}
		scopes = append(scopes, scope)
	}
	policy, _ := nodescope.NewPolicy(scopes)
	return policy
}

func benchSet(n int) *quarantine.Set {
	objects := make([]*v1alpha1.Quarantine, n)
	for i := range objects {
		objects[i] = &v1alpha1.Quarantine{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-gone-%d", i)},
			Spec:       v1alpha1.QuarantineSpec{Node: fmt.Sprintf("gone-%d", i), Reason: "credentials were found elsewhere"},
		}
	}
	set, _ := quarantine.NewSet(objects, quarantine.Limit{Nodes: n}, time.Now())
	return set
}

// handlers returns the handler of today, and one with NodeScopes and Quarantines.
func (b *bench) handlers(state *source.State) (today, with http.Handler, err error) {
	var policy atomic.Pointer[nodescope.Policy]
	policy.Store(benchPolicy(benchScopes))
	set := benchSet(benchQuarantines)
	known := func() error { return nil }
	for _, h := range []struct {
		into        *http.Handler
		containment evaluate.Containment
	}{
		{&today, evaluate.Containment{}},
		{&with, evaluate.Containment{
			Scopes: &policy, ScopesKnown: known, Quarantines: func() (*quarantine.Set, error) { return set, nil },
		}},
	} {
		e, err := evaluate.New(b.ctx, state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest), Containment: h.containment})
		if err != nil {
			return nil, nil, err
		}
		*h.into = webhook.Authorize(decision.Authorize(e.AuthorizeNode), webhook.Options{})
	}
	return today, with, nil
}

// alternateHandlers measures nanoseconds per request: ours with now, inTree with before.
func (b *bench) alternateHandlers(with, today http.Handler, now, before [][]byte) rounds {
	serving := pair[http.Handler]{ours: with, inTree: today}
	asked := pair[[][]byte]{ours: now, inTree: before}
	settle()
	return alternate(b.rounds, func(s side) float64 {
		return perOperation(len(asked[s]), b.atLeast, func() {
			for _, body := range asked[s] {
				post(serving[s], body)
			}
		})
	})
}

// post calls a handler without network.
func post(h http.Handler, body []byte) {
	request, err := http.NewRequest(http.MethodPost, "/authorize", bytes.NewReader(body))
	if err != nil {
		panic(err) // the method and the path are valid
	}
	request.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(&discarded{header: http.Header{}}, request)
}

// discarded is an answer that nobody reads.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header { return d.header }

func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }

func (d *discarded) WriteHeader(status int) {
	if status != http.StatusOK {
		panic(fmt.Sprintf("status %d", status))
	}
}

func heapOfContainment() table {
	t := table{
		caption: "**Memory** of the rules by which the server decides, the objects included.",
		header:  []string{"of", "each", "of 1,000"},
	}
	for _, kind := range []struct {
		name string
		make func(n int) any
	}{
		{"NodeScopes", func(n int) any { return benchPolicy(n) }},
		{"Quarantines", func(n int) any { return benchSet(n) }},
	} {
		const n = 1000
		before := heap()
		kept := kind.make(n)
		size := heap() - before
		t.add(kind.name, kibibytes(size/n), kibibytes(size))
		_ = fmt.Sprintf("%p", kept) // it is in use until here
	}
	return t
}

func kibibytes(n float64) string { return fmt.Sprintf("%.2g KiB", n/1024) }

func timeOfContainment() table {
	t := table{caption: "**Time to compile**, after a change.", header: []string{"of", "1,000", "10,000"}}
	for _, kind := range []struct {
		name string
		make func(n int)
	}{
		{"NodeScopes", func(n int) { benchPolicy(n) }},
		{"Quarantines", func(n int) { benchSet(n) }},
	} {
		took := func(n int) string {
			return nanoseconds(perOperation(1, 20*time.Millisecond, func() { kind.make(n) }))
		}
		t.add(kind.name, took(1000), took(10_000))
	}
	return t
}
