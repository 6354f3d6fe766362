package probe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// ID names a probe. It is stable across releases.
type ID string

// The probes, in the order in which they run.
const (
	// MadeUpNodes verifies that the nodes that other probes name do not exist.
	MadeUpNodes ID = "made-up-nodes"
	// Everyone asks whether a user without any group may do anything.
	Everyone ID = "everyone"
	// NodeIdentity asks whether an authorizer knows nodes by their names.
	NodeIdentity ID = "node-identity"
	// Secret and Secrets ask whether a node may read a secret that is not its own, and all secrets.
	Secret  ID = "secret"
	Secrets ID = "secrets"
	// Approval asks whether nodes, or machines that join, may approve certificates of kubelets.
	Approval ID = "approval"
	// OtherNode and AllPods ask whether a node may read other nodes, and the pods of all nodes.
	OtherNode ID = "other-node"
	AllPods   ID = "all-pods"
	// WriteOtherNode, WriteLabel and WritePod ask whether a node may create another Node, give itself a
	// label that is reserved, and create a pod that is no mirror pod.
	WriteOtherNode ID = "write-other-node"
	WriteLabel     ID = "write-label"
	WritePod       ID = "write-pod"
	// Certificate asks whether a node may request a certificate in the name of another node.
	Certificate ID = "certificate"
	// Audience asks whether a node may request a token for an audience that its pod does not name.
	Audience ID = "audience"
	// Anonymous asks what a caller without a credential gets.
	Anonymous ID = "anonymous"
)

// Outcome says what a probe showed.
type Outcome string

// The outcomes.
const (
	Holds        Outcome = "holds"
	DoesNotHold  Outcome = "doesNotHold"
	Undetermined Outcome = "undetermined"
)

// Cause says why a protection does not hold, if the probe shows it.
type Cause string

// The causes.
const (
	// ByVersion: the version of Kubernetes does not have the protection, or has it off.
	ByVersion Cause = "version"
	// ByGroup: a right of group system:nodes, as RBAC gives it.
	ByGroup Cause = "group"
	// ByEveryone: everyone may do everything.
	ByEveryone Cause = "everyone"
	// ByAudience: an authorizer lets nodes request the audience.
	ByAudience Cause = "audience"
	// ByDiscovery: callers without a credential read the list of APIs, and nothing else.
	ByDiscovery Cause = "discovery"
)

// Probe is one question to an API server with its answer.
type Probe struct {
	// ID names the probe.
	ID ID `json:"id"`
	// Question is put so that yes means that the protection holds.
	Question string `json:"question"`
	// Outcome is the answer.
	Outcome Outcome `json:"outcome"`
	// Why is the reason in one line. It has no made-up names, so that it is the same in each run.
	Why string `json:"why"`
	// Cause is set if the protection does not hold and the probe shows why.
	Cause Cause `json:"cause,omitempty"`
	// Lacks is the right that is missing, and Remedy says how to give it. Both are empty if none is.
	Lacks  string `json:"lacks,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Sent lists the requests in order.
	Sent []Sent `json:"sent"`
}

// Sent is a request with the response to it.
type Sent struct {
	// Method is the method of HTTP.
	Method string `json:"method"`
	// Path is the path of the URL, with the query.
	Path string `json:"path"`
	// As is the user that the request impersonates, in Groups; Anonymous is true for a request
	// without a credential.
	As        string   `json:"as,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	Anonymous bool     `json:"anonymous,omitempty"`
	// Body describes the body in short.
	Body string `json:"body,omitempty"`
	// Status is the status of HTTP; 0 if no response came. Answer is the first line of the response.
	Status int    `json:"status,omitempty"`
	Answer string `json:"answer"`
}

// Results are the results of Run.
type Results struct {
	Host   string  `json:"host"`
	Probes []Probe `json:"probes"`
}

// Get returns a probe; nil if it was not made.
func (r *Results) Get(id ID) *Probe {
	for i := range r.Probes {
		if r.Probes[i].ID == id {
			return &r.Probes[i]
		}
	}
	return nil
}

// Options are the options of Run.
type Options struct {
	// Minor is the version of the API server; 0 if it is not known.
	Minor kubeversion.Minor
	// Progress is called after each probe. It is optional.
	Progress func(done, total int)
}

// prober asks one API server.
type prober struct {
	*client
	minor kubeversion.Minor
	names names
	// everyone is true if a user without any group may do anything.
	everyone bool
	// dryRuns has the nodes and paths for which the API server reads dryRun, with the identity that is
	// impersonated.
	dryRuns map[[2]string]identity
	current *Probe
}

// row is a row of the table of probes.
type row struct {
	id       ID
	question string
	// named is true for probes that use the made-up names.
	named bool
	run   func(*prober, context.Context) error
}

func rows() []row {
	const selectors = kubeversion.AuthorizeNodeWithSelectors
	all := func(resource string) func(*prober) action {
		return func(*prober) action { return action{verb: "list", resource: resource} }
	}
	return []row{
		{MadeUpNodes, "do the nodes that the probes name not exist?", false, (*prober).madeUpNodes},
		{Everyone, "is a user in no group kept from doing everything?", true, (*prober).everyoneRefused},
		{NodeIdentity, "does an authorizer know nodes by their names?", true, (*prober).nodeIdentity},
		{Secret, "is a node kept from reading a secret that is not its own?", true, refusedTo((*prober).ownSecret, "")},
		{Secrets, "is a node kept from listing the secrets of all namespaces?", true, refusedTo(all("secrets"), "")},
		{Approval, "are nodes and joining machines kept from approving certificates of kubelets?", true, (*prober).approval},
		{OtherNode, "is a node kept from reading other nodes?", true, refusedTo(func(p *prober) action {
			return action{verb: "get", resource: "nodes", name: p.names.other}
		}, selectors)},
		{AllPods, "is a node kept from listing the pods of all nodes?", true, refusedTo(all("pods"), selectors)},
		{WriteOtherNode, "is a node kept from creating another Node?", true, (*prober).writeOtherNode},
		{WriteLabel, "is a node kept from giving itself a label of node-restriction.kubernetes.io?", true, (*prober).writeLabel},
		{WritePod, "is a node kept from creating a pod that is no mirror pod?", true, (*prober).writePod},
		{Certificate, "is a node kept from requesting a certificate in another node's name?", true, (*prober).certificate},
		{Audience, "is a node kept from requesting a token for an audience that its pod does not name?", true, (*prober).audience},
		{Anonymous, "are callers without a credential kept from everything but version and health?", false, (*prober).anonymous},
	}
}

// Run makes all probes, one request at a time. It returns an error if the context ends, or if the
// cluster was changed, which no API server does that honours dryRun.
func Run(ctx context.Context, config *rest.Config, o Options) (*Results, error) {
	c, err := newClient(config)
	if err != nil {
		return nil, err
	}
	p := &prober{client: c, minor: o.Minor, dryRuns: map[[2]string]identity{}}
	results := &Results{Host: config.Host, Probes: []Probe{}}
	for _, r := range rows() {
		p.current = &Probe{ID: r.id, Question: r.question, Sent: []Sent{}}
		p.sent = &p.current.Sent
		if first := results.Get(MadeUpNodes); r.named && first.Outcome != Holds {
			p.lacking(first.Lacks, first.Remedy, "%s", first.Why)
		} else if err := r.run(p, ctx); err != nil {
			return nil, fmt.Errorf("probe %s of cluster %s: %w", r.id, config.Host, err)
		}
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("probe %s of cluster %s: %w", r.id, config.Host, err)
		}
		p.current.Why = p.names.replace(p.current.Why)
		results.Probes = append(results.Probes, *p.current)
		if o.Progress != nil {
			o.Progress(len(results.Probes), len(rows()))
		}
	}
	return results, nil
}

func (p *prober) conclude(o Outcome, why string, args ...any) {
	p.current.Outcome, p.current.Why = o, fmt.Sprintf(why, args...)
}

// breaks sets that the protection does not hold, and the cause.
func (p *prober) breaks(cause Cause, why string, args ...any) {
	p.conclude(DoesNotHold, why, args...)
	p.current.Cause = cause
}

// lacking sets that the probe cannot be made without a right.
func (p *prober) lacking(resource, remedy, why string, args ...any) {
	p.conclude(Undetermined, why, args...)
	p.current.Lacks, p.current.Remedy = resource, remedy
}

// names are the made-up names of a run, and the node of the pod whose token is asked for.
type names struct {
	node, other, secret, user, pod, audience string
	podNode                                  string
}

// replace replaces names by words, so that texts are the same in each run.
func (n *names) replace(text string) string {
	if n.node == "" {
		return text
	}
	pairs := []string{
		n.node, "NODE", n.other, "OTHER-NODE", n.secret, "SECRET", n.user, "USER", n.pod, "POD", n.audience, "AUDIENCE",
	}
	if n.podNode != "" {
		pairs = append(pairs, nodeidentity.UserPrefix+n.podNode, nodeidentity.UserPrefix+"NODE")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

const prefix = "node-authorizer-probe-"

// attempts is how often names are drawn until no node has them.
const attempts = 3

func (p *prober) madeUpNodes(ctx context.Context) error {
	for range attempts {
		drawn := draw()
		switch exists, a := p.existing(ctx, drawn.node, drawn.other); {
		case a != nil:
			p.names = drawn
			p.conclude(Undetermined, "whether the made-up nodes exist could not be asked: %s", a)
			if a.refused(http.StatusForbidden) {
				p.current.Lacks, p.current.Remedy = "nodes", "bind a role with the verb get on nodes to the user"
			}
			return nil
		case !exists:
			p.names = drawn
			p.conclude(Holds, "the API server has neither of two nodes with random names")
			return nil
		}
	}
	p.conclude(Undetermined, "nodes with random names exist, as if the API server made up its answers")
	return nil
}

// existing asks for nodes by name. It returns an answer that does not tell.
func (p *prober) existing(ctx context.Context, nodes ...string) (exists bool, unclear *answer) {
	for _, name := range nodes {
		switch a := p.do(ctx, request{method: http.MethodGet, path: "/api/v1/nodes/" + name, unread: true}); {
		case a.ok():
			return true, nil
		case !a.refused(http.StatusNotFound):
			return false, a
		}
	}
	return false, nil
}

func draw() names {
	name := func() string {
		b := make([]byte, 8)
		_, _ = rand.Read(b) // it never fails
		return prefix + hex.EncodeToString(b)
	}
	return names{
		node: name(), other: name(), secret: name(), user: name(), pod: name(), audience: "https://" + name() + ".invalid",
	}
}
