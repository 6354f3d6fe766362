package conformance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	kubeauthorizer "k8s.io/kubernetes/pkg/kubeapiserver/authorizer"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
)

// TestRandomConfigurations loads random AuthorizationConfigurations with kube-apiserver's
// loader and with ours: both must accept or both refuse. ABAC and unusable kubeconfigs,
// which only ours refuses, are left out.
func TestRandomConfigurations(t *testing.T) {
	b := readBudget(t)
	kubeconfig := filepath.Join(t.TempDir(), "webhook.kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(webhookKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	compiler := authorizationcel.NewDefaultCompiler()
	accepted, refused, divergences := 0, 0, 0
	for _, seed := range b.seeds(b.clusters) {
		r := rand.New(rand.NewPCG(seed, 3))
		for range 20 {
			text := randomConfiguration(r, kubeconfig)
			_, inTree := kubeauthorizer.LoadAndValidateData([]byte(text), compiler, nil)
			_, ours := chain.Parse([]byte(text))
			if (inTree == nil) != (ours == nil) {
				t.Errorf("seed %d:\n%s  in-tree: %v\n  ours: %v", seed, text, inTree, ours)
				if divergences++; divergences > maxDivergences {
					t.FailNow()
				}
			}
			if ours == nil {
				accepted++
			} else {
				refused++
			}
		}
	}
	t.Logf("configurations: %d accepted, %d refused: %d divergences", accepted, refused, divergences)
	if accepted == 0 || refused == 0 {
		t.Error("the configurations exercise one outcome only")
	}
}

const webhookKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
`

// seldom returns the first choice most of the time.
func seldom(r *rand.Rand, usual string, others ...string) string {
	if r.IntN(20) > 0 {
		return usual
	}
	return oneOf(r, others...)
}

func randomConfiguration(r *rand.Rand, kubeconfig string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: apiserver.config.k8s.io/%s\nkind: %s\nauthorizers:\n",
		seldom(r, oneOf(r, "v1", "v1beta1", "v1alpha1"), "v2", "v1beta2"),
		seldom(r, "AuthorizationConfiguration", "AuthenticationConfiguration", "Pod"))
	for range r.IntN(5) {
		kind := seldom(r, oneOf(r, "Node", "RBAC", "Webhook", "Webhook", "AlwaysAllow", "AlwaysDeny"), "node", "Other", "")
		name := seldom(r, strings.ToLower(kind), "node", "a", "a.b", "A_B", "")
		if kind == "Webhook" {
			name = seldom(r, oneOf(r, "a", "b.example.com", "c", "d", "node"), "A", "")
		}
		fmt.Fprintf(&text, "- type: %s\n  name: %s\n", kind, name)
		switch {
		case seldom(r, "", "x") != "":
			text.WriteString("  nmae: x\n")
		case (kind == "Webhook") != (seldom(r, "", "x") != ""):
			randomWebhook(r, &text, kubeconfig)
		}
	}
	return text.String()
}

func randomWebhook(r *rand.Rand, text *strings.Builder, kubeconfig string) {
	text.WriteString("  webhook:\n")
	for _, field := range []string{
		"timeout: " + seldom(r, "3s", "0s", "-1s", "30s", "31s", "x"),
		"subjectAccessReviewVersion: " + seldom(r, "v1", "v1beta1", "v2"),
		"failurePolicy: " + seldom(r, oneOf(r, "Deny", "NoOpinion"), "Allow"),
		"matchConditionSubjectAccessReviewVersion: " + seldom(r, "v1", "v1beta1"),
		"connectionInfo: " + seldom(r, "{type: KubeConfigFile, kubeConfigFile: "+kubeconfig+"}",
			"{type: InClusterConfig}", "{type: URL}", "{type: KubeConfigFile}", "{type: KubeConfigFile, kubeConfigFile: x}",
			"{type: InClusterConfig, kubeConfigFile: "+kubeconfig+"}"),
	} {
		if seldom(r, "", "left out") == "" {
			text.WriteString("    " + field + "\n")
		}
	}
	for _, field := range []string{
		"authorizedTTL: " + oneOf(r, "1s", "0s", "-1s"), "unauthorizedTTL: " +
			oneOf(r, "5m", "-1s"), "cacheAuthorizedRequests: " + oneOf(r, "true", "false", "1"),
	} {
		if r.IntN(10) == 0 {
			text.WriteString("    " + field + "\n")
		}
	}
	if r.IntN(2) == 0 {
		return
	}
	text.WriteString("    matchConditions:\n")
	for range r.IntN(3) {
		fmt.Fprintf(text, "    - expression: %q\n", seldom(r,
			oneOf(r, "request.user == 'a'", "has(request.resourceAttributes)", "'a' in request.groups",
				"request.resourceAttributes.labelSelector.requirements.size() > 0"),
			"", "request.user", "request.nobody == ''", "request.user =="))
	}
}
