package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// boundTo binds a cluster role to a subject by another binding.
func boundTo(name, role, subject string) string {
	return fmt.Sprintf("\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}\nsubjects: [%s]\n---",
		name, role, subjectText(subject))
}

// aggregated is a bound role that is made of the roles of part.
func aggregated(name, subject string, rules ...string) string {
	const selector = "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\nrules:\n"
	return strings.Replace(role(name, "", subject, rules...), "rules:\n", selector, 1)
}

// part is a role without a binding that aggregated roles are made of.
func part(name string, rules ...string) string {
	all := strings.Replace(role(name, "", "user x", rules...), "{name: "+name+"}", "{name: "+name+", labels: {a: b}}", 1)
	return strings.Split(all, "---")[0] + "---"
}

// A remedy of a right takes each verb that gives the step, and as few other rights as it can.
func TestRemediesOfRights(t *testing.T) {
	const everyVerb = "get,list,watch,create,update,patch,delete,deletecollection"
	db := attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "shop", Name: "s"}
	subject := []string{
		`test clusterrolebinding r /subjects/0 {"kind":"ServiceAccount","name":"web","namespace":"shop"}`,
		"remove clusterrolebinding r /subjects/0",
	}
	others := func(role string, n int) string {
		var all strings.Builder
		for i := range n {
			all.WriteString(boundTo(fmt.Sprint("other-", i), role, fmt.Sprint("user ", i)))
		}
		return all.String()
	}
	for _, c := range []struct {
		rule, objects string
		want          []string
		other         int
	}{
		{"each verb that reads, and no other", role("r", "", "shop/web", everyVerb+" secrets@"), []string{
			"test clusterrole r /rules/0", `replace clusterrole r /rules/0/verbs ["create","update"]`,
		}, 0},
		{"of every verb those that do not read are left", role("r", "", "shop/web", "* secrets@"), []string{
			"test clusterrole r /rules/0", `replace clusterrole r /rules/0/verbs ["create","update"]`,
		}, 0},
		{"a rule for other resources too is two rules then", strings.Replace(
			role("r", "", "shop/web", "get,create secrets@"), `["secrets"]`, `["secrets", "configmaps"]`, 1,
		), []string{
			"test clusterrole r /rules/0", `replace clusterrole r /rules/0/resources ["configmaps"]`,
			`add clusterrole r /rules/1 {"verbs":["create"],"apiGroups":[""],"resources":["secrets"]}`,
		}, 0},
		{"the name of the secret", role("r", "", "shop/web", "get secrets@ s,t"), []string{
			"test clusterrole r /rules/0", `replace clusterrole r /rules/0/resourceNames ["t"]`,
		}, 0},
		{"each rule of a role, in one patch", role("r", "", "shop/web", "get secrets@", "get pods@", "delete secrets@"), []string{
			"test clusterrole r /rules/2", "remove clusterrole r /rules/2", "test clusterrole r /rules/0", "remove clusterrole r /rules/0",
		}, 0},
		{
			"each binding that gives it",
			role("r", "", "shop/web", "get secrets@") +
				role("q", "shop", "group system:serviceaccounts:shop", "patch secrets@", "get pods@"),
			[]string{
				"test clusterrolebinding r /subjects/0", "remove clusterrolebinding r /subjects/0",
				"test role shop/q /rules/0", "remove role shop/q /rules/0",
			},
			0,
		},
		{
			"of a role that others have, the rule, if the subject would lose more",
			role("r", "", "shop/web", "get secrets@", "get,list,watch pods@") + others("r", 2),
			[]string{"test clusterrole r /rules/0", "remove clusterrole r /rules/0"},
			2,
		},
		{
			"of a role that many have, the subject, if the others would lose more",
			role("r", "", "shop/web", "get secrets@", "get,list,watch pods@") + others("r", 4), subject, 3,
		},
		{
			"a rule of the roles that an aggregated role is made of",
			aggregated("r", "shop/web", "get secrets@", "get pods@") + part("part", "get secrets@", "get pods@"),
			[]string{"test clusterrole part /rules/0", "remove clusterrole part /rules/0"},
			0,
		},
		{
			"from each role that states it for an aggregated role",
			aggregated("all", "shop/web", "get secrets@", "get,list pods@") +
				part("a", "get secrets@", "get,list pods@") + part("b", "get secrets@", "get nodes@") + boundTo("b", "b", "user other"),
			[]string{
				"test clusterrole a /rules/0", "remove clusterrole a /rules/0",
				"test clusterrole b /rules/0", "remove clusterrole b /rules/0",
			},
			1,
		},
		{
			"what an aggregated role keeps, because another role states it, makes up for nothing that others lose",
			aggregated("all", "user boss", "get,create,update secrets@") + part("a", "get,create,update secrets@") +
				part("b", "get,create,update secrets@") + boundTo("a", "a", "shop/web") + boundTo("a-other", "a", "user other"),
			[]string{"test clusterrole a /rules/0", `replace clusterrole a /rules/0/verbs ["create","update"]`},
			1,
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, node("n1")+account("shop", "web")+secret("shop", "s", "Opaque", "")+c.objects)
			g := graphOf(t, cluster)
			result, err := g.FromTo(accountWeb, db)
			if err != nil || len(result.Reached) == 0 {
				t.Fatalf("the secret is not reached: %v", err)
			}
			step := withRemedy(g, result.Reached[0].Path[0])
			got := remedyText(step.Remedy)
			matches := func(got, want string) bool {
				return got == want || strings.HasPrefix(want, "test ") && strings.HasPrefix(got, want+" ")
			}
			if !slices.EqualFunc(got, c.want, matches) || step.Remedy.OtherRights != c.other {
				t.Errorf("the remedy is\n%s\nand takes %d other rights, want\n%s\nand %d",
					strings.Join(got, "\n"), step.Remedy.OtherRights, strings.Join(c.want, "\n"), c.other)
			}
		})
	}
}

// A rule with names lets objects be created by those names too: the remedy takes create, not the subject with all it has.
func TestRemedyOfARightToCreateByName(t *testing.T) {
	db := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "db"}
	for rule, want := range map[string]string{
		"create,patch,get secrets@ t": `["patch","get"]`,
		"* secrets@ t":                `["get","list","watch","update","patch","delete","deletecollection"]`,
	} {
		cluster := newCluster()
		parse(t, cluster, namespace("shop", restrictedLabel)+account("shop", "web")+account("shop", "db")+
			role("r", "", "shop/web", rule, "get,list,watch,delete pods@"))
		g := graphOf(t, cluster)
		result, err := g.FromTo(accountWeb, db)
		if err != nil || len(result.Reached) == 0 {
			t.Fatalf("%s: %s is not reached: %v", rule, db, err)
		}
		got := remedyText(withRemedy(g, result.Reached[0].Path[0]).Remedy)
		if len(got) != 2 || got[1] != "replace clusterrole r /rules/0/verbs "+want {
			t.Errorf("%s: the remedy is %q, want the verbs %s", rule, got, want)
		}
	}
}

// The answer to an approval has the certificate, so that to take get away leaves the step.
func TestRemedyOfApprovalsThatAnswer(t *testing.T) {
	const requests = "certificatesigningrequests"
	for _, verbs := range []string{"update", "patch", "update,patch"} {
		cluster := newCluster()
		parse(t, cluster, node("n1")+account("shop", "web")+role("r", "", "shop/web",
			"create,get,list,watch "+requests+"@certificates.k8s.io", verbs+" "+requests+"/approval@certificates.k8s.io",
			"approve signers@certificates.k8s.io")+role("boss", "", "user boss", "* *@*"))
		g := graphOf(t, cluster)
		result, err := g.FromTo(accountWeb, attackpaths.Holding{Kind: attackpaths.User, Name: "boss"})
		if err != nil || len(result.Reached) == 0 {
			t.Fatalf("the user is not reached: %v", err)
		}
		step := withRemedy(g, result.Reached[0].Path[0])
		want := []string{
			`test clusterrole r /rules/2 {"verbs":["approve"],"apiGroups":["certificates.k8s.io"],"resources":["signers"]}`,
			"remove clusterrole r /rules/2",
		}
		if got := remedyText(step.Remedy); step.Technique != attackpaths.ApproveCertificate || !slices.Equal(got, want) {
			t.Errorf("%s: the remedy of %s is %q, want %q", verbs, step.Technique, got, want)
		}
	}
}

// What Kubernetes makes itself is changed only with the consequence, and never where another change ends the step.
func TestRemediesSayWhatTheyDisrupt(t *testing.T) {
	defaultBinding := func(name string) string {
		const labeled = "{labels: {kubernetes.io/bootstrapping: rbac-defaults}, name: "
		return strings.Replace(boundTo(name, "r", "shop/web"), "{name: ", labeled, 1)
	}
	lone := func(rules ...string) string {
		return strings.Split(role("r", "", "user x", rules...), "---")[0] + "---"
	}
	for _, c := range []struct{ rule, objects, want string }{
		{
			"a default binding", lone("get secrets@") + defaultBinding("system:web"),
			"Kubernetes makes this itself, and components that rely on it stop working: clusterrolebinding system:web.",
		},
		{"a role of one's own in a default binding", lone("get secrets@", "get pods@") + defaultBinding("system:web"), ""},
		{"a right", role("r", "", "shop/web", "get secrets@"), ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, node("n1")+account("shop", "web")+secret("shop", "s", "Opaque", "")+c.objects)
			g := graphOf(t, cluster)
			result, err := g.FromTo(accountWeb, attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "shop", Name: "s"})
			if err != nil || len(result.Reached) == 0 {
				t.Fatalf("the secret is not reached: %v", err)
			}
			if got := withRemedy(g, result.Reached[0].Path[0]).Remedy; got.Disrupts != c.want || len(got.Changes) == 0 {
				t.Errorf("the remedy %q disrupts %q, want %q", remedyText(got), got.Disrupts, c.want)
			}
		})
	}
}

// TestRemediesAreBounded: when the time of an answer is used up, the other steps say so, and what was found before stays.
func TestRemediesAreBounded(t *testing.T) {
	var objects strings.Builder
	objects.WriteString(namespace("shop", restrictedLabel) + account("shop", "web") + role("r", "shop", "shop/web", "get secrets@"))
	const secrets = 30
	for i := range secrets {
		objects.WriteString(secret("shop", fmt.Sprint("s", i), "Opaque", ""))
	}
	c := newCluster()
	parse(t, c, objects.String())
	g := graphOf(t, c)
	var paths [][]attackpaths.Step
	for _, r := range from(t, g, accountWeb).Reached {
		paths = append(paths, r.Path)
	}
	have := 0
	for _, budget := range []int{0, 200, 200, 100_000} {
		g.AddRemediesWithin(budget, paths...)
		before := have
		have = 0
		for _, path := range paths {
			for _, step := range path {
				if len(step.Remedy.Changes) > 0 {
					have++
				} else if !strings.Contains(step.Remedy.None, "ask for one target") {
					t.Errorf("%s has no remedy because of %q", step.To, step.Remedy.None)
				}
			}
		}
		switch {
		case budget == 0 && have > 0, budget == 200 && (have <= before || have == secrets), budget > 200 && have != secrets:
			t.Errorf("with a budget of %d, %d steps have remedies after %d", budget, have, before)
		}
	}
}
