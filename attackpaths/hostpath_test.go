package attackpaths_test

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// TestFoldersOfTheHost starts from a pod on n1 that mounts a folder of it, beside a pod with the account shop/db and the secret db.
func TestFoldersOfTheHost(t *testing.T) {
	const (
		onNode     = "node n1"
		credential = "user system:node:n1"
		token      = "serviceaccount shop/db"
		secret     = "secret shop/db"
		admin      = "clusteradmin "
		certain    = " Certain"
	)
	apiServer := "\napiVersion: v1\nkind: Pod\nmetadata: {namespace: kube-system, name: x}\n" +
		"spec: {nodeName: n1, containers: [{name: c, image: i, command: [kube-apiserver]}]}\n---"
	readsLogs := role("logs", "shop", "shop/web", "get pods/log@")
	for _, c := range []struct {
		rule, path, access, add, not string
		want                         []string
	}{
		{rule: "the kubelet's key", path: "/var/lib/kubelet/pki", want: []string{onNode + certain}},
		{
			rule: "the kubelet's key, read only", path: "/var/lib/kubelet/pki", access: ", readOnly: true",
			want: []string{credential + certain, token + certain}, // the credential gets tokens for the pods there
		},
		{
			rule: "what is mounted into pods, read only", path: "/var/lib/kubelet/pods", access: ", readOnly: true",
			want: []string{token + certain, secret + certain},
		},
		{
			rule: "what is mounted into pods, not their environment", path: "/var/lib/kubelet/pods", access: ", readOnly: true",
			want: []string{token + certain, secret + certain}, not: "secret shop/env",
		},
		{
			rule: "processes", path: "/proc", access: ", readOnly: true",
			want: []string{token + " Possible", secret + " Possible", "secret shop/env Possible"},
		},
		{rule: "manifests of static pods", path: "/etc/kubernetes/manifests", access: ", readOnly: true"},
		{
			rule: "keys of the control plane", path: "/etc/kubernetes/pki", access: ", readOnly: true", add: apiServer,
			want: []string{admin + certain},
		},
		{rule: "data", path: "/usr/share/zoneinfo"},
		{rule: "logs that nobody reads", path: "/var/log"},
		{rule: "logs", path: "/var/log", add: readsLogs, want: []string{credential + " Possible", token + " Possible"}},
		{rule: "logs, read only", path: "/var/log", access: ", readOnly: true", add: readsLogs},
	} {
		host := pod("shop", "web-1", "n1", "web", "  - {name: host, hostPath: {path: "+c.path+"}}\n")
		host = strings.Replace(host, "image: i", "image: i, volumeMounts: [{name: host, mountPath: /host"+c.access+"}]", 1)
		db := pod("shop", "db-1", "n1", "db", "  - {name: db, secret: {secretName: db}}\n")
		db = strings.Replace(db, "image: i", "image: i, envFrom: [{secretRef: {name: env}}]", 1)
		cluster := newCluster()
		parse(t, cluster, node("n1")+namespace("shop", "")+account("shop", "web")+account("shop", "db")+host+db+c.add)
		got := map[string]bool{}
		start := attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "web-1"}
		for _, r := range from(t, graphOf(t, cluster), start).Reached {
			got[r.Holding.String()+" "+r.Certainty.String()] = true
			if r.Holding.String() == c.not {
				t.Errorf("%s: %s is reached", c.rule, r.Holding)
			}
			if len(c.want) == 0 && r.Kind != attackpaths.ServiceAccount {
				t.Errorf("%s: %s is reached", c.rule, r.Holding)
			}
		}
		for _, want := range c.want {
			if !got[want] {
				t.Errorf("%s: %s is not reached; these are: %v", c.rule, want, got)
			}
		}
	}
}
