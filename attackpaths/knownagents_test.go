package attackpaths_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// assessment is what an agent gives in the made cluster.
type assessment struct {
	*agent
	// any is what a node gives that has pods of DaemonSets only, and controllers what the node
	// gives that has the other pods.
	any, controllers given
	// anyBefore and controllersBefore are the same without the agent.
	anyBefore, controllersBefore given
	// apart is what any node gives if the other pods run on a node of their own.
	apart given
	// certain ends what is certain of cluster-admin, and all also what is possible.
	certain, all advice
	// rules are those without which a goal is not reached.
	rules map[int][]attackpaths.Change
}

// assess installs an agent in a cluster.
func assess(t *testing.T, m made, a *agent) assessment {
	t.Helper()
	before := m.give(t, plainNode, controllersNode)
	m = m.withAgents(a)
	after := m.give(t, plainNode, controllersNode)
	x := assessment{
		agent: a, any: after[0], controllers: after[1], anyBefore: before[0], controllersBefore: before[1],
		rules: map[int][]attackpaths.Change{},
	}
	dedicated := m
	dedicated.dedicated = true
	x.apart = dedicated.give(t, plainNode)[0]
	switch x.worst(0) {
	case attackpaths.Certain:
		x.certain = m.adminAdvice(t, false)
		x.all = m.adminAdvice(t, true)
	case attackpaths.Possible:
		x.all = m.adminAdvice(t, true)
	}
	for i := range goals {
		if x.shows(i) {
			x.rules[i] = m.ruleAdvice(t, a, i, plainNode, controllersNode)
		}
	}
	return x
}

// worst is how a goal is reached from the node that gives more.
func (x assessment) worst(goal int) attackpaths.Certainty {
	return max(x.any.certainty[goal], x.controllers.certainty[goal])
}

// gives reports whether a worker reaches any goal.
func (x assessment) gives() bool {
	return slices.ContainsFunc(x.any.certainty, reached) || slices.ContainsFunc(x.controllers.certainty, reached)
}

func reached(c attackpaths.Certainty) bool { return c != attackpaths.No }

// shows reports whether the page shows the path to a goal: not to nodes where cluster-admin is
// reached as well.
func (x assessment) shows(goal int) bool {
	return x.worst(goal) != attackpaths.No && (goal != allNodes || x.worst(goal) > x.worst(0))
}

// TestKnownAgents evaluates the agents of examples/agents and the clusters of examples/clusters, and
// compares docs/evidence/known-agents.md with the results. UPDATE_GOLDEN=1 writes it.
func TestKnownAgents(t *testing.T) {
	kubeadm, k3s := readAgent(t, "../examples/clusters/kubeadm.yaml"), readAgent(t, "../examples/clusters/k3s.yaml")
	withKubeadm := madeCluster(t, "testdata/kubeadm.yaml")
	p := &agentsPage{clusters: []assessment{assess(t, withKubeadm, kubeadm), assess(t, madeCluster(t), k3s)}}
	for _, a := range readAgents(t, "../examples/agents") {
		p.agents = append(p.agents, assess(t, withKubeadm.withAgents(kubeadm), a))
	}
	if len(p.agents) < 20 {
		t.Errorf("there are %d agents, want 20 at least", len(p.agents))
	}
	const path = "../docs/evidence/known-agents.md"
	text := p.text()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s does not match the results; write it with UPDATE_GOLDEN=1 and read the diff", path)
	}
}

// The command reads the files, and each has what its workloads and bindings name.
func TestAgentFilesAreComplete(t *testing.T) {
	defaults := map[string]bool{}
	for _, object := range madeCluster(t).objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			defaults["ClusterRole "+o.Name] = true
		case *rbacv1.Role:
			defaults["Role "+o.Namespace+"/"+o.Name] = true
		}
	}
	for _, a := range slices.Concat(readAgents(t, "../examples/agents"), readAgents(t, "../examples/clusters")) {
		for _, problem := range readProblems(t, a.path) {
			t.Errorf("%s: %s", a.path, problem)
		}
		for _, missing := range a.missing(defaults) {
			t.Errorf("%s: %s is missing", a.path, missing)
		}
	}
}

// readProblems says what the command does not read of a file, as a state and as a change of one.
func readProblems(t *testing.T, path string) []string {
	t.Helper()
	state, err := source.LoadFiles(t.Context(), []string{path}, source.FileOptions{Inventory: true})
	if err != nil {
		return []string{err.Error()}
	}
	problems := state.Warnings()
	changes, err := source.ReadChanges(t.Context(), []string{path}, source.ChangeOptions{})
	if err != nil {
		return append(problems, err.Error())
	}
	for kind := range changes.Skipped {
		problems = append(problems, kind+" is not used")
	}
	if state, err = source.LoadFiles(t.Context(), []string{"testdata/agents.yaml"}, source.FileOptions{Inventory: true}); err != nil {
		return append(problems, err.Error())
	}
	if _, _, err = state.Change(changes, nil); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

// missing are the accounts of workloads and the roles of bindings that are neither in the file nor
// among others.
func (a *agent) missing(others map[string]bool) []string {
	has, missing := maps.Clone(others), []string(nil)
	for _, object := range a.objects {
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			has["ServiceAccount "+o.Namespace+"/"+o.Name] = true
		case *rbacv1.ClusterRole:
			has["ClusterRole "+o.Name] = true
		case *rbacv1.Role:
			has["Role "+o.Namespace+"/"+o.Name] = true
		}
	}
	require := func(what string) {
		if !has[what] {
			missing = append(missing, what)
		}
	}
	for _, object := range a.objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			require("ClusterRole " + o.RoleRef.Name)
		case *rbacv1.RoleBinding:
			if o.RoleRef.Kind == "ClusterRole" {
				require("ClusterRole " + o.RoleRef.Name)
			} else {
				require("Role " + o.Namespace + "/" + o.RoleRef.Name)
			}
		}
	}
	for _, w := range a.workloads {
		if account := w.template.Spec.ServiceAccountName; account != "" && account != "default" {
			require("ServiceAccount " + w.namespace + "/" + account)
		}
	}
	return missing
}

// Without an agent, a worker of the made cluster gives nothing that the page counts.
func TestMadeClusterGivesNothing(t *testing.T) {
	for _, g := range madeCluster(t, "testdata/kubeadm.yaml").give(t, controllersNode, plainNode, otherNode) {
		for i, goal := range goals {
			if g.certainty[i] != attackpaths.No {
				t.Errorf("%s gives %s: %v", g.node, goal.name, g.paths[i])
			}
		}
	}
}

// An agent whose account may do everything gives everything, and the advice names its binding.
func TestCarelessAgentGivesEverything(t *testing.T) {
	a := &agent{title: "careless"}
	text := `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: shop, name: agent}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: shop, name: agent}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: shop, name: agent}
spec: {template: {spec: {serviceAccountName: agent, containers: [{name: agent}]}}}
`
	for _, object := range decode(t, "careless", []byte(text)) {
		if w, ok := workloadOf(object); ok {
			a.workloads = append(a.workloads, w)
		} else {
			a.objects = append(a.objects, object)
		}
	}
	x := assess(t, madeCluster(t), a)
	if x.any.certainty[0] != attackpaths.Certain {
		t.Errorf("cluster-admin from any node: %v", x.any.certainty[0])
	}
	var changes []string
	for _, c := range x.certain.alone {
		changes = append(changes, c.String())
	}
	if want := `remove the subjects of ClusterRoleBinding "agent"`; !strings.Contains(strings.Join(changes, "\n"), want) {
		t.Errorf("changes are %q, want %q among them", changes, want)
	}
}
