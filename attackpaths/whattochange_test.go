package attackpaths_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// binding binds a ClusterRole to a subject in the whole cluster.
func binding(name, role, subject string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [%s]
---`, name, role, subjectText(subject))
}

// withSecret is a pod that also mounts a secret.
func withSecret(pod, name string) string {
	return strings.ReplaceAll(pod, "volumes:", "volumes:\n  - {name: s, secret: {secretName: "+name+"}}")
}

func TestWhatToChange(t *testing.T) {
	base := namespace("shop", restrictedLabel) + account("shop", "agent") + account("shop", "root") + node("n1") + node("n2")
	agents := daemonPod("shop", "agent", "n1", "agent") + daemonPod("shop", "agent", "n2", "agent")
	rootSecret := secret("shop", "s", "kubernetes.io/service-account-token", "root")
	tokens := role("tokens", "", "shop/agent", "create serviceaccounts/token@")
	removeTokens := []string{
		`remove the subjects of ClusterRoleBinding "tokens" 2 2`,
		`remove rule 1 (create serviceaccounts/token) from ClusterRole "tokens" 2 2`,
	}
	cases := []struct {
		rule, objects  string
		options        attackpaths.AdviceOptions
		nodes          attackpaths.NodesThatReach
		alone, set     []string
		left           attackpaths.NodesThatReach
		remainingSteps string
	}{
		{rule: "nothing to change", objects: base + agents},
		{
			rule:    "a binding, a rule and a mount each end the path of every node",
			objects: base + agents + role("r", "", "shop/agent", "* *@*"), nodes: attackpaths.NodesThatReach{Certain: 2},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "r" 2 2`, `remove rule 1 (* * of *) from ClusterRole "r" 2 2`,
				`do not mount a service account token into the pods of DaemonSet "shop/agent" 2 2`,
			},
			set: []string{`remove the subjects of ClusterRoleBinding "r"`},
		},
		{
			// No node holds a token of ops/root, which only its group gives rights.
			rule: "an account that is only impersonated",
			objects: base + namespace("ops", "") + account("ops", "root") + pod("shop", "p", "n1", "agent") +
				role("r", "ops", "shop/agent", "impersonate serviceaccounts@") +
				role("ops", "", "group system:serviceaccounts:ops", "* *@*") +
				role("users", "", "group system:serviceaccounts:ops", "impersonate users@ nobody"),
			nodes: attackpaths.NodesThatReach{Certain: 1},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "ops" 1 1`, `remove the subjects of RoleBinding "ops/r" 1 1`,
				`remove rule 1 (* * of *) from ClusterRole "ops" 1 1`,
				`remove rule 1 (impersonate serviceaccounts) from Role "ops/r" 1 1`,
				`do not mount a service account token into Pod "shop/p" 1 1`,
			},
			set: []string{`remove the subjects of ClusterRoleBinding "ops"`},
		},
		{
			rule:    "a rule that another rule of the role gives again does not help",
			objects: base + pod("shop", "p", "n1", "agent") + role("r", "", "shop/agent", "* *@*", "* *@*"),
			nodes:   attackpaths.NodesThatReach{Certain: 1},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "r" 1 1`,
				`do not mount a service account token into Pod "shop/p" 1 1`,
			},
			set: []string{`remove the subjects of ClusterRoleBinding "r"`},
		},
		{
			rule:    "the rules of the role cluster-admin stay",
			objects: base + pod("shop", "p", "n1", "agent") + role("cluster-admin", "", "shop/agent", "* *@*"),
			nodes:   attackpaths.NodesThatReach{Certain: 1},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "cluster-admin" 1 1`,
				`do not mount a service account token into Pod "shop/p" 1 1`,
			},
			set: []string{`remove the subjects of ClusterRoleBinding "cluster-admin"`},
		},
		{
			rule:    "two bindings that give the same both have to go",
			objects: base + agents + role("r", "", "shop/agent", "* *@*") + binding("again", "r", "shop/agent"),
			nodes:   attackpaths.NodesThatReach{Certain: 2},
			alone: []string{
				`remove rule 1 (* * of *) from ClusterRole "r" 2 2`,
				`do not mount a service account token into the pods of DaemonSet "shop/agent" 2 2`,
			},
			set: []string{`remove rule 1 (* * of *) from ClusterRole "r"`},
		},
		{
			rule: "where several ways lead to one account, only its binding helps alone",
			objects: base + account("shop", "other") + role("cluster-admin", "", "shop/root", "* *@*") + tokens +
				pod("shop", "p", "n1", "agent") + pod("shop", "q", "n1", "other") + role("create", "", "shop/other", "create pods@"),
			nodes: attackpaths.NodesThatReach{Certain: 1},
			alone: []string{`remove the subjects of ClusterRoleBinding "cluster-admin" 1 1`},
			set:   []string{`remove the subjects of ClusterRoleBinding "cluster-admin"`},
		},
		{
			rule: "two separate paths need two changes",
			objects: base + role("cluster-admin", "", "shop/agent", "* *@*") + binding("more", "cluster-admin", "shop/root") +
				pod("shop", "p", "n1", "agent") + pod("shop", "q", "n1", "root"),
			nodes: attackpaths.NodesThatReach{Certain: 1},
			set: []string{
				`remove the subjects of ClusterRoleBinding "cluster-admin"`, `remove the subjects of ClusterRoleBinding "more"`,
			},
		},
		{
			rule: "a secret that one pod mounts",
			objects: base + rootSecret + role("cluster-admin", "", "shop/root", "* *@*") +
				withSecret(pod("shop", "p", "n1", "agent"), "s"),
			nodes: attackpaths.NodesThatReach{Certain: 1},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "cluster-admin" 1 1`, `do not mount secret "s" into Pod "shop/p" 1 1`,
			},
			set: []string{`remove the subjects of ClusterRoleBinding "cluster-admin"`},
		},
		{
			rule: "a secret that another pod on the node also mounts",
			objects: base + rootSecret + role("cluster-admin", "", "shop/root", "* *@*") +
				withSecret(pod("shop", "p", "n1", "agent"), "s") + withSecret(pod("shop", "q", "n1", "agent"), "s"),
			nodes: attackpaths.NodesThatReach{Certain: 1},
			alone: []string{`remove the subjects of ClusterRoleBinding "cluster-admin" 1 1`},
			set:   []string{`remove the subjects of ClusterRoleBinding "cluster-admin"`},
		},
		{
			rule: "a secret that the same pod also uses to pull images",
			objects: base + rootSecret + role("cluster-admin", "", "shop/root", "* *@*") +
				strings.ReplaceAll(withSecret(pod("shop", "p", "n1", "agent"), "s"), "spec:", "spec:\n  imagePullSecrets: [{name: s}]"),
			nodes: attackpaths.NodesThatReach{Certain: 1},
			alone: []string{`remove the subjects of ClusterRoleBinding "cluster-admin" 1 1`},
			set:   []string{`remove the subjects of ClusterRoleBinding "cluster-admin"`},
		},
		{
			rule: "a Pod Security label",
			objects: namespace("web", "") + node("n1") + node("n2") + base + role("r", "web", "shop/agent", "create pods@") +
				pod("shop", "p", "n1", "agent") + pod("shop", "q", "n2", "root") + role("cluster-admin", "", "shop/root", "* *@*"),
			nodes: attackpaths.NodesThatReach{Certain: 2},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "cluster-admin" 2 2`,
				`do not mount a service account token into Pod "shop/q" 2 2`,
				`remove the subjects of RoleBinding "web/r" 1 1`, `remove rule 1 (create pods) from Role "web/r" 1 1`,
				`do not mount a service account token into Pod "shop/p" 1 1`,
				`enforce the Pod Security level restricted in Namespace "web" 1 1`,
			},
			set: []string{`remove the subjects of ClusterRoleBinding "cluster-admin"`},
		},
		{
			rule: "a Pod Security label that is not enough, because the namespace can be labeled again",
			objects: namespace("shop", "") + account("shop", "agent") + account("other", "root") + node("n1") + node("n2") +
				role("r", "shop", "shop/agent", "create pods@", "patch namespaces@") + pod("shop", "p", "n1", "agent") +
				pod("other", "q", "n2", "root") + role("cluster-admin", "", "other/root", "* *@*"),
			nodes: attackpaths.NodesThatReach{Certain: 2},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "cluster-admin" 2 2`,
				`do not mount a service account token into Pod "other/q" 2 2`,
				`remove the subjects of RoleBinding "shop/r" 1 1`, `remove rule 1 (create pods) from Role "shop/r" 1 1`,
				`do not mount a service account token into Pod "shop/p" 1 1`,
			},
			set: []string{`remove the subjects of ClusterRoleBinding "cluster-admin"`},
		},
		{
			rule: "nodes of the control plane do not count",
			objects: base + "\napiVersion: v1\nkind: Pod\n" +
				"metadata: {namespace: kube-system, name: etcd-n1, annotations: {kubernetes.io/config.mirror: x}}\n" +
				"spec: {nodeName: n1, containers: [{name: c, image: i}]}\n---" + agents + tokens +
				role("cluster-admin", "", "shop/root", "* *@*"),
			nodes: attackpaths.NodesThatReach{Certain: 1},
			alone: append([]string{`remove the subjects of ClusterRoleBinding "cluster-admin" 1 1`}, append(
				strings.Split(strings.ReplaceAll(strings.Join(removeTokens, "\n"), " 2 2", " 1 1"), "\n"),
				`do not mount a service account token into the pods of DaemonSet "shop/agent" 1 1`)...),
			set: []string{`remove the subjects of ClusterRoleBinding "cluster-admin"`},
		},
		{
			rule: "a path that is only possible counts as such, and stays",
			objects: base + pod("shop", "p", "n1", "agent") +
				role("r", "", "shop/agent", "create mutatingwebhookconfigurations@admissionregistration.k8s.io"),
			nodes: attackpaths.NodesThatReach{Possible: 1}, left: attackpaths.NodesThatReach{Possible: 1},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "r" 0 1`,
				`remove rule 1 (create mutatingwebhookconfigurations of admissionregistration.k8s.io) from ClusterRole "r" 0 1`,
				`do not mount a service account token into Pod "shop/p" 0 1`,
			},
		},
		{
			rule: "a path that is only possible is ended on request", options: attackpaths.AdviceOptions{Possible: true},
			objects: base + pod("shop", "p", "n1", "agent") +
				role("r", "", "shop/agent", "create mutatingwebhookconfigurations@admissionregistration.k8s.io"),
			nodes: attackpaths.NodesThatReach{Possible: 1},
			alone: []string{
				`remove the subjects of ClusterRoleBinding "r" 0 1`,
				`remove rule 1 (create mutatingwebhookconfigurations of admissionregistration.k8s.io) from ClusterRole "r" 0 1`,
				`do not mount a service account token into Pod "shop/p" 0 1`,
			},
			set: []string{`remove the subjects of ClusterRoleBinding "r"`},
		},
		{
			rule: "what no change ends is left, with its path", options: attackpaths.AdviceOptions{Possible: true},
			objects: "\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {node-role.kubernetes.io/control-plane: ''}}\n---",
			nodes:   attackpaths.NodesThatReach{Possible: 1}, left: attackpaths.NodesThatReach{Possible: 1},
			remainingSteps: "ControlPlaneNode",
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, c.objects)
			advice, err := attackpaths.WhatToChange(cluster, c.options)
			if err != nil {
				t.Fatal(err)
			}
			var alone, set, steps []string
			for _, change := range advice.Alone {
				alone = append(alone, fmt.Sprint(change, " ", change.Certain, " ", change.Entirely))
			}
			for _, change := range advice.Set {
				set = append(set, change.String())
			}
			for _, step := range advice.Remaining {
				steps = append(steps, string(step.Technique))
			}
			if !slices.Equal(alone, c.alone) {
				t.Errorf("alone:\n\t%s\nwant\n\t%s", strings.Join(alone, "\n\t"), strings.Join(c.alone, "\n\t"))
			}
			if !slices.Equal(set, c.set) {
				t.Errorf("set:\n\t%s\nwant\n\t%s", strings.Join(set, "\n\t"), strings.Join(c.set, "\n\t"))
			}
			if advice.Nodes != c.nodes || advice.Left != c.left || strings.Join(steps, " ") != c.remainingSteps {
				t.Errorf(
					"nodes %+v, left %+v through %v, want %+v, %+v, %s",
					advice.Nodes,
					advice.Left,
					steps,
					c.nodes,
					c.left,
					c.remainingSteps,
				)
			}
		})
	}
}

func TestTokensThatNodesRequestNeedNoMount(t *testing.T) {
	cluster := newCluster()
	cluster.Features = kubeversion.For(30) // audiences are not restricted
	parse(t, cluster, namespace("shop", "")+account("shop", "agent")+node("n1")+pod("shop", "p", "n1", "agent")+
		role("cluster-admin", "", "shop/agent", "* *@*"))
	advice, err := attackpaths.WhatToChange(cluster, attackpaths.AdviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `[remove the subjects of ClusterRoleBinding "cluster-admin"]`
	if got := fmt.Sprint(advice.Alone); got != want || fmt.Sprint(advice.Set) != want {
		t.Errorf("alone %s, set %s, want %s", got, advice.Set, want)
	}
}

func TestWhatToChangeCountsWhatIsNotEvaluated(t *testing.T) {
	cluster := newCluster()
	parse(t, cluster, namespace("shop", "")+account("shop", "agent")+node("n1")+pod("shop", "p", "n1", "agent")+
		role("r", "", "shop/agent", "* *@*"))
	advice, err := attackpaths.WhatToChange(cluster, attackpaths.AdviceOptions{Limit: 2})
	if err != nil || len(advice.Alone) != 2 || advice.NotEvaluated != 1 || len(advice.Set) != 1 {
		t.Errorf("advice %+v, %v, want two changes, one that is not evaluated, and a set", advice, err)
	}
}

func TestWhatToChangeRefusesAnIncompleteCluster(t *testing.T) {
	if _, err := attackpaths.WhatToChange(&attackpaths.Cluster{}, attackpaths.AdviceOptions{}); err == nil {
		t.Error("no error for a cluster without inventory")
	}
}

func TestChangeAsJSON(t *testing.T) {
	change := attackpaths.Change{
		Kind: attackpaths.RemoveRule, Object: attackpaths.Holding{Kind: "Role", Namespace: "shop", Name: "r"},
		Rule: &rbacv1.PolicyRule{
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"s"},
		},
		RuleNumber: 2, Certain: 3, Entirely: 1,
	}
	const want = `{"kind":"RoleRule","object":{"kind":"Role","namespace":"shop","name":"r"},` +
		`"rule":{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["s"]},"ruleNumber":2,"certain":3,"entirely":1}`
	if got, err := json.Marshal(change); err != nil || string(got) != want {
		t.Errorf("JSON is %s, %v, want %s", got, err, want)
	}
	if got, want := change.String(), `remove rule 2 (get secrets named s) from Role "shop/r"`; got != want {
		t.Errorf("text is %s, want %s", got, want)
	}
}
