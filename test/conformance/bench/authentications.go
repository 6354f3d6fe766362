package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/authentication"
)

const authenticationsMethod = `TokenReviews of AWS IAM tokens, each of an instance's role that aws-auth maps to a node, put
to ` + "`node-authorizer server`" + ` over TLS with client certificates and keep-alive. STS and EC2 are
servers in the load generator, which check every signature and take their share of the cores;
the server reaches them over TLS, through a proxy. *Warm*: the tokens have been asked about
before. *Cold*: each token is new and asked about once, so that each answer takes a request to
STS; the instances are known. The floor is a server like it (TLS, limits, counted and timed
requests) that decodes the review and gives one answer, made beforehand. All are asked in
turns, over as many connections. The server's limit of requests to STS is raised so that it
does not count.`

const whyAuthentications = `The rest is finding the token in the cache by its SHA-256, mapping the caller, and rendering the user.`

// mappedRole is the role of all instances.
const mappedRole = "nodes"

// authentications measures the token webhook beside a floor.
func (b *bench) authentications() (s section, err error) {
	s = section{title: "Authentications", method: authenticationsMethod}
	b.log("authentications: starting a control plane and the server")
	c, err := authentication.Start(b.ctx, authentication.Options{
		Root: b.root, Progress: b.status,
		IAM: "  sts: {maxInFlight: 256, perSecond: 100000, burst: 100000, cacheTTL: 10m, cacheSize: 100000}\n  ec2: " +
			"{cacheTTL: 1h, perSecond: 1000, burst: 1000}\n",
	})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	mapping := "- rolearn: " + authentication.RoleARN(mappedRole) +
		"\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: [system:bootstrappers, system:nodes]\n"
	if err := c.Map(b.ctx, map[string]string{"mapRoles": mapping}); err != nil {
		return s, err
	}
	a := &authenticationBench{bench: b, cluster: c}
	for range b.sizes.instances {
		instance, _ := c.Launch(mappedRole)
		a.instances = append(a.instances, instance)
	}
	if err := a.openServers(); err != nil {
		return s, err
	}
	return s, a.measure(&s)
}

// authenticationBench is the servers with the instances that are asked about.
type authenticationBench struct {
	*bench
	cluster   *authentication.Cluster
	instances []fakeaws.Instance
	client    *tls.Config
	servers   []*server // ours and the floor
}

func (a *authenticationBench) openServers() error {
	c := &servingCluster{plane: a.cluster.Plane}
	var err error
	if a.client, err = c.clientTLS(); err != nil {
		return err
	}
	c.client = a.client
	ours := &server{address: a.cluster.Authenticator.Address}
	if ours.pid, err = processOf(a.cluster.Authenticator.ConfigArgument()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	floor, err := c.serve(a.bench, "floor", self, "-floor")
	a.servers = []*server{ours, floor}
	return err
}

func (a *authenticationBench) measure(s *section) error {
	warm, err := a.reviews(len(a.instances))
	if err != nil {
		return err
	}
	// Each token is asked about once, however long that takes: EC2 is, too. No others
	// follow until all rounds are over, so that the server remembers as many tokens as
	// there are instances.
	if _, err := a.ask(theServer, warm, len(warm)/connections); err != nil {
		return err
	}
	known, err := a.alternate("warm", func() ([][]byte, int, error) { return warm, 0, nil })
	if err != nil {
		return err
	}
	first, err := a.alternate("cold", func() ([][]byte, int, error) {
		fresh, err := a.reviews(a.sizes.freshTokens)
		return fresh, len(fresh)/connections - 1, err
	})
	if err != nil {
		return err
	}
	t := table{caption: fmt.Sprintf("**`/authenticate`, %s instances.**", thousands(float64(len(a.instances)))), header: servedHeader}
	t.addServed("warm", known)
	t.addServed("cold", first)
	s.tables = append(s.tables, t)
	s.targets = append(s.targets, atLeast("`/authenticate` against the floor, warm", 0.7, known.throughput(theFloor), whyAuthentications))
	s.remarks = append(s.remarks,
		"Cold, with a request to the local STS for each answer, the server reaches "+first.throughput(theFloor).String()+" of the floor.")
	return nil
}

// alternate puts reviews, made anew for each round, to the servers alternately.
func (a *authenticationBench) alternate(kind string, reviews func() (bodies [][]byte, each int, err error)) (servedRounds, error) {
	r := make(servedRounds, len(a.servers))
	for i := range a.rounds + 1 {
		a.log("authentications: %s, round %d of %d", kind, i, a.rounds)
		bodies, each, err := reviews()
		if err != nil {
			return nil, err
		}
		for j := range a.servers {
			at := endpoint((i + j) % len(a.servers))
			one, err := a.ask(at, bodies, each)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				r[at] = append(r[at], one)
			}
		}
	}
	return r, nil
}

// ask puts reviews to a server: for a time, or each connection so many.
func (a *authenticationBench) ask(who endpoint, bodies [][]byte, each int) (servedRound, error) {
	s := a.servers[who]
	check := func(body []byte) error {
		if who == theServer && !strings.Contains(string(body), `"authenticated":true`) {
			return fmt.Errorf("the token of a node is not taken: %s", body)
		}
		return nil
	}
	l := load{address: s.address, tls: a.client, connections: connections, each: each}
	for _, body := range bodies {
		l.requests = append(l.requests, rendered("POST", "/authenticate", s.address, body))
	}
	before := processTimeOf(s.pid)
	got, err := l.run(a.ctx, a.serveFor, check)
	return servedRound{got, processTimeOf(s.pid) - before}, err
}

// reviews are TokenReviews with new tokens, of one instance after the other.
func (a *authenticationBench) reviews(n int) ([][]byte, error) {
	var bodies [][]byte
	for i := range n {
		text, err := a.cluster.MakeToken(a.ctx, a.instances[i%len(a.instances)])
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(&authenticationv1.TokenReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"},
			Spec:     authenticationv1.TokenReviewSpec{Token: text},
		})
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return bodies, nil
}
