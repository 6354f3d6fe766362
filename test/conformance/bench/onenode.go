package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const oneNodeMethod = `A real kube-apiserver holds nodes, pods, and for one pod in ten a claim, a volume and its
attachment; each namespace has roles and bindings. A question is answered from a state of the whole
cluster, as ` + "`who-can`" + ` reads it, and from one that reads the parts that the answer depends on, as
` + "`can-i`, `explain` and `reach`" + ` do, in turns: connecting, discovery, lists and answer. Both answers
must be the same. Time is the time that has passed, in the API server too; bytes are the bytes
that arrived on the connections, with TLS.`

const listsRemark = `API servers select neither volumes by their claim or secret, nor attachments by their node. To know
that nothing refers to a secret, all volumes are read; for ` + "`reach`" + `, all volumes and attachments. The
columns do not name the secrets of a volume, and are made for people.`

const whyOneNode = "what is read beside the node's pods is most of the rest"

// oneNode measures questions about one node on a live cluster.
func (b *bench) oneNode() (s section, err error) {
	s = section{title: "A question about one node", method: oneNodeMethod}
	c, err := b.newServingCluster(layout{nodes: b.sizes.servedNodes, namespaces: b.sizes.namespaces, pods: b.sizes.pods})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.plane.Stop()) }()
	config := c.plane.AdminConfig()
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return s, err
	}
	l := volumeLayout{c.layout}
	b.log("one node: creating volumes, attachments and roles")
	if err := l.fill(b.ctx, client); err != nil {
		return s, err
	}
	t := table{
		caption: fmt.Sprintf("**%s nodes, %s pods, %s volumes, %s role bindings.**",
			thousands(float64(l.nodes)), thousands(float64(l.pods)), thousands(float64(l.volumeCount())),
			thousands(float64(l.namespaces*bindingsPerNamespace))),
		header: []string{"question", "whole", "parts", "ratio", "whole, read", "parts, read", "ratio"},
	}
	for _, q := range l.questions() {
		r, err := b.oneNodeRounds(q, c.plane.AdminConfig())
		if err != nil {
			return s, fmt.Errorf("%s: %w", q.what, err)
		}
		b.log("one node: %s: bytes %v", q.what, r.bytes())
		t.add(q.what, nanoseconds(median(r.whole.time)), nanoseconds(median(r.parts.time)), r.times().String(),
			megabytes(median(r.whole.bytes)), megabytes(median(r.parts.bytes)), r.bytes().String())
		if q.target {
			s.targets = append(s.targets,
				atLeast("`can-i` of one node, "+q.what+", time against reading the whole cluster", 20, r.times(), whyOneNode),
				atLeast("`can-i` of one node, "+q.what+", bytes against reading the whole cluster", 100, r.bytes(), whyOneNode))
		}
	}
	lists, err := b.listedBytes(c.plane.AdminConfig())
	if err != nil {
		return s, err
	}
	runs, err := b.oneNodeProgram(l, c.plane.AdminKubeconfig())
	s.tables = append(s.tables, t, lists, runs)
	s.remarks = append(s.remarks, listsRemark)
	return s, err
}

// oneNodeProgram runs the program itself.
func (b *bench) oneNodeProgram(l volumeLayout, kubeconfig string) (table, error) {
	t := table{caption: "**The program,** from its start to its end.", header: []string{"command", "time", "processor time", "peak memory"}}
	secret := []string{"secrets/" + secretName(l.place(0).owner), "-n", namespaceName(0), "--kubeconfig", kubeconfig}
	node := nodeName(l.place(0).node)
	for _, q := range []struct {
		what string
		args []string
	}{
		{"`can-i` of one node", append([]string{"can-i", "get", "--node", node}, secret...)},
		{"`reach` of one node", []string{"reach", node, "--kubeconfig", kubeconfig}},
		{"`who-can`, which reads the whole cluster", append([]string{"who-can", "get"}, secret...)},
	} {
		used, err := b.program(q.args...)
		if err != nil {
			return t, err
		}
		t.add(q.what, fmt.Sprintf("%.2f s", used.time.Seconds()), fmt.Sprintf("%.2f s", used.processor.Seconds()), megabytes(used.peak))
	}
	return t, nil
}

// nodeQuestion is a question about a node.
type nodeQuestion struct {
	what string
	// target is true if API servers can select the pods and volumes that the answer depends on.
	target bool
	ask    func(context.Context, *evaluate.Evaluator) (any, error)
}

func (l volumeLayout) questions() []nodeQuestion {
	p := l.place(0)
	node, namespace := nodeName(p.node), namespaceName(p.namespace)
	asking := func(req access.Request) func(context.Context, *evaluate.Evaluator) (any, error) {
		req.User, req.Groups = nodeidentity.User(node)
		req.ResourceRequest, req.Version = true, "*"
		return func(ctx context.Context, e *evaluate.Evaluator) (any, error) {
			result, err := e.Chain.Explain(ctx, &req)
			return explained{result, e.Chain.Names()}, errors.Join(err, e.State.ReadErr())
		}
	}
	get := func(resource, name string) access.Request {
		return access.Request{Verb: "get", Resource: resource, Namespace: namespace, Name: name}
	}
	volume := get("persistentvolumes", volumeName(0))
	volume.Namespace = ""
	return []nodeQuestion{
		{"a secret of its pod", true, asking(get("secrets", secretName(p.owner)))},
		{"a pod", true, asking(get("pods", podName(p.name)))},
		{"the volume of its pod", true, asking(volume)},
		{"a config map, refused", true, asking(get("configmaps", "none"))},
		{"a secret, refused", false, asking(get("secrets", "none"))},
		{"its reach", false, func(_ context.Context, e *evaluate.Evaluator) (any, error) {
			if err := e.ReadNode(node); err != nil {
				return nil, err
			}
			return e.Node.Reach(node), e.State.ReadErr()
		}},
	}
}

// explained is an answer with the chain.
type explained struct {
	chain.Result
	authorizers []string
}

// cost is the cost of each round.
type cost struct{ time, bytes []float64 }

type oneNodeTimes struct{ whole, parts cost }

func (r oneNodeTimes) times() spread { return ratios(r.whole.time, r.parts.time) }
func (r oneNodeTimes) bytes() spread { return ratios(r.whole.bytes, r.parts.bytes) }

func ratios(of, by []float64) spread {
	var all []float64
	for i := range of {
		all = append(all, of[i]/by[i])
	}
	return spreadOf(all)
}

// oneNodeRounds answers the question from the whole cluster and from parts, in turns. A first
// round, which is not counted, warms the API server up.
func (b *bench) oneNodeRounds(q nodeQuestion, config *rest.Config) (r oneNodeTimes, err error) {
	sides := []struct {
		read readState
		into *cost
	}{{source.List, &r.whole}, {source.Open, &r.parts}}
	answers := make([]any, len(sides))
	for i := range b.fillRounds + 1 {
		b.log("one node: %s, round %d of %d", q.what, i, b.fillRounds)
		for j := range sides {
			at := (i + j) % len(sides)
			settle()
			counting, received := countBytes(config)
			begin := time.Now()
			if answers[at], err = b.answerLive(q, counting, sides[at].read); err != nil {
				return r, err
			}
			if into := sides[at].into; i > 0 {
				into.time = append(into.time, float64(time.Since(begin).Nanoseconds()))
				into.bytes = append(into.bytes, float64(received.Load()))
			}
		}
		if !reflect.DeepEqual(answers[0], answers[1]) {
			return r, fmt.Errorf("the whole cluster gives the answer %+v, parts %+v", answers[0], answers[1])
		}
	}
	return r, b.ctx.Err()
}

// readState is one of the two ways to read a cluster.
type readState func(context.Context, *rest.Config, source.LiveOptions) (*source.State, error)

func (b *bench) answerLive(q nodeQuestion, config *rest.Config, read readState) (any, error) {
	state, err := read(b.ctx, config, source.LiveOptions{})
	if err != nil {
		return nil, err
	}
	e, err := evaluate.New(b.ctx, state, evaluate.Options{Features: kubeversion.For(state.Version)})
	if err != nil {
		return nil, err
	}
	return q.ask(b.ctx, e)
}

// countBytes returns the configuration of a client with connections of its own, and what arrives
// on them.
func countBytes(config *rest.Config) (*rest.Config, *atomic.Int64) {
	counting, received := rest.CopyConfig(config), &atomic.Int64{}
	dialer := &net.Dialer{Timeout: time.Minute}
	counting.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return countingConn{conn, received}, nil
	}
	return counting, received
}

type countingConn struct {
	net.Conn
	received *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}
