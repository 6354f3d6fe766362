package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// containedConfig is added to the configuration of the server with NodeScopes and Quarantines.
const containedConfig = "containment: {nodeScopes: Enabled, quarantines: Enabled}\n"

// servedContainment compares a server with NodeScopes and one without, over TLS.
func (b *bench) servedContainment() (t table, targets []target, err error) {
	c, err := b.newServingCluster(layout{nodes: min(200, b.sizes.servedNodes), namespaces: 20, pods: 4000})
	if err != nil {
		return t, nil, err
	}
	defer func() {
		if stopped := c.plane.Stop(); err == nil {
			err = stopped
		}
	}()
	b.log("containment: creating %d NodeScopes", benchScopes)
	if err := c.createScopes(b); err != nil {
		return t, nil, err
	}
	var servers pair[*server]
	if servers[inTree], err = c.serve(b, "today", b.binary, "server", "--config"); err != nil {
		return t, nil, err
	}
	c.moreConfig = containedConfig
	if servers[ours], err = c.serve(b, "contained", b.binary, "server", "--config"); err != nil {
		return t, nil, err
	}
	allowed := c.accessQuestions(b.sizes.questions)[0]
	asked, err := newContainedQuestions(joinedLines(allowed.bodies))
	if err != nil {
		return t, nil, err
	}
	t = table{
		caption: "**Served**, over TLS by two servers beside a real kube-apiserver, one with NodeScopes and Quarantines.",
		header:  []string{"asked by", "throughput", "processor time a request", "today"},
	}
	for _, q := range []struct {
		who         string
		before, now [][]byte
		bound       float64
	}{
		{"a node", asked.node, asked.node, 0.98},
		{"an account without a NodeScope", asked.other, asked.other, 0.98},
		{"an account with one, compared with a node today", asked.node, asked.scoped, 0.9},
	} {
		b.log("containment: served, %s", q.who)
		r, err := b.servedPair(c, servers, pair[[][]byte]{ours: q.now, inTree: q.before})
		if err != nil {
			return t, nil, err
		}
		t.add(q.who, r.throughput().String(), nanoseconds(r.perRequest(ours)), nanoseconds(r.perRequest(inTree)))
		targets = append(targets, atLeast("`/authorize`, "+q.who, q.bound, r.throughput(), servedContainmentMissed))
	}
	return t, targets, nil
}

const servedContainmentMissed = "A review of an account has the extra values of its token, and is twice as long as one of " +
	"a node: to send, receive and decode it takes longer."

// createScopes installs the custom resources and creates the NodeScopes.
func (c *servingCluster) createScopes(b *bench) error {
	config := c.plane.AdminConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	post := func(path string, object any) error {
		body, err := json.Marshal(object)
		if err != nil {
			return err
		}
		request := client.Discovery().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json")
		return request.Body(body).Do(b.ctx).Error()
	}
	for _, file := range []string{"nodescopes.yaml", "quarantines.yaml"} {
		text, err := os.ReadFile(filepath.Join(b.root, "api", "policy", "v1alpha1", file))
		if err != nil {
			return err
		}
		var object map[string]any
		if err := yaml.Unmarshal(text, &object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	path := "/apis/" + v1alpha1.GroupVersion().String() + "/" + v1alpha1.NodeScopeResource
	for i := range benchScopes {
		scope := benchScope(i)
		scope.APIVersion, scope.Kind = v1alpha1.GroupVersion().String(), v1alpha1.NodeScopeKind
		created := func(context.Context) (bool, error) { err = post(path, scope); return err == nil, nil }
		// The first waits until the API server serves the resource.
		if wait.PollUntilContextTimeout(b.ctx, 50*time.Millisecond, time.Minute, true, created) != nil {
			return fmt.Errorf("NodeScope %s: %w", scope.Name, err)
		}
	}
	return nil
}

func joinedLines(bodies [][]byte) []byte {
	var all []byte
	for _, body := range bodies {
		all = append(append(all, body...), '\n')
	}
	return all
}

// servedContained are the rounds of both servers.
type servedContained pair[[]servedRound]

// servedPair calls both servers alternately. A first round, which is not counted, warms them up.
func (b *bench) servedPair(c *servingCluster, servers pair[*server], bodies pair[[][]byte]) (r servedContained, err error) {
	check := func(body []byte) error {
		var review authorizationv1.SubjectAccessReview
		return json.Unmarshal(body, &review)
	}
	for i := range b.rounds + 1 {
		for j := range sides {
			s := sides[(i+j)%len(sides)]
			one, err := b.round(posts{path: "/authorize", bodies: bodies[s], check: check}, servers[s], theServer, c)
			if err != nil {
				return r, err
			}
			if i > 0 {
				r[s] = append(r[s], one)
			}
		}
	}
	return r, nil
}

func (r servedContained) throughput() spread {
	var ratios []float64
	for i := range r[ours] {
		ratios = append(ratios, r[ours][i].perSecond()/r[inTree][i].perSecond())
	}
	return spreadOf(ratios)
}

func (r servedContained) perRequest(s side) float64 {
	var all []float64
	for _, one := range r[s] {
		all = append(all, one.perRequest())
	}
	return median(all)
}
