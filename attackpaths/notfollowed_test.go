package attackpaths_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// notFollowed renders entries: "get,list configmaps in shop".
func notFollowed(all []attackpaths.NotFollowed) []string {
	var lines []string
	for _, n := range all {
		text := strings.Join(n.Verbs, ",") + " " + n.Resource + "@" + n.Group
		if n.Subresource != "" {
			text += "/" + n.Subresource
		}
		for _, name := range n.Names {
			text += " " + name
		}
		for _, namespace := range n.Namespaces {
			text += " in " + namespace
		}
		if n.More {
			text += " and more"
		}
		if n.GrantedBy == nil {
			text += ", can be bound"
		} else {
			text += " by " + n.GrantedBy.Name
		}
		lines = append(lines, text)
	}
	return lines
}

func TestRightsThatAreNotFollowed(t *testing.T) {
	argo := attackpaths.CustomTechnique{
		Technique: attackpaths.Technique{Code: "Argo"},
		AllowedBy: []attackpaths.CustomRequest{{Verbs: []string{"create", "update"}, APIGroup: "argoproj.io", Resource: "applications"}},
		Gives:     []attackpaths.Holding{{Kind: attackpaths.ClusterAdmin}},
	}
	argo.AllowedBy[0].Namespace = "argocd"
	const guards = "@admissionregistration.k8s.io"
	cases := []struct {
		rule, objects string
		serves        func(group, resource string) bool
		custom        []attackpaths.CustomTechnique
		want          []string
	}{
		{rule: "a right that gives nothing", objects: role("r", "shop", "shop/web", "get,list pods@", "create events@")},
		{rule: "a right that a technique uses", objects: role("r", "shop", "shop/web", "get secrets@")},
		{
			rule: "one that is not followed", objects: role("r", "shop", "shop/web", "get,create configmaps@"),
			want: []string{"create configmaps@ in shop by r", "get configmaps@ in shop by r"},
		},
		{
			rule: "only the names of the rule", objects: role("r", "shop", "shop/web", "get configmaps@ a,b"),
			want: []string{"get configmaps@ a b in shop by r"},
		},
		{
			rule: "one entry for a resource, wherever it is held",
			objects: role("a", "shop", "shop/web", "get configmaps@ x") + role("b", "", "shop/web", "list configmaps@") +
				role("c", "far", "shop/web", "watch configmaps@"),
			want: []string{"get,list,watch configmaps@ by b"},
		},
		{
			rule: "five namespaces are named",
			objects: role("r", "n1", "shop/web", "get configmaps@") + role("r", "n2", "shop/web", "get configmaps@") +
				role("r", "n3", "shop/web", "get configmaps@") + role("r", "n4", "shop/web", "get configmaps@") +
				role("r", "n5", "shop/web", "get configmaps@") + role("r", "n6", "shop/web", "get configmaps@"),
			want: []string{"get configmaps@ in n1 in n2 in n3 in n4 in n5 and more by r"},
		},
		{
			rule: "rights of an identity that is reached",
			objects: account("shop", "other") + role("t", "shop", "shop/web", "create serviceaccounts/token@ other") +
				role("r", "shop", "shop/other", "update leases@coordination.k8s.io"),
			want: []string{"update leases@coordination.k8s.io in shop by r"},
		},
		{
			rule: "not what another identity has", objects: role("r", "shop", "shop/other", "get configmaps@"),
		},
		{
			rule:    "a resource without a namespace is not in one",
			objects: role("r", "shop", "shop/web", "create csidrivers@storage.k8s.io"),
		},
		{
			rule: "a role that can be bound", objects: clusterRole("scaler", "patch deployments/scale@apps") +
				role("r", "shop", "shop/web", "create rolebindings@rbac.authorization.k8s.io") +
				role("b", "", "shop/web", "bind clusterroles@rbac.authorization.k8s.io scaler"),
			want: []string{"patch deployments@apps/scale in shop, can be bound"},
		},
		{
			rule: "everything in a namespace", objects: role("r", "shop", "shop/web", "* *@*"),
			want: []string{"* *@* in shop by r"},
		},
		{rule: "cluster-admin has none", objects: role("r", "", "shop/web", "* *@*") + role("s", "", "shop/web", "get configmaps@")},
		{
			rule: "not webhooks and policies that are not there",
			objects: role("r", "", "shop/web", "patch,delete validatingwebhookconfigurations"+guards+" other",
				"patch,delete validatingadmissionpolicies"+guards, "patch,delete validatingadmissionpolicybindings"+guards,
				"delete mutatingwebhookconfigurations"+guards) +
				"\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: some}\n---",
		},
		{
			rule: "those that are there",
			objects: role("r", "", "shop/web", "patch,delete validatingadmissionpolicies"+guards+" p",
				"patch validatingadmissionpolicybindings"+guards, "patch validatingwebhookconfigurations"+guards+" some") +
				admissionPolicy("p", "pods", "false") +
				"\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: some}\n---",
			want: []string{
				"delete,patch validatingadmissionpolicies" + guards + " p by r",
				"patch validatingadmissionpolicybindings" + guards + " by r",
				"patch validatingwebhookconfigurations" + guards + " some by r",
			},
		},
		{
			rule:    "mutating policies, of which the state shows none",
			objects: role("r", "", "shop/web", "delete mutatingadmissionpolicies"+guards),
			want:    []string{"delete mutatingadmissionpolicies" + guards + " by r"},
		},
		{
			rule: "custom resources", objects: role("r", "", "shop/web", "create,get applications@argoproj.io"),
			want: []string{"create,get applications@argoproj.io by r"},
		},
		{
			rule: "unless techniques of the user name them", custom: []attackpaths.CustomTechnique{argo},
			objects: role("r", "shop", "shop/web", "create,get applications@argoproj.io"),
		},
		{
			rule: "with the verb", custom: []attackpaths.CustomTechnique{argo},
			objects: role("r", "shop", "shop/web", "* applications@argoproj.io"),
			want:    []string{"patch applications@argoproj.io in shop by r"},
		},
		{
			rule: "unless the API server does not serve them", objects: role("r", "", "shop/web", "create applications@argoproj.io"),
			serves: func(group, _ string) bool { return group == "" },
		},
		{
			rule: "every group of one resource", objects: role("r", "", "shop/web", "patch events@*"),
			want: []string{"patch events@* by r"},
		},
		{rule: "a group of before", objects: role("r", "", "shop/web", "* ingresses@extensions")},
		{
			rule: "a signer that a rule names", objects: role("r", "", "shop/web",
				"request-serviceaccounts-podcertificate-signer example.com:signer@certificates.k8s.io"),
			want: []string{"request-serviceaccounts-podcertificate-signer *@certificates.k8s.io by r"},
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			cluster.Serves, cluster.Custom = c.serves, c.custom
			parse(t, cluster, namespace("shop", restrictedLabel)+account("shop", "web")+c.objects)
			got := notFollowed(from(t, graphOf(t, cluster), accountWeb).NotFollowed)
			if !slices.Equal(got, c.want) {
				t.Errorf("not followed\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// A class has what any of its nodes reaches that is not followed: what the nodes have in common, and what one has alone.
func TestRightsOfNodesThatAreNotFollowed(t *testing.T) {
	cluster := newCluster()
	parse(t, cluster, node("n1")+node("n2")+namespace("shop", restrictedLabel)+account("shop", "web")+
		role("all", "", "group system:nodes", "get configmaps@")+
		role("one", "", "user system:node:n2", "update leases@coordination.k8s.io")+
		node("n3")+role("pods", "shop", "shop/web", "patch deployments/scale@apps")+pod("shop", "p", "n3", "web"))
	got := map[string][]string{}
	for _, class := range graphOf(t, cluster).AllNodes() {
		got[strings.Join(class.Nodes, " ")] = notFollowed(class.NotFollowed)
	}
	want := map[string][]string{
		"n1 n2": {"get configmaps@ by all", "update leases@coordination.k8s.io by one"},
		"n3":    {"get configmaps@ by all", "patch deployments@apps/scale in shop by pods"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("classes\n%q\nwant\n%q", got, want)
	}
}

// A folder for which the table of folders has no row may give the node.
func TestFoldersThatAreNotFollowed(t *testing.T) {
	mounting := func(path string) string {
		return strings.Replace(pod("shop", "web-1", "n1", "web", "  - {name: data, hostPath: {path: "+path+"}}\n"), "image: i}",
			"image: i, volumeMounts: [{name: data, mountPath: /data}]}", 1)
	}
	for path, want := range map[string][]string{
		"/srv/data":           {"mount hostPath@ /srv/data in shop, can be bound"},
		"/usr/share/zoneinfo": nil,
	} {
		c := newCluster()
		parse(t, c, node("n1")+namespace("shop", "")+account("shop", "web")+mounting(path))
		g := graphOf(t, c)
		if got := notFollowed(from(t, g, nodeN1).NotFollowed); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if got := notFollowed(g.AllNodes()[0].NotFollowed); !slices.Equal(got, want) {
			t.Errorf("%s, of all nodes: %q, want %q", path, got, want)
		}
	}
}
