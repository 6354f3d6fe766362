package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/machines"
)

const joinsMethod = `Two control planes with the manifests in ` + "`deploy/bootstrap`" + `, one of them with many bootstrap
tokens in kube-system that are good until tomorrow, each with one ` + "`node-authorizer server`" + ` as
bootstrap service and approver. Machines join both alternately, several at once. Each has its own
address and instance, shows a signed identity document to the service over a new TLS
connection, and with the token that it gets asks kube-apiserver for a client certificate and
watches its request until the certificate is there, as a kubelet does. EC2 is stood in for by a
server in the load generator, which takes its share of the cores as everything else on the
machine does. The service's limits of requests and kube-controller-manager's limits of its own
requests to kube-apiserver are raised so that they do not count. Requests are counted from the
audit log of kube-apiserver.`

const (
	// joinRounds are so many that other work of the machine hits both planes
	// alike.
	joinRounds = 10
	// atOnce is how many machines join at the same time.
	atOnce = 32
	// firstNetwork is the second byte of the machines' addresses on the first plane.
	firstNetwork = 201
)

const whyReads = "The approver reads each request again before it decides: its informer keeps a bounded part of requests, " +
	"which may be as large as their makers like."

// joins measures machines that join.
func (b *bench) joins() (s section, err error) {
	s = section{title: "Joins", method: joinsMethod}
	var clusters pair[*joinCluster]
	defer func() {
		for _, c := range clusters {
			if c != nil {
				err = errors.Join(err, c.Stop())
			}
		}
	}()
	// The side that is "in-tree" elsewhere is the plane without tokens here.
	tokens := pair[int]{ours: b.sizes.tokens}
	for _, at := range sides {
		if clusters[at], err = b.newJoinCluster(firstNetwork+byte(at), tokens[at]); err != nil {
			return s, err
		}
	}
	var all pair[[]joinRound]
	for i := range joinRounds + 1 { // the first round warms up
		n := max(1, b.sizes.machines/joinRounds)
		for j := range sides {
			at := sides[(i+j)%len(sides)]
			b.log("joins: round %d of %d, %d machines, %d tokens", i, joinRounds, n, clusters[at].tokens)
			round, err := clusters[at].round(b.ctx, n)
			if err != nil {
				return s, err
			}
			if i > 0 {
				all[at] = append(all[at], round)
			}
		}
	}
	b.reportJoins(&s, clusters, all)
	return s, nil
}

func (b *bench) reportJoins(s *section, clusters pair[*joinCluster], all pair[[]joinRound]) {
	var faster, dearer []float64
	for i := range all[ours] {
		with, without := all[ours][i], all[inTree][i]
		faster = append(faster, with.perSecond()/without.perSecond())
		dearer = append(dearer, with.each(with.processor+with.apiServer)/without.each(without.processor+without.apiServer))
	}
	with := thousands(float64(b.sizes.tokens))
	s.targets = append(s.targets,
		atLeast(fmt.Sprintf("joins a second with %s bootstrap tokens, against none", with), 0.9, spreadOf(faster), whyJoins),
		atMost(fmt.Sprintf("processor time a join with %s bootstrap tokens, against none", with), 1.1, spreadOf(dearer).median, times,
			whyJoins))
	speed := table{
		caption: fmt.Sprintf("**%s machines join**, %d at once: until a machine has its token, and until it has its certificate.",
			thousands(float64(b.sizes.machines)), atOnce),
		header: []string{
			"tokens there", "joins a second", "token: median", "99th percentile", "certificate: median", "99th percentile",
			"processor time a join: server", "kube-apiserver", "memory of the server at the end",
		},
	}
	for _, at := range []side{inTree, ours} {
		rounds, together := all[at], merged(all[at])
		speed.add(thousands(float64(clusters[at].tokens)),
			fmt.Sprintf("%.0f", medianRound(rounds, joinRound.perSecond)),
			nanoseconds(percentile(together.token, 0.5)), nanoseconds(percentile(together.token, 0.99)),
			nanoseconds(percentile(together.certificate, 0.5)), nanoseconds(percentile(together.certificate, 0.99)),
			nanoseconds(together.each(together.processor)), nanoseconds(together.each(together.apiServer)),
			megabytes(residentMemory(clusters[at].pid)))
	}
	asked := table{
		caption: "**Requests of the server to kube-apiserver**, for each join.",
		header:  []string{"request", "without tokens", "with " + with},
	}
	var kinds []string
	for _, at := range sides {
		for kind := range all[at][0].requests {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		figure := func(r joinRound) float64 { return r.requests[kind] }
		asked.add(kind, fmt.Sprintf("%.2f", medianRound(all[inTree], figure)), fmt.Sprintf("%.2f", medianRound(all[ours], figure)))
	}
	s.targets = append(s.targets,
		atMost("writes for a join until its certificate is approved", 4, medianRound(all[ours], joinRound.writes), count, ""),
		atMost("reads for a join until its certificate is approved", 3.5, medianRound(all[ours], joinRound.reads), count, whyReads))
	s.tables = append(s.tables, speed, asked)
	s.remarks = append(s.remarks,
		"Of `update nodeattestations/status`, one binds the token to a key before the certificate is approved, and one "+
			"comes after the certificate: the approver records in the ledger that the machine has its certificate.")
}

const whyJoins = `A bootstrap token is found by its name; what more of them cost is kube-apiserver's.`

// joinCluster is one control plane with its server.
type joinCluster struct {
	*machines.Cluster
	network   byte
	tokens    int
	pid       int // of the server
	apiServer *server
	joined    int // machines, over all rounds
}

func (b *bench) newJoinCluster(network byte, tokens int) (*joinCluster, error) {
	b.log("joins: starting a control plane with %d tokens", tokens)
	cluster, err := machines.Start(b.ctx, machines.Options{
		Root: b.root, Network: network, Progress: b.status,
		ControllerManagerArgs: []string{"--kube-api-qps=10000", "--kube-api-burst=10000"},
	})
	if err != nil {
		return nil, err
	}
	c := &joinCluster{Cluster: cluster, network: network, tokens: tokens}
	if err := c.prepare(b.ctx); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return c, nil
}

func (c *joinCluster) prepare(ctx context.Context) error {
	if err := c.fillTokens(ctx); err != nil {
		return err
	}
	replica, err := c.AddReplica(ctx, "bootstrap", machines.WithConfig("  attestor: aws\n",
		"  attestor: aws\n  rateLimit: {perSecond: 100000, burst: 100000}\n"), c.direct)
	if err != nil {
		return err
	}
	c.Replicas = append(c.Replicas, replica)
	if c.pid, err = processOf(replica.ConfigArgument()); err != nil {
		return err
	}
	c.apiServer, err = apiServerOf(c.Plane)
	return err
}

// direct lets the server ask kube-apiserver itself, without the proxy with which
// tests disturb it.
func (c *joinCluster) direct(r *machines.Replica) error {
	text, err := os.ReadFile(r.Kubeconfig())
	if err != nil {
		return err
	}
	return os.WriteFile(r.Kubeconfig(), []byte(strings.ReplaceAll(string(text), r.APIProxy.Address(), c.Server())), 0o600)
}

// joinRound has the measurements of machines that joined at the same time.
type joinRound struct {
	took time.Duration
	// token and certificate are how long each machine took until it had one.
	token, certificate []time.Duration
	// processor and apiServer are the processor time of the server and of
	// kube-apiserver.
	processor, apiServer time.Duration
	// requests are the numbers of requests of the server for one join, by "verb resource".
	requests map[string]float64
}

func (r joinRound) perSecond() float64 { return float64(len(r.token)) / r.took.Seconds() }

// each is what one join took of something, in nanoseconds.
func (r joinRound) each(of time.Duration) float64 {
	return float64(of.Nanoseconds()) / float64(len(r.token))
}

// writes omits the one update of the ledger after each certificate.
func (r joinRound) writes() float64 {
	const after = 1
	return r.sum(func(verb string) bool { return slices.Contains([]string{"create", "update", "patch", "delete"}, verb) }) - after
}

func (r joinRound) reads() float64 {
	return r.sum(func(verb string) bool { return verb == "get" || verb == "list" })
}

func (r joinRound) sum(of func(verb string) bool) float64 {
	var total float64
	for kind, n := range r.requests {
		if verb, _, _ := strings.Cut(kind, " "); of(verb) {
			total += n
		}
	}
	return total
}

// round lets n new machines join.
func (c *joinCluster) round(ctx context.Context, n int) (joinRound, error) {
	joining, err := c.launch(n)
	if err != nil {
		return joinRound{}, err
	}
	r := joinRound{token: make([]time.Duration, n), certificate: make([]time.Duration, n)}
	place, busy, apiServerBusy := c.Audit.Size(), processTimeOf(c.pid), processTimeOf(c.apiServer.pid)
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	begun := time.Now()
	for i, m := range joining {
		group.Go(func() (err error) {
			r.token[i], r.certificate[i], err = m.join(limited)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return r, err
	}
	r.took = time.Since(begun)
	if err := c.awaitLedger(ctx); err != nil {
		return r, err
	}
	r.processor, r.apiServer = processTimeOf(c.pid)-busy, processTimeOf(c.apiServer.pid)-apiServerBusy
	r.requests, err = c.requests(place, n)
	return r, err
}

// awaitLedger waits until the ledger says of all machines that they have their
// certificates.
func (c *joinCluster) awaitLedger(ctx context.Context) error {
	return await.Until(ctx, "all machines are certified", func(ctx context.Context) error {
		entries, err := c.Ledger.List(ctx)
		if err != nil {
			return err
		}
		certified := 0
		for i := range entries.Items {
			if entries.Items[i].Phase() == v1alpha1.Certified {
				certified++
			}
		}
		if certified < c.joined {
			return fmt.Errorf("%d of %d are", certified, c.joined)
		}
		return nil
	})
}

// requests counts the requests of the server for each of n joins. Its leases are not
// about a join.
func (c *joinCluster) requests(place int64, n int) (map[string]float64, error) {
	events, err := c.Audit.Events(place)
	if err != nil {
		return nil, err
	}
	counted := map[string]int{}
	for _, e := range events {
		if e.User.Username != machines.ServiceUser || e.ObjectRef == nil || e.ObjectRef.Resource == "leases" || e.Verb == "watch" {
			continue
		}
		kind := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			kind += "/" + e.ObjectRef.Subresource
		}
		counted[kind]++
	}
	// To a hundredth: two that write the same now and then need another try.
	each := map[string]float64{}
	for kind, times := range counted {
		each[kind] = math.Round(100*float64(times)/float64(n)) / 100
	}
	return each, nil
}

// merged has the times of all rounds.
func merged(rounds []joinRound) joinRound {
	var all joinRound
	for _, r := range rounds {
		all.token, all.certificate = append(all.token, r.token...), append(all.certificate, r.certificate...)
		all.processor, all.apiServer = all.processor+r.processor, all.apiServer+r.apiServer
	}
	slices.Sort(all.token)
	slices.Sort(all.certificate)
	return all
}

func medianRound(rounds []joinRound, figure func(joinRound) float64) float64 {
	var figures []float64
	for _, r := range rounds {
		figures = append(figures, figure(r))
	}
	return median(figures)
}

// percentile of sorted times, in nanoseconds.
func percentile(sorted []time.Duration, p float64) float64 {
	return float64(sorted[int(p*float64(len(sorted)-1))].Nanoseconds())
}
