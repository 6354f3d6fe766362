package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/internal/server"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// containedCluster is the shared cluster with NodeScopes and Quarantines: node b is quarantined, and so is one
// credential. One of the scopes observes, and one is not valid.
func containedCluster() map[string][]string {
	cluster := sharedCluster()
	cluster["nodes"] = append(cluster["nodes"],
		`{"metadata": {"name": "c", "uid": "uid-c"}}`, `{"metadata": {"name": "d", "uid": "uid-d"}}`)
	cluster["nodescopes"] = []string{
		`{"metadata": {"name": "agent", "uid": "1"}, "spec": {"mode": "Enforce",
			"subjects": [{"namespace": "kube-system", "name": "agent"}],
			"asNode": true, "namedAsNode": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "patch"]}],
			"selectsNode": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"], "field": "spec.nodeName"}],
			"podsOnNode": [{"resources": ["pods"], "verbs": ["get", "delete"]}],
			"anywhere": [{"apiGroups": [""], "resources": ["services"], "verbs": ["get"]}]}}`,
		`{"metadata": {"name": "watched", "uid": "2"}, "spec": {"mode": "Observe", "subjects": [{"namespace": "shop"}]}}`,
		`{"metadata": {"name": "broken", "uid": "3"}, "spec": {"mode": "Enforce", "otherwise": "Perhaps",
			"subjects": [{"namespace": "broken"}]}}`,
	}
	cluster["quarantines"] = []string{
		`{"metadata": {"name": "b", "uid": "4"}, "spec": {"node": "b",
			"allow": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]}}`,
		`{"metadata": {"name": "credential", "uid": "5"}, "spec": {"credential": "JTI=1"}}`,
		`{"metadata": {"name": "ended", "uid": "6"}, "spec": {"node": "a", "expirationTime": "2020-01-01T00:00:00Z"}}`,
	}
	return cluster
}

// containedReviews returns reviews of nodes, and of service accounts with tokens of several nodes.
func containedReviews() map[string]string {
	const node = nodeidentity.ExtraNode
	tokens := map[string]string{
		"without a token":       `{}`,
		"of node a":             fmt.Sprintf(`{%q: ["a"]}`, node),
		"of node b":             fmt.Sprintf(`{%q: ["b"]}`, node),
		"of node c":             fmt.Sprintf(`{%q: ["c"], %q: ["JTI=2"]}`, node, nodeidentity.ExtraCredential),
		"of a credential":       fmt.Sprintf(`{%q: ["a"], %q: ["JTI=1"]}`, node, nodeidentity.ExtraCredential),
		"of nodes a and c":      fmt.Sprintf(`{%q: ["a", "c"]}`, node),
		"of an unknown node":    fmt.Sprintf(`{%q: ["none"]}`, node),
		"of the own node, asks": `{"authentication.kubernetes.io/associated-node-keys": ["authentication.kubernetes.io/node-name"]}`,
	}
	reviews := map[string]string{}
	for _, user := range []string{
		"system:serviceaccount:kube-system:agent", "system:serviceaccount:shop:default", "system:serviceaccount:broken:any",
		"system:serviceaccount:other:any", "system:node:a", "system:node:b", "alice",
	} {
		groups := `["system:authenticated"]`
		if strings.HasPrefix(user, nodeidentity.UserPrefix) {
			groups = `["system:nodes", "system:authenticated"]`
		}
		for token, extra := range tokens {
			of := func(document string) string {
				return strings.Replace(document, `"groups": `, `"extra": `+extra+`, "groups": `, 1)
			}
			about := user + " " + token + ": "
			for _, asked := range []string{
				"get pods shop web", "get pods shop other", "delete pods shop web", "list pods shop -", "get secrets shop db",
				"get secrets shop other", "patch nodes - a", "patch nodes - b", "patch nodes - c", "create nodes - -", "get nodes - b",
				"get services shop web", "update services shop web", "impersonate:associated-node nodes - *",
			} {
				reviews[about+asked] = of(accessReview(user, groups, strings.Fields(asked)))
			}
			for _, name := range []string{"a", "b", "c"} {
				reviews[about+"create Node "+name] = of(strings.Replace(admissionReview(user, groups, "CREATE", "nodes", "", name,
					`"kind": {"version": "v1", "kind": "Node"}`,
					fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}}`, name)), `"namespace": "shop", `, "", 1))
			}
			for _, pod := range []string{"web", "other"} {
				reviews[about+"delete Pod "+pod] = of(admissionReview(user, groups, "DELETE", "pods", "", pod,
					`"kind": {"version": "v1", "kind": "Pod"}`, "null"))
				reviews[about+"token of Pod "+pod] = of(admissionReview(user, groups, "CREATE", "serviceaccounts", "token", "default",
					`"kind": {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}`,
					fmt.Sprintf(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
						"metadata": {"namespace": "shop", "name": "default"}, "spec": {"audiences": ["vault"],
						"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": %q, "uid": "uid-%s"}}}`, pod, pod)))
			}
		}
	}
	return reviews
}

// containedOutcome is the outcome, and whether a refusal ends the chain.
func containedOutcome(t *testing.T, answer string) string {
	t.Helper()
	if !isAdmission(answer) {
		var review authorizationv1.SubjectAccessReview
		decode(t, answer, &review)
		if review.Status.Denied {
			return "denied"
		}
	}
	return outcome(t, answer)
}

// The webhooks of a server and the command review give the same answers about NodeScopes and Quarantines, with each
// right to read what these need missing in one of the runs. With an AuthorizationConfiguration, the command asks only
// its authorizers in authorization.
func TestServerAndCommandLineAgreeAboutContainment(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which is slow, finds nothing in the comparison of answers")
	}
	t.Parallel()
	const chain = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n" +
		"authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]\n"
	for mode, authorization := range map[string]string{"Node": "", "Chain": chain} {
		for _, resource := range []string{"none", "nodescopes", "quarantines", "pods", "nodes"} {
			t.Run(mode+" without "+resource, func(t *testing.T) {
				t.Parallel()
				s := server.ServeContained(t, containedCluster(), []string{resource}, authorization)
				reviews := containedReviews()
				maps.DeleteFunc(reviews, func(_, document string) bool { return authorization != "" && !isAdmission(document) })
				asked := slices.Sorted(maps.Keys(reviews))
				documents := make([]string, len(asked))
				for i, question := range asked {
					documents[i] = reviews[question]
				}
				counts := map[string]int{}
				for i, line := range commandLine(t, s, documents) {
					said, web := "not decided", ""
					if answer, ok := s.TryReview(documents[i]); ok {
						said, web = containedOutcome(t, answer), answer
					}
					if typed := containedOutcome(t, line); typed != said {
						t.Errorf("%s: %s, and the command line says %s\nserver:       %s\ncommand line: %s",
							asked[i], said, typed, web, line)
					}
					counts[said]++
				}
				for _, want := range wantedOutcomes(resource, authorization != "") {
					if counts[want] < 10 {
						t.Errorf("outcomes: %v, want %s", counts, want)
					}
				}
			})
		}
	}
}

// wantedOutcomes are those that must occur.
func wantedOutcomes(missing string, admission bool) []string {
	want := []string{"allowed", "refused"}
	if !admission {
		want = append(want, "denied")
	}
	if missing != "none" {
		want = append(want, "not decided")
	}
	return want
}
