package attackpaths

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// scopedCase is a case with NodeScopes for the account shop/web, whose pod shop/agent runs on web-1.
type scopedCase struct {
	testCase
	// scopes are the fields of the spec of each scope.
	scopes []string
	// without has the holdings that are certain without scopes.
	without []string
}

// asksAbout are the requests with which the executor asks who it is and what it may do.
const asksAbout = `{apiGroups: [authentication.k8s.io, authorization.k8s.io], resources: ["*"], verbs: [create]}`

// specs are the specs of the scopes of a case.
func (c scopedCase) specs(t *testing.T) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, text := range c.scopes {
		var spec map[string]any
		if err := yaml.Unmarshal([]byte("{subjects: [{namespace: shop, name: web}], mode: Enforce, "+text+"}"), &spec); err != nil {
			t.Fatal(err)
		}
		all = append(all, spec)
	}
	return all
}

// enforce replaces the scopes of the scoped world.
func enforce(t *testing.T, specs []map[string]any) {
	t.Helper()
	if err := scoped.enforce(context.WithoutCancel(t.Context()), specs); err != nil {
		t.Fatal(err)
	}
}

// withToken returns an executor that starts from a pod and has requested a token of an account for it.
func withToken(t *testing.T, start, account holding) *executor {
	t.Helper()
	e, err := scoped.newExecutor(t.Context(), start, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := e.pod(start)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.requestToken(t.Context(), account, pod); err != nil {
		t.Fatal(err)
	}
	return e
}

var (
	// twoDBs are pods of other accounts on both nodes.
	twoDBs     = account("shop", "far") + podOf("shop", "near-1", web1, "db") + podOf("shop", "far-1", pay1, "far")
	withAgent  = twoDBs + podOf("shop", "agent", web1, "web")
	accountFar = "ServiceAccount shop/far"
	nearOnly   = []string{"Pod shop/near-1", "ServiceAccount shop/db", "ServiceAccount shop/web"}
	everyPod   = []string{"Pod shop/far-1", "Pod shop/near-1", "ServiceAccount shop/db", accountFar, "ServiceAccount shop/web"}
)

var scopedCases = []scopedCase{
	{
		testCase: testCase{
			rule: "podsOnNode: exec in pods on the node of the token only", start: podAgent,
			add: withAgent + roleOf("r", "shop", "shop/web", "create pods/exec@"), want: nearOnly,
		},
		scopes: []string{"podsOnNode: [{resources: [pods/exec], verbs: [create]}], anywhere: [" + asksAbout + "]"}, without: everyPod,
	},
	{
		testCase: testCase{
			rule: "namedAsNode: the proxy of the node of the token only", start: podAgent,
			add: withAgent + roleOf("r", "", "shop/web", "get,create nodes/proxy@"), want: nearOnly,
		},
		scopes: []string{
			`namedAsNode: [{apiGroups: [""], resources: [nodes/proxy], verbs: ["*"]}], anywhere: [` + asksAbout + "]",
		},
		without: everyPod,
	},
	{
		testCase: testCase{
			rule: "asNode: tokens of pods on the node only", start: podAgent,
			add:  withAgent + roleOf("r", "shop", "shop/web", "create serviceaccounts/token@"),
			want: []string{"ServiceAccount shop/db", "ServiceAccount shop/web"},
		},
		scopes:  []string{"asNode: true, anywhere: [" + asksAbout + "]"},
		without: []string{"ServiceAccount shop/db", "ServiceAccount shop/default", accountFar, "ServiceAccount shop/web"},
	},
	{
		testCase: testCase{
			rule: "anywhere: secrets of one name", start: podAgent,
			add:  withAgent + opaque("shop", "key") + opaque("shop", "other") + roleOf("r", "shop", "shop/web", "get,list secrets@"),
			want: []string{"Secret shop/key", "ServiceAccount shop/web"},
		},
		scopes: []string{
			`anywhere: [{apiGroups: [""], resources: [secrets], resourceNames: [key], verbs: [get]}, ` + asksAbout + "]",
		},
		without: []string{"Secret shop/key", "Secret shop/other", "ServiceAccount shop/web"},
	},
	{
		testCase: testCase{
			rule: "otherwise: Allow lets pass what no rule names", start: podAgent,
			add: withAgent + opaque("shop", "key") +
				roleOf("r", "shop", "shop/web", "get secrets@", "create pods/exec@"),
			want: append([]string{"Secret shop/key"}, nearOnly...),
		},
		scopes:  []string{"podsOnNode: [{resources: [pods/exec], verbs: [create]}], otherwise: Allow"},
		without: append([]string{"Secret shop/key"}, everyPod...),
	},
	{
		testCase: testCase{
			rule: "all scopes must let a request pass", start: podAgent,
			add: withAgent + roleOf("r", "shop", "shop/web", "create pods/exec@"), want: []string{"ServiceAccount shop/web"},
		},
		scopes: []string{
			"podsOnNode: [{resources: [pods/exec], verbs: [create]}], anywhere: [" + asksAbout + "]", "anywhere: [" + asksAbout + "]",
		},
		without: everyPod,
	},
	{
		testCase: testCase{
			rule: "what RBAC grants can be bound to the node", start: nodeWeb1,
			add: withAgent + opaque("shop", "key") + roleOf("r", "shop", "shop/web", "get secrets@", "create rolebindings"+inRBAC),
			want: []string{
				"Pod shop/agent", "Pod shop/near-1", "Secret shop/key", "ServiceAccount shop/db", "ServiceAccount shop/web",
			},
		},
		scopes: []string{`anywhere: [{apiGroups: ["rbac.authorization.k8s.io"], resources: [rolebindings], verbs: [create]}, ` +
			asksAbout + "]"},
		without: []string{
			"Pod shop/agent", "Pod shop/near-1", "Secret shop/key", "ServiceAccount shop/db", "ServiceAccount shop/web",
		},
	},
	{
		testCase: testCase{
			rule: "who requests a token binds it to any node", start: holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "near-1"},
			add: withAgent + roleOf("r", "shop", "shop/web", "create pods/exec@") +
				roleOf("t", "shop", "shop/db", "create serviceaccounts/token@ web"),
			want: append([]string{"Pod shop/agent", "Pod shop/far-1"}, nearOnly[1], nearOnly[2], accountFar),
		},
		scopes:  []string{"podsOnNode: [{resources: [pods/exec], verbs: [create]}], anywhere: [" + asksAbout + "]"},
		without: append([]string{"Pod shop/agent", "Pod shop/far-1"}, nearOnly[1], nearOnly[2], accountFar),
	},
	{
		testCase: testCase{
			rule: "impersonation without the name of a node", start: holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "near-1"},
			add: withAgent + roleOf("r", "shop", "shop/web", "create pods/exec@") +
				roleOf("t", "shop", "shop/db", "impersonate serviceaccounts@ web"),
			want: []string{"ServiceAccount shop/db"},
		},
		scopes:  []string{"podsOnNode: [{resources: [pods/exec], verbs: [create]}], anywhere: [" + asksAbout + "]"},
		without: append([]string{"Pod shop/agent", "Pod shop/far-1"}, nearOnly[1], nearOnly[2], accountFar),
	},
	{
		testCase: testCase{
			rule: "impersonation with the name of a node", start: holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "near-1"},
			add: withAgent + roleOf("r", "shop", "shop/web", "create pods/exec@") +
				roleOf("t", "shop", "shop/db", "impersonate serviceaccounts@ web") +
				roleOf("x", "", "shop/db", "impersonate userextras/authentication.kubernetes.io/node-name@authentication.k8s.io pay-1"),
			want: []string{"Pod shop/far-1", "ServiceAccount shop/db", accountFar, "ServiceAccount shop/web"},
		},
		scopes:  []string{"podsOnNode: [{resources: [pods/exec], verbs: [create]}], anywhere: [" + asksAbout + "]"},
		without: append([]string{"Pod shop/agent", "Pod shop/far-1"}, nearOnly[1], nearOnly[2], accountFar),
	},
	{
		testCase: testCase{
			rule:  "tokensWithoutNode: Deny refuses a token in a secret",
			start: holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "near-1"},
			add: withAgent + opaque("shop", "key") + tokenSecret("shop", "legacy", "web") +
				roleOf("r", "shop", "shop/web", "get secrets@ key") + roleOf("t", "shop", "shop/db", "get secrets@ legacy"),
			want: []string{"Secret shop/legacy", "ServiceAccount shop/db"},
		},
		scopes:  []string{`anywhere: [{apiGroups: [""], resources: [secrets], verbs: [get]}, ` + asksAbout + "]"},
		without: []string{"Secret shop/key", "Secret shop/legacy", "ServiceAccount shop/db", "ServiceAccount shop/web"},
	},
	{
		testCase: testCase{
			rule:  "tokensWithoutNode: Allow leaves everything to a token in a secret",
			start: holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "near-1"},
			add: withAgent + opaque("shop", "key") + tokenSecret("shop", "legacy", "web") +
				roleOf("r", "shop", "shop/web", "get secrets@ key") + roleOf("t", "shop", "shop/db", "get secrets@ legacy"),
			want: []string{"Secret shop/key", "Secret shop/legacy", "ServiceAccount shop/db", "ServiceAccount shop/web"},
		},
		scopes:  []string{"tokensWithoutNode: Allow, anywhere: [" + asksAbout + "]"},
		without: []string{"Secret shop/key", "Secret shop/legacy", "ServiceAccount shop/db", "ServiceAccount shop/web"},
	},
}

// TestNodeScopes carries out the paths without scopes, then those with scopes. A path that scopes remove is
// attempted again, and refused by them.
func TestNodeScopes(t *testing.T) {
	for _, c := range scopedCases {
		t.Run(c.rule, func(t *testing.T) {
			ctx := t.Context()
			t.Cleanup(func() { enforce(t, nil) })
			free := c.testCase
			free.want = c.without
			enforce(t, nil)
			free.run(t, scoped)
			before := scoped.reach(t, c.start, nil, false)

			enforce(t, c.specs(t))
			c.run(t, scoped)
			after := scoped.reach(t, c.start, nil, false)
			for _, r := range before.Reached {
				same := func(x attackpaths.Reached) bool { return x.Holding == r.Holding }
				if r.Certainty != attackpaths.Certain || slices.ContainsFunc(after.Reached, same) {
					continue
				}
				e, err := scoped.newExecutor(ctx, c.start, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := e.carryOut(ctx, r); err == nil || !strings.Contains(err.Error(), "NodeScope") {
					t.Errorf("%s is removed, but no NodeScope refuses its path: %v", r.Holding, err)
				}
			}
		})
	}
}

// TestCordonAndLure replays CVE-2023-26484 of KubeVirt: an agent that may patch nodes keeps the scheduler
// from all other nodes, so that the pods it wants come to its own.
func TestCordonAndLure(t *testing.T) {
	ctx := t.Context()
	t.Cleanup(func() { enforce(t, nil) })
	scope := scopedCase{scopes: []string{
		`namedAsNode: [{apiGroups: [""], resources: [nodes], verbs: [patch]}], anywhere: [` + asksAbout + "]",
	}}
	cordon := func(e *executor, node string, on bool) answer {
		a := e.actor(accountWeb)
		return a.patch(ctx, nodes.at("", node), mergePatch, map[string]any{"spec": map[string]any{"unschedulable": on}})
	}
	for _, enforced := range []bool{false, true} {
		enforce(t, nil)
		scoped.begin(t, withAgent+roleOf("r", "", "shop/web", "patch nodes@"))
		if enforced {
			enforce(t, scope.specs(t))
		}
		e := withToken(t, podAgent, accountWeb)
		other := cordon(e, pay1, true)
		if enforced {
			if !other.refused() || !strings.Contains(string(other.body), "NodeScope") {
				t.Errorf("with the scope, the other node can be cordoned: %s", other)
			}
		} else if err := other.failure(); err != nil {
			t.Errorf("without a scope: %v", err)
		} else if err := lured(ctx, scoped); err != nil {
			t.Error(err)
		}
		if err := cordon(e, web1, false).failure(); err != nil {
			t.Errorf("the own node: %v", err)
		}
		restore := map[string]any{"spec": map[string]any{"unschedulable": false}}
		if err := scoped.admin.patch(ctx, nodes.at("", pay1), mergePatch, restore).failure(); err != nil {
			t.Fatal(err)
		}
	}
}

// lured makes pods until the scheduler, which learns of a cordon from its watch, binds one to the attacker's
// node.
func lured(ctx context.Context, w *world) error {
	return until(ctx, "the scheduler binds a pod to the attacker's node", func(ctx context.Context) error {
		name := fmt.Sprint("wanted-", w.counter.Add(1))
		if err := w.admin.post(ctx, pods.in("shop"), podSpec{name: name, account: "far"}.object()).failure(); err != nil {
			return err
		}
		var p corev1.Pod
		for p.Spec.NodeName == "" && ctx.Err() == nil {
			if err := w.admin.get(ctx, pods.at("shop", name)).into(&p); err != nil {
				return err
			}
		}
		if p.Spec.NodeName != web1 {
			return fmt.Errorf("it is on node %q", p.Spec.NodeName)
		}
		return nil
	})
}
