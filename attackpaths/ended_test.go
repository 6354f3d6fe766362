package attackpaths_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// A pod that has ended has no processes: nothing runs in it, and nothing leaves it. Its node still gets tokens of its account.
func TestPodsThatHaveEnded(t *testing.T) {
	const everyWay = "create pods/exec@|create pods/attach@|patch pods/ephemeralcontainers@|patch pods@"
	for _, phase := range []string{"Running", "Pending", "", "Unknown", "Succeeded", "Failed"} {
		ended := phase == "Succeeded" || phase == "Failed"
		pod := pod("shop", "db-1", "n1", "db")
		pod = strings.Replace(pod, "spec:\n", "status: {phase: '"+phase+"'}\nspec:\n", 1)
		pod = strings.Replace(pod, "image: i", "image: i, securityContext: {privileged: true}", 1)
		c := newCluster()
		parse(t, c, node("n1")+node("n2")+namespace("shop", restrictedLabel)+account("shop", "web")+account("shop", "db")+
			account("ops", "ops")+
			role("r", "shop", "shop/web", strings.Split(everyWay, "|")...)+role("p", "", "ops/ops", "create nodes/proxy@")+pod)
		g := graphOf(t, c)
		ops := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "ops", Name: "ops"}
		db := attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "db-1"}
		for _, start := range []attackpaths.Holding{accountWeb, nodeN1, ops} {
			if got := reaches(t, g, start, db); got == ended {
				t.Errorf("phase %q: from %s, the pod is reached: %v", phase, start, got)
			}
		}
		if got := reaches(t, g, ops, nodeN1); got == ended {
			t.Errorf("phase %q: the node is reached through its proxy: %v", phase, got)
		}
		if got := reaches(t, g, db, nodeN1); got == ended {
			t.Errorf("phase %q: the node is reached from the pod: %v", phase, got)
		}
		account := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "db"}
		reached := from(t, g, nodeN1).Reached
		i := slices.IndexFunc(reached, func(r attackpaths.Reached) bool { return r.Holding == account })
		if i < 0 || reached[i].Certainty != attackpaths.Certain {
			t.Errorf("phase %q: the node does not get tokens of the pod's account: %+v", phase, reached)
		}
	}
}

// Nobody knows whether a container of a pod whose phase is Pending has started. Who has its node, or changes it, need not wait.
func TestPodsThatStart(t *testing.T) {
	db := attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "db-1"}
	ops := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "ops", Name: "ops"}
	for phase, want := range map[string]attackpaths.Certainty{
		"Pending": attackpaths.Possible, "Running": attackpaths.Certain, "": attackpaths.Certain,
	} {
		for _, c := range []struct {
			rule, rules string
			start, to   attackpaths.Holding
			want        attackpaths.Certainty
		}{
			{"exec", "create pods/exec@", accountWeb, db, want},
			{"a container", "patch pods/ephemeralcontainers@", accountWeb, db, want},
			{"a privileged container", "patch pods/ephemeralcontainers@", accountWeb, nodeN1, want},
			{"the proxy of a node", "get pods@", ops, db, want},
			{"another image", "patch pods@", accountWeb, db, attackpaths.Certain},
			{"the node", "get pods@", nodeN1, db, attackpaths.Certain},
		} {
			cluster := newCluster()
			pod := strings.Replace(pod("shop", "db-1", "n1", "db"), "spec:\n", "status: {phase: '"+phase+"'}\nspec:\n", 1)
			parse(t, cluster, node("n1")+namespace("shop", "")+account("shop", "web")+account("shop", "db")+account("ops", "ops")+
				role("r", "shop", "shop/web", c.rules)+role("p", "", "ops/ops", "create nodes/proxy@")+pod)
			reached := from(t, graphOf(t, cluster), c.start).Reached
			i := slices.IndexFunc(reached, func(r attackpaths.Reached) bool { return r.Holding == c.to })
			if i < 0 || reached[i].Certainty != c.want {
				t.Errorf("phase %q: %s: want %s: %+v", phase, c.rule, c.want, reached)
			} else if last := reached[i].Path[len(reached[i].Path)-1]; c.want == attackpaths.Possible &&
				!strings.Contains(last.DependsOn, "whose phase is Pending") {
				t.Errorf("phase %q: %s: it depends on %q", phase, c.rule, last.DependsOn)
			}
		}
	}
}

// In a pod that runs, an init container has ended.
func TestInitContainersOfPodsThatRun(t *testing.T) {
	for phase, want := range map[string]attackpaths.Certainty{
		"Pending": attackpaths.Certain, "Running": attackpaths.Possible, "": attackpaths.Certain,
	} {
		cluster := newCluster()
		pod := strings.Replace(pod("shop", "web-1", "n1", "web"), "spec:\n", "status: {phase: '"+phase+"'}\nspec:\n"+
			"  initContainers: [{name: i, image: i, securityContext: {privileged: true}}]\n", 1)
		parse(t, cluster, node("n1")+namespace("shop", "")+account("shop", "web")+pod)
		start := attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "web-1"}
		reached := from(t, graphOf(t, cluster), start).Reached
		i := slices.IndexFunc(reached, func(r attackpaths.Reached) bool { return r.Holding == nodeN1 })
		if i < 0 || reached[i].Certainty != want {
			t.Errorf("phase %q: want %s: %+v", phase, want, reached)
		}
	}
}

func reaches(t *testing.T, g *attackpaths.Graph, start, to attackpaths.Holding) bool {
	t.Helper()
	return slices.ContainsFunc(from(t, g, start).Reached, func(r attackpaths.Reached) bool { return r.Holding == to })
}

// In a namespace that terminates, nothing is created: no secret, role or binding, and no token.
func TestNothingIsCreatedInANamespaceThatTerminates(t *testing.T) {
	const inRBAC = "@rbac.authorization.k8s.io"
	admin := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "tools", Name: "admin"}
	for _, c := range []struct {
		rule, more string
		start      attackpaths.Holding
		to         attackpaths.Holding
		either     bool // also in one that terminates
	}{
		{rule: "a token", more: role("r", "tools", "shop/web", "create serviceaccounts/token@"), to: admin},
		{rule: "a token, by a right in the whole cluster", more: role("r", "", "shop/web", "create serviceaccounts/token@"), to: admin},
		{rule: "a token that a node requests", start: attackpaths.Holding{Kind: attackpaths.User, Name: "system:node:n1"}, to: admin},
		{rule: "a token that a pod mounts", start: nodeN1, to: admin, either: true},
		{rule: "a secret for a token", more: role("r", "tools", "shop/web", "create,get secrets@"), to: admin},
		{
			rule: "an account", to: attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "tools", Name: "ghost"},
			more: role("r", "tools", "shop/web", "create serviceaccounts@", "create serviceaccounts/token@ ghost") +
				role("g", "tools", "tools/ghost", "get configmaps@"),
		},
		{
			rule: "a binding", to: attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "tools", Name: "key"},
			more: secret("tools", "key", "Opaque", "") + role("reader", "tools", "user nobody", "get secrets@") +
				role("r", "", "shop/web", "create rolebindings"+inRBAC, "bind roles"+inRBAC),
		},
		{
			rule: "a binding that exists", to: attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "tools", Name: "key"}, either: true,
			more: secret("tools", "key", "Opaque", "") + role("reader", "tools", "user nobody", "get secrets@") +
				role("r", "tools", "shop/web", "patch rolebindings"+inRBAC, "bind roles"+inRBAC),
		},
	} {
		for _, phase := range []string{"Active", "Terminating"} {
			cluster := newCluster()
			ending := strings.Replace(namespace("tools", ""), "metadata:", "status: {phase: "+phase+"}\nmetadata:", 1)
			parse(t, cluster, node("n1")+namespace("shop", "")+ending+account("shop", "web")+account("tools", "admin")+
				pod("tools", "p", "n1", "admin")+c.more)
			if c.start == (attackpaths.Holding{}) {
				c.start = accountWeb
			}
			if got, want := reaches(t, graphOf(t, cluster), c.start, c.to), c.either || phase == "Active"; got != want {
				t.Errorf("%s: %s: %s is reached: %t", phase, c.rule, c.to, got)
			}
		}
	}
}

// In a namespace that terminates, no pods are created, whatever creates them.
func TestNamespacesThatTerminate(t *testing.T) {
	for _, phase := range []string{"Active", "Terminating"} {
		c := newCluster()
		ending := strings.Replace(namespace("tools", ""), "metadata:", "status: {phase: "+phase+"}\nmetadata:", 1)
		parse(t, c, node("n1")+namespace("shop", "")+ending+account("shop", "web")+account("tools", "admin")+
			role("r", "tools", "shop/web", "create pods@", "create deployments@apps", "patch statefulsets@apps", "update cronjobs@batch"))
		g := graphOf(t, c)
		for _, to := range []attackpaths.Holding{
			{Kind: attackpaths.Namespace, Name: "tools"}, {Kind: attackpaths.ServiceAccount, Namespace: "tools", Name: "admin"}, nodeN1,
		} {
			if got := reaches(t, g, accountWeb, to); got != (phase == "Active") {
				t.Errorf("%s: %s is reached: %v", phase, to, got)
			}
		}
	}
}
