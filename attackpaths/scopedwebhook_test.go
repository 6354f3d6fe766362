package attackpaths_test

import (
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// TestWebhookOfNodeScopes: what the webhook refuses of a write is what the NodeScopes refuse, which the paths obey.
func TestWebhookOfNodeScopes(t *testing.T) {
	configuration := func(kind, webhook string) string {
		return "\napiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: w}\nwebhooks:\n- name: " + webhook +
			"\n  clientConfig: {url: 'https://x.example.com'}\n  sideEffects: None\n  admissionReviewVersions: [v1]\n" +
			"  rules:\n  - {apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE, UPDATE, DELETE, CONNECT], resources: ['*/*']}\n---"
	}
	const mutating, validating = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
	for _, c := range []struct {
		rule, webhooks string
		want           attackpaths.Certainty
	}{
		{"that of node-authorizer refuses by NodeScopes only", configuration(mutating, nodescope.Webhook), attackpaths.Certain},
		{"another webhook may refuse", configuration(mutating, "other.example.com"), attackpaths.Possible},
		{"a validating webhook of the same name is another one", configuration(validating, nodescope.Webhook), attackpaths.Possible},
		{
			"another webhook beside it may refuse",
			configuration(mutating, nodescope.Webhook) + configuration(validating, "other.example.com"), attackpaths.Possible,
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, scopedBase()+role("agent", "", "agents/cni", "create pods/exec@")+c.webhooks)
			cluster.NodeScopes = policyOf(t, readScopes(t, scope("s", "podsOnNode: [{resources: [pods/exec], verbs: [create]}]"))...)
			result := from(t, graphOf(t, cluster), agentPod)
			got := attackpaths.No
			i := slices.IndexFunc(result.Reached, func(r attackpaths.Reached) bool { return r.Kind == attackpaths.Pod && r.Name == "web" })
			if i >= 0 {
				got = result.Reached[i].Certainty
			}
			if got != c.want {
				t.Errorf("exec into a pod on the node is %s, want %s", got, c.want)
			}
		})
	}
}
