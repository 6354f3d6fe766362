package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// remedyText is a remedy, one change in a line.
func remedyText(r *verdict.Remedy) []string {
	if r.None != "" {
		return []string{"none"}
	}
	var all []string
	for _, c := range r.Changes {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Op, c.Object, c.Path, c.Value)))
	}
	return all
}

// ownedBy gives a pod a controller.
func ownedBy(pod, apiVersion, kind, name string) string {
	owner := fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: %s, controller: true, uid: u}]}", apiVersion, kind, name)
	return strings.Replace(pod, "}\nspec:", ", "+owner+"\nspec:", 1)
}

func TestRemedies(t *testing.T) {
	automounted := strings.ReplaceAll(pod("shop", "p", "n1", "web"), "name: token\n", "name: kube-api-access-x\n")
	privileged := strings.ReplaceAll(pod("shop", "p", "n1", "web"), "image: i", "image: i, securityContext: {privileged: true}")
	mirror := strings.Replace(privileged, "name: p}", "name: p, annotations: {kubernetes.io/config.mirror: x}}", 1)
	web := account("shop", "web") + pod("shop", "p", "n1", "web")
	labeled := func(text, kind string) string {
		meta := "kind: " + kind + "\nmetadata: {"
		return strings.ReplaceAll(text, meta, meta+"labels: {kubernetes.io/bootstrapping: rbac-defaults}, ")
	}
	open := namespace("shop", "")
	removeBinding := []string{
		`test clusterrolebinding r /subjects/0 {"kind":"ServiceAccount","name":"web","namespace":"shop"}`,
		"remove clusterrolebinding r /subjects/0",
	}
	for _, c := range []struct {
		technique     attackpaths.Code
		rule, objects string
		want          []string
	}{
		{attackpaths.PodOnNode, "a node has its pods by design", web, []string{"none"}},
		{attackpaths.PodTokenOnNode, "a pod without a template is deleted", web, []string{"remove pod shop/p"}},
		{
			attackpaths.PodTokenOnNode, "a token that the API server adds", ownedBy(automounted, "apps/v1", "DaemonSet", "agent"),
			[]string{"add daemonset shop/agent /spec/template/spec/automountServiceAccountToken false"},
		},
		{
			attackpaths.PodTokenOnNode, "a CronJob, and its Job", ownedBy(automounted, "batch/v1", "Job", "backup-29384756"),
			[]string{
				"add cronjob shop/backup /spec/jobTemplate/spec/template/spec/automountServiceAccountToken false",
				"remove job shop/backup-29384756",
			},
		},
		{
			attackpaths.PodTokenOnNode, "another Job cannot be changed", ownedBy(automounted, "batch/v1", "Job", "once"),
			[]string{"remove job shop/once"},
		},
		{
			attackpaths.PodTokenOnNode, "a controller that is not known", ownedBy(automounted, "x.io/v1", "Thing", "t"), []string{"none"},
		},
		{
			attackpaths.PodToken, "a token in the template", ownedBy(pod("shop", "p", "n1", "web"), "apps/v1", "StatefulSet", "db"),
			[]string{
				`test statefulset shop/db /spec/template/spec/volumes/0/name "token"`,
				"remove statefulset shop/db /spec/template/spec/volumes/0",
			},
		},
		{
			attackpaths.TokenOfPodOnNode, "a token of an audience that the pod names",
			ownedBy(automounted, "apps/v1", "DaemonSet", "agent"),
			[]string{"add daemonset shop/agent /spec/template/spec/automountServiceAccountToken false"},
		},
		{
			attackpaths.PodSecret, "a volume of a secret",
			ownedBy(withSecret(pod("shop", "p", "n1", "web"), "s"), "apps/v1", "DaemonSet", "agent"),
			[]string{
				`test daemonset shop/agent /spec/template/spec/volumes/0/name "s"`,
				"remove daemonset shop/agent /spec/template/spec/volumes/0",
			},
		},
		{
			attackpaths.SecretOnNode, "the pods of the node that refer to it",
			ownedBy(withSecret(pod("shop", "p", "n1", "web"), "s"), "apps/v1", "DaemonSet", "agent"),
			[]string{
				`test daemonset shop/agent /spec/template/spec/volumes/0/name "s"`,
				"remove daemonset shop/agent /spec/template/spec/volumes/0",
			},
		},
		{
			attackpaths.PodEscape, "a privileged container", ownedBy(privileged, "apps/v1", "ReplicaSet", "r"),
			[]string{
				`test replicaset shop/r /spec/template/spec/containers/0/name "c"`,
				"add replicaset shop/r /spec/template/spec/containers/0/securityContext/privileged false", "remove pod shop/p",
			},
		},
		{attackpaths.PodEscape, "a static pod", mirror, []string{"none"}},
		{
			attackpaths.SecretRead, "a resource of a rule of the account's own role", web + secret("shop", "s", "Opaque", "") +
				strings.ReplaceAll(role("r", "", "shop/web", "get secrets@"), `["secrets"]`, `["pods", "secrets"]`),
			[]string{
				`test clusterrole r /rules/0 {"verbs":["get"],"apiGroups":[""],"resources":["pods","secrets"]}`,
				`replace clusterrole r /rules/0/resources ["pods"]`,
			},
		},
		{
			attackpaths.SecretRead, "a binding that gives nothing else",
			web + secret("shop", "s", "Opaque", "") + role("r", "", "shop/web", "get secrets@"), removeBinding,
		},
		{
			attackpaths.SecretRead, "the subject of a binding of several", web + secret("shop", "s", "Opaque", "") +
				strings.ReplaceAll(role("r", "", "shop/web", "get secrets@"), "subjects: [", "subjects: [{kind: User, name: bob}, "),
			[]string{
				`test clusterrolebinding r /subjects/1 {"kind":"ServiceAccount","name":"web","namespace":"shop"}`,
				"remove clusterrolebinding r /subjects/1",
			},
		},
		{
			attackpaths.SecretRead, "a binding that Kubernetes restores",
			web + secret("shop", "s", "Opaque", "") + labeled(role("r", "", "shop/web", "get secrets@"), "ClusterRoleBinding"),
			[]string{
				`test clusterrolebinding r /subjects/0 {"kind":"ServiceAccount","name":"web","namespace":"shop"}`,
				"remove clusterrolebinding r /subjects/0",
				`add clusterrolebinding r /metadata/annotations/rbac.authorization.kubernetes.io~1autoupdate "false"`,
			},
		},
		{
			attackpaths.SecretRead, "a role that Kubernetes restores stays", web + secret("shop", "s", "Opaque", "") +
				labeled(role("r", "", "shop/web", "get secrets@", "get pods@"), "ClusterRole"), removeBinding,
		},
		{
			attackpaths.ServiceAccountTokenSecret, "the secret", web + account("shop", "root") + role("r", "", "shop/web", "get secrets@") +
				secret("shop", "s", "kubernetes.io/service-account-token", "root"), []string{"remove secret shop/s"},
		},
		{attackpaths.TokenRequest, "the right", web + account("shop", "x") +
			role("r", "", "shop/web", "create serviceaccounts/token@"), removeBinding},
		{attackpaths.Masters, "the right to everything", web + role("r", "", "shop/web", "* *@*"), removeBinding},
		{
			attackpaths.NamespaceRelabel, "the right", web + namespace("shop", restrictedLabel) + node("n2") +
				role("r", "", "shop/web", "patch namespaces@", "create pods@"),
			[]string{
				`test clusterrole r /rules/0 {"verbs":["patch"],"apiGroups":[""],"resources":["namespaces"]}`,
				"remove clusterrole r /rules/0",
			},
		},
	} {
		t.Run(string(c.technique)+"/"+c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, node("n1")+c.objects)
			if got := remedyOfStep(t, cluster, c.technique, c.want); !slices.Equal(got, c.want) {
				t.Errorf("the remedy is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	for rule, shop := range map[string]string{"the label of the namespace": open, "the label of a namespace that no object shows": ""} {
		t.Run("PodCreate/"+rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, shop+node("n2")+web+role("r", "shop", "shop/web", "create pods@"))
			want := []string{`add namespace shop /metadata/labels/pod-security.kubernetes.io~1enforce "baseline"`}
			if got := remedyOfStep(t, cluster, attackpaths.PodCreate, want); !slices.Equal(got, want) {
				t.Errorf("the remedy is %q, want %q", got, want)
			}
		})
	}
	t.Run("TokenOfPodOnNode/another account, where nodes may ask for any audience", func(t *testing.T) {
		cluster := newCluster()
		cluster.Features = kubeversion.For(30)
		parse(t, cluster, ownedBy(automounted, "apps/v1", "DaemonSet", "agent"))
		want := []string{`add daemonset shop/agent /spec/template/spec/serviceAccountName "default"`}
		if got := remedyOfStep(t, cluster, attackpaths.TokenOfPodOnNode, want); !slices.Equal(got, want) {
			t.Errorf("the remedy is %q, want %q", got, want)
		}
	})
}

// remedyOfStep is the remedy of a step by a technique: the one that is wanted, or else the first.
func remedyOfStep(t *testing.T, c *attackpaths.Cluster, technique attackpaths.Code, want []string) []string {
	t.Helper()
	g := graphOf(t, c)
	var first []string
	starts := []attackpaths.Holding{{Kind: attackpaths.Node, Name: "n1"}, {Kind: attackpaths.Pod, Namespace: "shop", Name: "p"}}
	for _, start := range append(starts, attackpaths.Holding{Kind: attackpaths.User, Name: "system:node:n1"}) {
		result, err := g.From(start)
		if err != nil {
			continue
		}
		for _, r := range result.Reached {
			for _, step := range r.Path {
				if step.Technique != technique {
					continue
				}
				text := remedyText(withRemedy(g, step).Remedy)
				if slices.Equal(text, want) {
					return text
				}
				if first == nil {
					first = text
				}
			}
		}
	}
	return first
}
