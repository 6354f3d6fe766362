package main

import (
	"errors"
	"fmt"
	"os"
	"time"
)

const servingMethod = `A real kube-apiserver holds the nodes and pods; ` + "`node-authorizer server`" + ` follows it and
answers over TLS, with client certificates and keep-alive. The load generator runs on the
same machine and takes its share of the cores; it sends requests rendered beforehand and
reads little of the answers. The servers are called alternately, over the same number of connections.
The floor is a server like it (TLS, limits, counted and timed requests) that decodes the
request and gives one answer, made beforehand, and holds no cluster in memory. The API
server gets the same SubjectAccessReviews at its own endpoint and answers them with the
in-tree Node authorizer. Throughput is for the whole machine, load generator included;
processor time is for the answering process alone. Refusals do not wait here for changes that
the watch has not brought (` + "`freshnessWait: 0s`" + `); by default, each that lacks a relation
takes up to 250 ms, without work.`

// connections is how many callers ask at once.
const connections = 16

// endpoint is one of the endpoints that this section compares.
type endpoint int

const (
	theServer endpoint = iota
	theFloor
	theAPIServer
)

// serving measures the server beside a floor and beside the API server.
func (b *bench) serving() (s section, err error) {
	s = section{title: "Serving", method: servingMethod}
	c, err := b.newServingCluster(layout{nodes: b.sizes.servedNodes, namespaces: b.sizes.namespaces, pods: b.sizes.pods})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.plane.Stop()) }()
	servers, err := c.startEndpoints(b)
	if err != nil {
		return s, err
	}
	s.tables = append(s.tables, c.startingTable(servers[theServer]))
	authorize := table{caption: "**`/authorize`.**", header: servedHeader}
	for _, q := range c.accessQuestions(b.sizes.questions) {
		r, err := b.compare(q, servers, c)
		if err != nil {
			return s, err
		}
		authorize.addServed(q.kind, r)
		s.targets = append(s.targets,
			atLeast("`/authorize` against the floor, "+q.kind, 0.8, r.throughput(theFloor), floorMissed),
			atLeast("`/authorize` against the API server's own endpoint, "+q.kind, 4, r.throughput(theAPIServer), apiServerMissed))
	}
	admit := table{caption: "**`/admit`.**", header: servedHeader}
	for _, q := range c.admissionQuestions(b.sizes.questions) {
		r, err := b.compare(q, servers[:theAPIServer], c)
		if err != nil {
			return s, err
		}
		admit.addServed(q.kind, r)
		s.targets = append(s.targets, atLeast("`/admit` against the floor, "+q.kind, 0.8, r.throughput(theFloor), floorMissed))
	}
	s.tables = append(s.tables, authorize, admit)
	return s, nil
}

// startEndpoints starts the servers.
func (c *servingCluster) startEndpoints(b *bench) ([]*server, error) {
	b.log("serving: starting the servers")
	ours, err := c.serve(b, "node-authorizer", b.binary, "server", "--config")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	floor, err := c.serve(b, "floor", self, "-floor")
	if err != nil {
		return nil, err
	}
	apiServer, err := c.apiServer()
	return []*server{ours, floor, apiServer}, err
}

// posts are requests of one kind.
type posts struct {
	kind   string
	path   string // on our servers
	bodies [][]byte
	// check looks at the first answers, except for the answers of the floor.
	check func(body []byte) error
}

// servedRound is the result of one endpoint in one round.
type servedRound struct {
	ran
	processor time.Duration
}

// perRequest is the processor time of the server for one request.
func (r servedRound) perRequest() float64 {
	return float64(r.processor.Nanoseconds()) / float64(r.requests)
}

// servedRounds has the rounds of each endpoint.
type servedRounds [][]servedRound

// throughput compares the server with another endpoint, round by round.
func (r servedRounds) throughput(against endpoint) spread {
	var ratios []float64
	for i := range r[theServer] {
		ratios = append(ratios, r[theServer][i].perSecond()/r[against][i].perSecond())
	}
	return spreadOf(ratios)
}

func (r servedRounds) median(of endpoint, figure func(servedRound) float64) float64 {
	var all []float64
	for _, one := range r[of] {
		all = append(all, figure(one))
	}
	return median(all)
}

// compare calls the servers alternately. A first round, which is not counted, warms
// them up.
func (b *bench) compare(q posts, servers []*server, c *servingCluster) (servedRounds, error) {
	b.log("serving: %s %s", q.path, q.kind)
	r := make(servedRounds, len(servers))
	for i := range b.rounds + 1 {
		for j := range servers {
			at := endpoint((i + j) % len(servers))
			one, err := b.round(q, servers[at], at, c)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", q.path, q.kind, err)
			}
			if i > 0 {
				r[at] = append(r[at], one)
			}
		}
	}
	return r, nil
}

func (b *bench) round(q posts, s *server, who endpoint, c *servingCluster) (servedRound, error) {
	path, check := q.path, q.check
	switch who {
	case theAPIServer:
		path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	case theFloor:
		check = func([]byte) error { return nil }
	}
	l := load{address: s.address, tls: c.client, connections: connections}
	for _, body := range q.bodies {
		l.requests = append(l.requests, rendered("POST", path, s.address, body))
	}
	before := processTimeOf(s.pid)
	got, err := l.run(b.ctx, b.serveFor, check)
	return servedRound{got, processTimeOf(s.pid) - before}, err
}

var servedHeader = []string{"", "endpoint", "requests a second", "median", "99th percentile", "processor time a request"}

func (t *table) addServed(kind string, r servedRounds) {
	for who, name := range []string{"server", "floor", "API server"} {
		if who >= len(r) {
			return
		}
		at := endpoint(who)
		t.add(kind, name,
			thousands(r.median(at, servedRound.rate)),
			nanoseconds(r.median(at, servedRound.half)),
			nanoseconds(r.median(at, servedRound.slow)),
			nanoseconds(r.median(at, servedRound.perRequest)))
	}
}

func (r servedRound) rate() float64 { return r.perSecond() }
func (r servedRound) half() float64 { return float64(r.percentile(0.5).Nanoseconds()) }
func (r servedRound) slow() float64 { return float64(r.percentile(0.99).Nanoseconds()) }

// startingTable shows the cost of following a cluster of that size.
func (c *servingCluster) startingTable(s *server) table {
	t := table{
		caption: fmt.Sprintf("**Starting, with %s nodes and %s pods in the API server,** until `/readyz` is content.",
			thousands(float64(c.layout.nodes)), thousands(float64(c.layout.pods))),
		header: []string{"time", "processor time", "peak memory", "memory when ready"},
	}
	t.add(fmt.Sprintf("%.1f s", s.starting.time.Seconds()), fmt.Sprintf("%.1f s", s.starting.processor.Seconds()),
		megabytes(s.starting.peak), megabytes(s.resident))
	return t
}
