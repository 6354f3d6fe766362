package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// daemonPod is a pod of a DaemonSet.
func daemonPod(namespace, set, node, account string, more ...string) string {
	return strings.ReplaceAll(pod(namespace, set+"-"+node, node, account, more...), "metadata: {namespace", fmt.Sprintf(
		"metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: %s, uid: u, controller: true}], namespace", set))
}

func TestDaemonSets(t *testing.T) {
	base := namespace("shop", "") + account("shop", "agent") + node("n1") + node("n2")
	agents := daemonPod("shop", "agent", "n1", "agent") + daemonPod("shop", "agent", "n2", "agent")
	cases := []struct {
		rule, objects string
		want          []string
	}{
		{
			rule: "an account that is cluster-admin", objects: base + agents + role("r", "", "shop/agent", "* *@*"),
			want: []string{"shop/agent [n1 n2] Certain through serviceaccount shop/agent: Masters"},
		},
		{
			rule: "a pod of another template, while the DaemonSet is rolled out",
			objects: base + account("shop", "root") + daemonPod("shop", "agent", "n1", "agent") +
				daemonPod("shop", "agent", "n2", "root") + role("r", "", "shop/root", "* *@*"),
			want: []string{"shop/agent [n1 n2] Certain through serviceaccount shop/root: Masters"},
		},
		{
			rule: "an account without rights", objects: base + agents,
			want: []string{"shop/agent [n1 n2] No"},
		},
		{
			rule: "what the other pods of a node give does not count",
			objects: base + account("shop", "root") + daemonPod("shop", "agent", "n1", "agent") + pod("shop", "p", "n1", "root") +
				role("r", "", "shop/root", "* *@*"),
			want: []string{"shop/agent [n1] No"},
		},
		{
			rule: "rights over the host do not count",
			objects: base + account("shop", "root") + strings.ReplaceAll(daemonPod("shop", "agent", "n1", "agent"), "image: i",
				"image: i, securityContext: {privileged: true}") + pod("shop", "p", "n1", "root") + role("r", "", "shop/root", "* *@*"),
			want: []string{"shop/agent [n1] No"},
		},
		{
			rule: "a secret that holds a token",
			objects: base + account("shop", "root") + secret("shop", "s", "kubernetes.io/service-account-token", "root") +
				strings.ReplaceAll(
					daemonPod("shop", "agent", "n1", "agent"),
					"volumes:",
					"volumes:\n  - {name: s, secret: {secretName: s}}",
				) +
				role("r", "", "shop/root", "* *@*"),
			want: []string{"shop/agent [n1] Certain through secret shop/s: ServiceAccountTokenSecret Masters"},
		},
		{
			rule: "what depends on a webhook is possible",
			objects: base + agents + role("r", "", "shop/agent",
				"create mutatingwebhookconfigurations@admissionregistration.k8s.io"),
			want: []string{"shop/agent [n1 n2] Possible through serviceaccount shop/agent: AdmissionControl"},
		},
		{
			rule:    "pods without a DaemonSet do not count",
			objects: base + pod("shop", "p", "n1", "agent") + role("r", "", "shop/agent", "* *@*"),
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, c.objects)
			var got []string
			for _, d := range graphOf(t, cluster).DaemonSets() {
				text := fmt.Sprint(d.Namespace, "/", d.Name, " ", d.Nodes, " ", d.ClusterAdmin)
				if len(d.Path) > 0 {
					text += fmt.Sprintf(" through %s:", d.Through)
				}
				for _, step := range d.Path {
					text += " " + string(step.Technique)
				}
				got = append(got, text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("DaemonSets are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}
