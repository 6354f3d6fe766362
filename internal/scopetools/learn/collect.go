package learn

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Bounds of the memory for a suggestion; the bounds of pods and nodes hold for a report too. Evidence beyond a bound is counted.
const (
	maxGroups   = 5000
	maxPods     = 500_000 // pods of the log, and requests that may turn out to be about one of them
	maxNodes    = 50_000
	maxExamples = 5
	maxNames    = 5
	maxSpaces   = 3
	maxUsed     = 200_000
	// maxKept is how many requests that are not about the own node are told apart, and maxKeptOfGroup how
	// many of one group.
	maxKept        = 200_000
	maxKeptOfGroup = 10_000
)

// Node says what a node may do in the state.
type Node interface {
	// AsNode reports whether the Node authorizer allows the request if the node sends it, and
	// NodeRestriction may admit it with some object.
	AsNode(req *access.Request, node string) bool
	// NodeOf returns the node of a pod; empty if the state does not show it.
	NodeOf(namespace, pod string) string
	// IsNode reports whether there is a node of that name.
	IsNode(name string) bool
}

// group is the requests with one verb for one resource, or for one path.
type group struct {
	verb, apiGroup, resource, path string // the resource with its subresource
}

// names are a few distinct strings.
type names struct {
	all  []string
	more bool
}

func (n *names) add(name string, limit int) {
	switch {
	case n.more || slices.Contains(n.all, name):
	case len(n.all) == limit:
		n.more = true
	default:
		n.all = append(n.all, name)
	}
}

// Unscoped are requests that a scope cannot attribute to a node, or that were refused.
type Unscoped struct {
	// Count is the number of requests.
	Count int `json:"count"`
	// Examples are some of them, with the user agent.
	Examples []string `json:"examples,omitempty"`

	counter Counter
}

func (u *Unscoped) add(r *Request) {
	u.counter.Add(r.Begun)
	u.Count = u.counter.Requests()
	g, o := groupOf(&r.Request), objectOf(r)
	example := g.describe(&o)
	if r.Impersonates != "" {
		example += " as " + r.Impersonates
	}
	if r.UserAgent != "" {
		example += " by " + r.UserAgent
	}
	if len(u.Examples) < maxExamples && !slices.Contains(u.Examples, example) {
		u.Examples = append(u.Examples, example)
	}
}

// Collector collects the evidence about one account.
type Collector struct {
	node   Node
	grants []rbac.Grant

	groups      map[group]*evidence
	pods        map[PodOnNode]bool
	located     map[PodOnNode]string // a node of each pod, which has no node as a key; set by Suggest
	kept        int                  // requests of all groups that are not about the own node, and are told apart
	undecided   int                  // requests that a later line of the log may show to be about a pod on the node
	nodes       map[string]bool
	used        map[string][]int // the grants of a request, by its key
	usedBy      map[int]map[group]bool
	withoutNode Unscoped
	refused     Unscoped
	other       Unscoped // impersonated
	asItsNode   Counter
	asItsNodes  map[string]bool
	count       Counter
	order       int // of requests in the log
	beyond      int
	times
}

// NewCollector returns a collector for an account with these grants.
func NewCollector(node Node, grants []rbac.Grant) *Collector {
	return &Collector{
		node: node, grants: grants, groups: map[group]*evidence{}, pods: map[PodOnNode]bool{}, nodes: map[string]bool{},
		asItsNodes: map[string]bool{}, used: map[string][]int{}, usedBy: map[int]map[group]bool{},
	}
}

// Pod adds a pod that a log shows on a node.
func (c *Collector) Pod(pod PodOnNode) {
	if len(c.pods) < maxPods {
		c.pods[pod] = true
	}
}

// Request adds a request of the account.
func (c *Collector) Request(r *Request) {
	c.include(times{r.At, r.At})
	switch {
	case r.Refused:
		c.refused.add(r)
		return
	case r.Impersonates != "":
		c.impersonation(r)
		return
	}
	c.count.Add(r.Begun)
	grants := c.grantsOf(r)
	if r.Node == "" {
		c.withoutNode.add(r)
		return
	}
	if len(c.nodes) < maxNodes {
		c.nodes[r.Node] = true
	}
	g := groupOf(&r.Request)
	e := c.groups[g]
	if e == nil {
		if len(c.groups) == maxGroups {
			c.beyond++
			return
		}
		e = &evidence{group: g, own: map[forms]*sum{}, notOwn: map[object]*tally{}, grants: map[int]bool{}}
		c.groups[g] = e
	}
	for _, i := range grants {
		e.grants[i] = true
	}
	c.add(e, r)
}

// impersonation adds a request that the account made as another user.
func (c *Collector) impersonation(r *Request) {
	verbs := []string{"impersonate"}
	if r.Constraint != "" {
		verbs = []string{r.Constraint, strings.Replace(r.Constraint, "impersonate:", "impersonate-on:", 1) + ":" + r.Verb}
	}
	for i := range c.grants {
		for _, right := range rightsOf(c.grants[i]) {
			for _, v := range verbs {
				if right.NonResourceURL == "" && slices.Contains(right.Verbs, v) {
					c.use(i, group{verb: v, apiGroup: right.rule.APIGroups[0], resource: right.rule.Resources[0]})
				}
			}
		}
	}
	if r.Node != "" && r.Impersonates == "system:node:"+r.Node {
		c.asItsNode.Add(r.Begun)
		if len(c.asItsNodes) < maxNodes {
			c.asItsNodes[r.Node] = true
		}
		return
	}
	c.other.add(r)
}

// grantsOf returns the grants that allow a request, and notes that they are used.
func (c *Collector) grantsOf(r *Request) []int {
	key := r.Key()
	if known, ok := c.used[key]; ok {
		return known
	}
	var all []int
	for i := range c.grants {
		g := &c.grants[i]
		scope := g.Binding.Namespace
		if scope != "" && scope != r.Request.Namespace || !rbac.RuleAllows(g.Rule, &r.Request) {
			continue
		}
		all = append(all, i)
		c.use(i, groupOf(&r.Request))
	}
	if len(c.used) < maxUsed {
		c.used[key] = all
	}
	return all
}

func (c *Collector) use(grant int, what group) {
	if c.usedBy[grant] == nil {
		c.usedBy[grant] = map[group]bool{}
	}
	if len(c.usedBy[grant]) < maxGroups {
		c.usedBy[grant][what] = true
	}
}
