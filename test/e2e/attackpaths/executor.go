package attackpaths

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

type holding = attackpaths.Holding

// actor is an identity that makes requests.
type actor struct {
	holding holding
	*client
	// impersonated is true if another identity acts as this one. Its requests cannot
	// impersonate again.
	impersonated bool
	// bare is true for the user of a node that is impersonated without the group of nodes. It is
	// no node then.
	bare bool
	// node is the node of the token, where NodeScopes matter.
	node string
}

// executor carries out paths from one start with the credentials that it has got.
type executor struct {
	*world
	byName *byName
	// pods and secrets are the objects of the case, which the executor knows.
	pods []corev1.Pod
	// actors are the identities that it holds, in the order in which it got them.
	actors []*actor
	// secrets is the content of secrets by holding.
	secrets map[holding]map[string][]byte
	// controlled are the pods in which it could start a process.
	controlled map[holding]bool
	// makers are the ways to have pods made, by namespace.
	makers map[string]maker
	// limited are the identities as which others act for some requests only.
	limited map[limitedKey][]*actor
	// nodes are the nodes on which it has root.
	nodes map[string]bool
	// reading are the pods and namespaces through which it reads files of a node.
	reading map[holding]bool
	// known are the paths of the secrets and requests of the case.
	known map[string]bool
	done  map[stepKey]error
	steps int
	// tabled is how many requests by the table of all rights were answered.
	tabled int
}

// stepKey identifies a step: paths share their beginnings.
type stepKey struct {
	technique attackpaths.Code
	from, to  holding
	as        holding
	because   string
}

// step is a step of a path with the holdings that occur before it.
type step struct {
	attackpaths.Step
	before []holding
	// limits are the impersonations before it that are for some requests only.
	limits []limitedKey
	// as is the identity that begins the step; nil if it makes no requests.
	as *actor
}

// newExecutor returns an executor that holds the start.
func (w *world) newExecutor(ctx context.Context, start holding, groups []string) (*executor, error) {
	e := &executor{
		world: w, secrets: map[holding]map[string][]byte{}, controlled: map[holding]bool{}, reading: map[holding]bool{},
		makers: map[string]maker{}, nodes: map[string]bool{}, done: map[stepKey]error{}, known: map[string]bool{},
		limited: map[limitedKey][]*actor{},
	}
	for _, o := range slices.Concat(w.list(ctx, secrets), w.list(ctx, signingRequests)) {
		e.known[o.path] = true
	}
	var list corev1.PodList
	if err := w.admin.get(ctx, pods.in("")).into(&list); err != nil {
		return nil, err
	}
	e.pods = list.Items
	e.byName = &byName{admin: e.admin, names: w.ruleNames(ctx), made: map[string]bool{}}
	if err := e.begin(ctx, start, groups); err != nil {
		return nil, fmt.Errorf("begin with %s: %w", start, err)
	}
	return e, nil
}

// begin gets the start's credential.
func (e *executor) begin(ctx context.Context, start holding, groups []string) error {
	switch start.Kind {
	case attackpaths.Node:
		return e.ownNode(ctx, start.Name)
	case attackpaths.Pod:
		e.controlled[start] = true
		return nil
	case attackpaths.ServiceAccount:
		if token, ok := e.tokens[serviceAccounts.at(start.Namespace, start.Name)]; ok {
			return e.ownToken(ctx, start, token)
		}
		var token authenticationv1.TokenRequest
		if err := e.admin.post(ctx, serviceAccounts.at(start.Namespace, start.Name, "token"), map[string]any{}).into(&token); err != nil {
			return err
		}
		return e.ownToken(ctx, start, token.Status.Token)
	case attackpaths.User:
		if strings.HasPrefix(start.Name, "system:node:") && len(groups) == 0 {
			groups = []string{"system:nodes"}
		}
		c, err := e.certificateClient(start.Name, groups...)
		if err != nil {
			return err
		}
		return e.own(ctx, &actor{holding: start, client: c})
	}
	return fmt.Errorf("it is no start")
}

// carryOut takes the steps of a path that are not taken yet, and shows the holding.
func (e *executor) carryOut(ctx context.Context, reached attackpaths.Reached) error {
	if err := e.walk(ctx, reached); err != nil {
		return err
	}
	if err := e.show(ctx, reached.Holding); err != nil {
		return fmt.Errorf("show that %s is held: %w", reached.Holding, err)
	}
	return nil
}

// walk takes the steps of a path.
func (e *executor) walk(ctx context.Context, reached attackpaths.Reached) error {
	var before []holding
	var limits []limitedKey
	for _, s := range reached.Path {
		before = append(before, s.From)
		key := stepKey{technique: s.Technique, from: s.From, to: s.To, because: s.Because}
		if s.Impersonates != nil {
			key.as = *s.Impersonates
			limits = append(limits, limitedKey{s.From, key.as})
		} else if together(s) {
			limits = append(limits, limitedKey{s.From, s.From})
		}
		err, done := e.done[key]
		if !done {
			err = e.take(ctx, step{Step: s, before: slices.Clone(before), limits: slices.Clone(limits)})
			e.done[key] = err
			e.steps++
		}
		if err != nil {
			return fmt.Errorf("%s from %s to %s, because %s: %w", s.Technique, s.From, s.To, s.Because, err)
		}
		before = append(before, s.To)
	}
	return nil
}

// own adds an identity once the API server says that the credential is its own.
func (e *executor) own(ctx context.Context, a *actor) error {
	if err := whoIs(ctx, a); err != nil {
		return err
	}
	known := func(other *actor) bool {
		return other.holding == a.holding && other.bare == a.bare && other.node == a.node && (!other.impersonated || a.impersonated)
	}
	if slices.ContainsFunc(e.actors, known) {
		return nil
	}
	a.byName = e.byName
	e.actors = append(e.actors, a)
	return nil
}

func (e *executor) ownToken(ctx context.Context, h holding, token string) error {
	c, err := e.tokenClient(token)
	if err != nil {
		return err
	}
	return e.own(ctx, &actor{holding: h, client: c, node: e.nodeOfToken(token)})
}

// ownNode adds root on a node, with its credential.
func (e *executor) ownNode(ctx context.Context, name string) error {
	if e.nodes[name] {
		return nil
	}
	c, err := e.nodeClient(name)
	if err != nil {
		return err
	}
	if err := e.own(ctx, &actor{holding: holding{Kind: attackpaths.User, Name: "system:node:" + name}, client: c}); err != nil {
		return err
	}
	e.nodes[name] = true
	return nil
}

// actor finds the identity of a holding; its own credential before an impersonated one.
func (e *executor) actor(h holding) *actor {
	if h.Kind == attackpaths.Node {
		h = holding{Kind: attackpaths.User, Name: "system:node:" + h.Name}
	}
	var found *actor
	for _, a := range e.actors {
		if a.holding == h && (found == nil || found.impersonated || found.bare) && (found == nil || !a.bare) {
			found = a
		}
	}
	return found
}

// errNoActor means that a step begins with something that makes no requests.
var errNoActor = errors.New("no identity is held that can make the request")

// acting are the identities that a step may use: the one that it begins with, then identities that its
// path impersonates for some requests, then identities of the steps before it.
func (e *executor) acting(s step) []*actor {
	var all []*actor
	add := func(list ...*actor) {
		for _, a := range list {
			if a != nil && !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	add(s.as)
	for _, k := range slices.Backward(s.limits) {
		add(e.limited[k]...)
	}
	add(e.actor(s.From))
	for _, h := range slices.Backward(s.before) {
		add(e.actor(h))
	}
	return all
}

// first asks with one identity after the other until one is not refused.
func first(actors []*actor, ask func(*actor) answer) (answer, *actor) {
	last := answer{err: errNoActor}
	for _, a := range actors {
		if last = ask(a); !last.refused() {
			return last, a
		}
	}
	return last, nil
}

// whoIs compares what the API server says about a credential with its holding.
func whoIs(ctx context.Context, a *actor) error {
	var review authenticationv1.SelfSubjectReview
	answer := a.post(ctx, "/apis/authentication.k8s.io/v1/selfsubjectreviews", map[string]any{})
	unknown := a.holding.Name == "system:anonymous" || a.holding.Name == "system:unauthenticated"
	asUnknown := strings.Contains(string(answer.body), `User \"system:anonymous\" cannot create`)
	if answer.refused() && (asUnknown || unknown && !strings.Contains(string(answer.body), "cannot impersonate")) {
		return nil // who is not authenticated may not ask who it is
	}
	if err := answer.into(&review); err != nil {
		return err
	}
	user := review.Status.UserInfo
	is := false
	switch a.holding.Kind {
	case attackpaths.ServiceAccount:
		is = user.Username == accountUser(a.holding)
	case attackpaths.User:
		is = user.Username == a.holding.Name
	case attackpaths.Group:
		is = slices.Contains(user.Groups, a.holding.Name)
	}
	if !is {
		return fmt.Errorf("the API server takes the credential for user %s in groups %v", user.Username, user.Groups)
	}
	return nil
}

func accountUser(h holding) string { return "system:serviceaccount:" + h.Namespace + ":" + h.Name }
