package attackpaths

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// attempt is one request for something that is said not to be reached.
type attempt struct {
	target    holding
	technique attackpaths.Code
	who       holding
	try       func(context.Context) answer
	// connects is true for requests that a pod or a node would answer.
	connects bool
}

// succeeded reports whether an attempt is allowed. An object that is there already would have
// been made.
func (t attempt) succeeded(a answer) bool {
	if t.connects {
		return a.connected()
	}
	return a.ok() || a.status == http.StatusConflict
}

// attempts tries all that a result does not contain.
type attempts struct {
	*executor
	held map[holding]bool
	list []attempt
	// listed are the objects of the cluster by kind.
	listed map[resource][]object
	// about are the techniques that the attempts are about, also for holdings that are held.
	about map[attackpaths.Code]bool
	// refused counts the requests that were refused.
	refused int
}

// objects lists the objects of a kind once.
func (t *attempts) objects(ctx context.Context, r resource) []object {
	if _, ok := t.listed[r]; !ok {
		t.listed[r] = t.world.list(ctx, r)
	}
	return t.listed[r]
}

// attemptAbsent tries everything that is not in a result, with every identity that is held. It
// returns what it got, and how many attempts were refused. Without an identity it is anonymous.
func (e *executor) attemptAbsent(ctx context.Context, result attackpaths.Result) (failures []error, refused int) {
	t := e.newAttempts(result)
	if len(t.actors) == 0 {
		anonymous, err := newClient(forToken(e.AdminConfig(), ""))
		if err != nil {
			return []error{err}, 0
		}
		t.actors = []*actor{{holding: holding{Kind: attackpaths.User, Name: "system:anonymous"}, client: anonymous, impersonated: true}}
	}
	t.plan(ctx)
	failures, refused = t.run(ctx)
	tried, answered := t.tryTable(ctx)
	e.tabled += answered
	return mostOf(append(failures, tried...)), refused
}

// newAttempts knows the holdings of a result.
func (e *executor) newAttempts(result attackpaths.Result) *attempts {
	held := map[holding]bool{result.Start: true}
	for _, r := range result.Reached {
		held[r.Holding] = true
	}
	for h := range held {
		if h.Kind == attackpaths.Node {
			held[holding{Kind: attackpaths.User, Name: "system:node:" + h.Name}] = true
		}
	}
	return &attempts{executor: e, held: held, listed: map[resource][]object{}, about: map[attackpaths.Code]bool{}}
}

// mostOf are the first failures, and how many more there are.
func mostOf(failures []error) []error {
	if len(failures) <= mostFailures {
		return failures
	}
	return append(failures[:mostFailures], fmt.Errorf("%d more attempts", len(failures)-mostFailures))
}

// tries notes which techniques attempts are about, also if there is nothing to attempt.
func (t *attempts) tries(codes ...attackpaths.Code) {
	for _, code := range codes {
		t.about[code] = true
	}
}

// plan lists the attempts.
func (t *attempts) plan(ctx context.Context) {
	for _, a := range t.actors {
		t.planIdentities(ctx, a)
		t.planRequests(ctx, a)
		t.planLimited(ctx, a)
	}
	t.planNodes(ctx)
	t.planCertificates(ctx)
	t.planTokenSecrets(ctx)
}

// planRequests lists the attempts of one identity that acts alone.
func (t *attempts) planRequests(ctx context.Context, a *actor) {
	t.planAccounts(ctx, a)
	t.planSecrets(ctx, a)
	t.planNamespaces(ctx, a)
	t.planPods(a)
	t.planClusterAdmin(ctx, a)
}

// add plans an attempt for a holding that is not held.
func (t *attempts) add(target holding, technique attackpaths.Code, a *actor, try func(context.Context) answer) {
	if !t.held[target] {
		t.list = append(t.list, attempt{target: target, technique: technique, who: a.holding, try: try})
	}
}

func (t *attempts) connect(target holding, technique attackpaths.Code, a *actor, try func(context.Context) answer) {
	if !t.held[target] {
		t.list = append(t.list, attempt{target: target, technique: technique, who: a.holding, try: try, connects: true})
	}
}

func (t *attempts) run(ctx context.Context) ([]error, int) {
	var mu sync.Mutex
	var failures []error
	var group errgroup.Group
	group.SetLimit(16)
	for _, one := range t.list {
		group.Go(func() error {
			a := one.try(ctx)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case one.succeeded(a):
				failures = append(failures, fmt.Errorf("%s by %s as %s is allowed, but the result does not contain it: %s",
					one.target, one.technique, one.who, a))
			case a.refused():
				t.refused++
			default:
				failures = append(failures, fmt.Errorf("%s by %s as %s was not attempted: %s", one.target, one.technique, one.who, a))
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	if len(t.list) > 0 && t.refused == 0 && len(failures) == 0 {
		failures = append(failures, fmt.Errorf("nothing was refused"))
	}
	return failures, t.refused
}

// mostFailures is how many failures are reported.
const mostFailures = 8

func (t *attempts) planAccounts(ctx context.Context, a *actor) {
	t.tries(attackpaths.TokenRequest, attackpaths.Impersonate, attackpaths.TokenOfPodOnNode)
	for _, o := range t.objects(ctx, serviceAccounts) {
		h := holding{Kind: attackpaths.ServiceAccount, Namespace: o.namespace(), Name: o.name()}
		path := o.path + "/token"
		t.add(h, attackpaths.TokenRequest, a, func(ctx context.Context) answer { return a.post(ctx, path, map[string]any{}) })
		t.addImpersonation(h, a, http.Header{"Impersonate-User": {accountUser(h)}})
	}
	for i := range t.pods {
		p := &t.pods[i]
		h := holding{Kind: attackpaths.ServiceAccount, Namespace: p.Namespace, Name: p.Spec.ServiceAccountName}
		if a.holding.Kind != attackpaths.User || h.Name == "" {
			continue
		}
		t.add(h, attackpaths.TokenOfPodOnNode, a, func(ctx context.Context) answer {
			return a.post(ctx, serviceAccounts.at(h.Namespace, h.Name, "token"), boundTo(p))
		})
	}
}

func (t *attempts) addImpersonation(h holding, a *actor, headers http.Header) {
	if a.impersonated {
		return // a request impersonates once
	}
	as := a.with(headers)
	t.add(h, attackpaths.Impersonate, a, func(ctx context.Context) answer {
		is := as.post(ctx, "/apis/authentication.k8s.io/v1/selfsubjectreviews", map[string]any{})
		if is.ok() {
			return as.impersonatesForAll(ctx, is)
		}
		return is
	})
}

// impersonatesForAll returns the answer unless another verb is not impersonated: constrained
// impersonation gives an identity only if it is for each verb.
func (c *client) impersonatesForAll(ctx context.Context, is answer) answer {
	const none = "/api/v1/namespaces/none/configmaps"
	for _, other := range []answer{
		c.get(ctx, none), c.get(ctx, none+"/none"), c.put(ctx, none+"/none", map[string]any{}), c.delete(ctx, none+"/none?dryRun=All", nil),
	} {
		if other.refused() && strings.Contains(string(other.body), "impersonate") {
			return other
		}
	}
	return is
}

func (t *attempts) planIdentities(ctx context.Context, a *actor) {
	for _, h := range t.identities(ctx) {
		if h.Kind == attackpaths.User {
			for _, headers := range t.headersFor(ctx, a, h) {
				t.addImpersonation(h, a, headers)
			}
			continue
		}
		users := t.userNames(ctx, a)
		for _, o := range t.objects(ctx, serviceAccounts) {
			if _, old := t.baseline[o.path]; !old {
				users = append(users, accountUser(holding{Namespace: o.namespace(), Name: o.name()}))
			}
		}
		for _, user := range users {
			t.addImpersonation(h, a, http.Header{"Impersonate-User": {user}, "Impersonate-Group": {h.Name}})
		}
	}
}

// identities are the users and groups that bindings name, the users of nodes, and system:masters.
func (t *attempts) identities(ctx context.Context) []holding {
	all := []holding{{Kind: attackpaths.Group, Name: "system:masters"}}
	for _, o := range t.objects(ctx, nodes) {
		all = append(all, holding{Kind: attackpaths.User, Name: "system:node:" + o.name()})
	}
	for _, h := range t.bound(ctx) {
		if !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	return all
}

// bound are the users and groups that the bindings of the case name, without service accounts and everybody.
func (w *world) bound(ctx context.Context) []holding {
	var all []holding
	for _, o := range slices.Concat(w.list(ctx, clusterRoleBindings), w.list(ctx, roleBindings)) {
		if _, old := w.baseline[o.path]; old {
			continue
		}
		subjects, _ := o.content["subjects"].([]any)
		for _, x := range subjects {
			s, _ := x.(map[string]any)
			name, _ := s["name"].(string)
			h := holding{Name: name}
			if h.Kind, _ = s["kind"].(string); h.Kind != attackpaths.User && h.Kind != attackpaths.Group || everyoneIs(name) {
				continue
			}
			if !slices.Contains(all, h) && !accountName(name) {
				all = append(all, h)
			}
		}
	}
	return all
}
