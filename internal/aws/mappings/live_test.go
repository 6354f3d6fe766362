package mappings_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
)

func TestConfigMapIsFollowed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.set(map[string]string{"mapRoles": nodes, "mapUsers": "- userarn: " + ada + "\n  username: ada\n"})
	live, _ := follow(t, ofConfigMap(c))
	mapped(t, live, nodeRole, nodeName)
	if found, _, _ := live.Find(nodeRole, account); found.Source != "ConfigMap kube-system/aws-auth" || found.Place.Key == "" {
		t.Errorf("it was found in %q, %+v", found.Source, found.Place)
	}
	for _, step := range []struct {
		rule  string
		roles *string // nil: the ConfigMap is deleted
		users string
		// node, ops and user are the usernames of the three callers afterwards.
		node, ops, user string
		codes           []string
		stale           []string
	}{
		{"an entry that is added", text(nodes + "- {rolearn: " + opsRole + ", username: ops}\n"), "ada", nodeName, "ops", "ada", nil, nil},
		{
			"an entry that cannot be used is left out, the others are kept", text(nodes + "- {username: nobody}\n"), "ada",
			nodeName, "", "ada",
			[]string{"MappingInvalid"},
			nil,
		},
		{
			"a list that cannot be read keeps its content, the other is read", text("- rolearn: [\n"), "eve", nodeName, "",
			"eve",
			[]string{"MappingSyntax"},
			[]string{"mapRoles"},
		},
		{
			"it keeps its content after another broken edit", text("rolearn\n\t- x"), "ada", nodeName, "", "ada",
			[]string{"MappingSyntax"},
			[]string{"mapRoles"},
		},
		{"a valid edit replaces it", text("- {rolearn: " + opsRole + ", username: ops}\n"), "ada", "", "ops", "ada", nil, nil},
		{"a deletion is an edit", nil, "", "", "", "", []string{"MappingSourceMissing"}, nil},
		{"a restoration is an edit", text(nodes), "ada", nodeName, "", "ada", nil, nil},
		{"an empty list is an edit", text(""), "ada", "", "", "ada", nil, nil},
	} {
		if step.roles == nil {
			c.Remove(awsAuth)
		} else {
			c.set(map[string]string{"mapRoles": *step.roles, "mapUsers": "- userarn: " + ada + "\n  username: " + step.users + "\n"})
		}
		mapped(t, live, ada, step.user)
		eventually(t, step.rule, func() bool {
			return slices.Equal(codes(live.Findings()), step.codes) && username(live, opsRole) == step.ops &&
				username(live, nodeRole) == step.node
		})
		now := live.Sources()[0]
		if !slices.Equal(now.Stale, step.stale) || now.Healthy() != (step.stale == nil) || !now.Read || now.Unknown != nil {
			t.Errorf("%s: the source is %+v", step.rule, now)
		}
		if err := live.Synced(); err != nil {
			t.Errorf("%s: %v", step.rule, err)
		}
	}
}

func text(s string) *string { return &s }

func TestLookupIsAnErrorBeforeEverySourceIsRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.set(map[string]string{"mapRoles": nodes})
	c.outage("/configmaps")
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	write(t, path, "mapRoles:\n- {rolearn: "+opsRole+", username: ops}\n")
	live, observer := follow(t,
		mappings.Options{Sources: kinds{v1alpha1.FileSource, v1alpha1.ConfigMapSource}, File: path, Cluster: c.Config()})
	eventually(t, "the file is read", func() bool { return live.Sources()[0].Read })
	eventually(t, "the outage is noticed", func() bool { return len(observer.reached()) > 0 })
	for _, arn := range []string{nodeRole, opsRole, ada} {
		if got := username(live, arn); got != "?" {
			t.Errorf("%s is %q before the ConfigMap is read", arn, got)
		}
	}
	err := live.Synced()
	if err == nil || !strings.Contains(err.Error(), "ConfigMap kube-system/aws-auth has not been read yet: ") ||
		!strings.Contains(err.Error(), "by its name") {
		t.Errorf("error is %v", err)
	}
	c.outage("")
	mapped(t, live, nodeRole, nodeName)
	mapped(t, live, opsRole, "ops")
	mapped(t, live, ada, "")
	observer.expect(t, "ConfigMap kube-system/aws-auth true", "ConfigMap kube-system/aws-auth false")
}

func TestLookupIsAnErrorIfAKeyWasNeverReadable(t *testing.T) {
	t.Parallel()
	for rule, tc := range map[string]struct {
		broken, node, ops, user, unknown string
	}{
		"roles come before all others":            {"mapRoles", "?", "?", "?", "?"},
		"users come after roles by the whole ARN": {"mapUsers", nodeName, "?", "?", "?"},
		"accounts come last":                      {"mapAccounts", nodeName, "ops", "ada", "?"},
		"a missing list has no mappings":          {"", nodeName, "ops", "ada", "account"},
		"an unknown key has no mappings":          {"other", nodeName, "ops", "ada", "account"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			data := map[string]string{
				"mapRoles":    nodes + "- {rolearn: 'arn:aws:iam::111122223333:role/teams/ops', username: ops}\n",
				"mapUsers":    "- userarn: " + ada + "\n  username: ada\n",
				"mapAccounts": "- '" + account + "'\n",
			}
			if tc.broken != "" {
				data[tc.broken] = "- ["
			}
			c.set(data)
			live, _ := follow(t, ofConfigMap(c))
			eventually(t, "it is read", func() bool { return live.Sources()[0].Read })
			for arn, want := range map[string]string{
				nodeRole: tc.node, opsRole: tc.ops, ada: tc.user, strings.Replace(ada, "ada", "eve", 1): tc.unknown,
			} {
				if got := username(live, arn); got != want {
					t.Errorf("%s is %q, want %q", arn, got, want)
				}
			}
			broken := strings.HasPrefix(tc.broken, "map")
			if err := live.Synced(); (err != nil) != broken {
				t.Errorf("synced: %v", err)
			}
			if source := live.Sources()[0]; source.Healthy() == broken {
				t.Errorf("healthy: %v", source.Healthy())
			}
			c.set(map[string]string{"mapRoles": nodes})
			mapped(t, live, nodeRole, nodeName)
			mapped(t, live, ada, "")
		})
	}
}

func TestMappingsStayDuringAnOutage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.set(map[string]string{"mapRoles": nodes})
	live, observer := follow(t, ofConfigMap(c))
	mapped(t, live, nodeRole, nodeName)
	c.outage("/configmaps")
	c.Disconnect()
	eventually(t, "the outage is noticed", func() bool { return len(observer.reached()) == 1 })
	if got := username(live, nodeRole); got != nodeName {
		t.Errorf("during the outage the node is %q", got)
	}
	if live.Sources()[0].Healthy() || live.Synced() != nil {
		t.Errorf("the source is %+v", live.Sources()[0])
	}
	c.set(map[string]string{"mapRoles": "- {rolearn: " + opsRole + ", username: ops}\n"})
	c.outage("")
	mapped(t, live, opsRole, "ops")
	mapped(t, live, nodeRole, "")
	eventually(t, "it is healthy again", func() bool { return live.Sources()[0].Healthy() })
}

func TestFileIsFollowed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	live, observer := follow(t, mappings.Options{Sources: kinds{v1alpha1.FileSource}, File: path})
	eventually(t, "the missing file is noticed", func() bool { return live.Sources()[0].Err != nil })
	if err := live.Synced(); err == nil || !strings.Contains(err.Error(), "read iam.file: open "+path) {
		t.Errorf("error is %v", err)
	}
	write(t, path, "mapRoles:\n"+nodes)
	mapped(t, live, nodeRole, nodeName)
	write(t, path, "mapRoles:\n- {rolearn: "+opsRole+", username: ops}\n")
	mapped(t, live, opsRole, "ops")
	mapped(t, live, nodeRole, "")
	write(t, path, "mapRoles: [\n")
	eventually(t, "the mistake is found", func() bool { return slices.Equal(codes(live.Findings()), []string{"MappingSyntax"}) })
	mapped(t, live, opsRole, "ops")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is missing again", func() bool { return live.Sources()[0].Err != nil })
	mapped(t, live, opsRole, "ops")
	write(t, path, strings.Repeat("#", 1<<20)+"\n")
	eventually(t, "it is too large", func() bool {
		err := live.Sources()[0].Err
		return err != nil && strings.Contains(err.Error(), "is larger than")
	})
	mapped(t, live, opsRole, "ops")
	write(t, path, "mapRoles:\n"+nodes)
	mapped(t, live, nodeRole, nodeName)
	name := "file " + path
	observer.expect(t, name+" true", name+" false", name+" true", name+" false")
}

// write atomically replaces a file.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestFirstSourceWins(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.set(map[string]string{
		"mapRoles": "- {rolearn: " + opsRole + ", username: ops-of-map}\n- {rolearn: " + nodeRole + ", username: node-of-map}\n",
	})
	c.identity("ops", opsRole, "ops-of-resource")
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	write(t, path, "mapAccounts: ['"+account+"']\n")
	for _, tc := range []struct {
		sources         []v1alpha1.MappingSource
		node, ops, user string
	}{
		{kinds{v1alpha1.ConfigMapSource, v1alpha1.IdentityMappingSource, v1alpha1.FileSource}, "node-of-map", "ops-of-map", "account"},
		{kinds{v1alpha1.IdentityMappingSource, v1alpha1.ConfigMapSource}, "node-of-map", "ops-of-resource", ""},
		{kinds{v1alpha1.FileSource, v1alpha1.ConfigMapSource}, "account", "account", "account"},
	} {
		live, _ := follow(t, mappings.Options{Sources: tc.sources, File: path, Cluster: c.Config()})
		mapped(t, live, nodeRole, tc.node)
		mapped(t, live, opsRole, tc.ops)
		mapped(t, live, ada, tc.user)
	}
}

// TestUnusableEntryHidesLaterSources: another source may still have the rights that an
// edit removed.
func TestUnusableEntryHidesLaterSources(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.set(map[string]string{"mapRoles": "- {rolearn: " + opsRole + ", username: ops}\n"})
	c.identity("ops", opsRole, "ops-of-resource")
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	write(t, path, "mapAccounts: ['"+account+"']\n")
	live, _ := follow(t, mappings.Options{
		Sources: kinds{v1alpha1.ConfigMapSource, v1alpha1.IdentityMappingSource, v1alpha1.FileSource}, File: path, Cluster: c.Config(),
	})
	hidden := func() bool {
		mapping, found, err := live.Find(opsRole, account)
		return err == nil && found && mapping.Unusable && mapping.Username == ""
	}
	mapped(t, live, opsRole, "ops")
	c.set(map[string]string{"mapRoles": "- {rolearn: " + opsRole + ", username: ops, groups: view}\n"})
	eventually(t, "an entry of the ConfigMap cannot be used", hidden)
	c.set(map[string]string{"mapRoles": ""})
	mapped(t, live, opsRole, "ops-of-resource")
	c.identity("ops", opsRole, "{{x}}")
	eventually(t, "an object cannot be used", hidden)
	c.identity("ops", opsRole, "ops", 7)
	eventually(t, "an object has another form", hidden)
	c.Remove("/apis/iamauthenticator.k8s.aws/v1alpha1/iamidentitymappings/ops")
	mapped(t, live, opsRole, "account")
	mapped(t, live, nodeRole, "account")
}

func TestIdentityMappingsAreFollowed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.identity("nodes", nodeRole, nodeName, "system:bootstrappers", "system:nodes")
	live, _ := follow(t, mappings.Options{Sources: kinds{v1alpha1.IdentityMappingSource}, Cluster: c.Config()})
	mapped(t, live, nodeRole, nodeName)
	if found, _, _ := live.Find(nodeRole, account); !slices.Equal(found.Groups, []string{"system:bootstrappers", "system:nodes"}) ||
		found.Place.Object != "IAMIdentityMapping nodes" {
		t.Errorf("found %+v", found)
	}
	c.identity("ada", ada, "ada")
	mapped(t, live, ada, "ada")
	c.identity("ada-2", ada, "countess")
	mapped(t, live, ada, "countess")
	if got := codes(live.Findings()); !slices.Equal(got, []string{"MappingDuplicate"}) {
		t.Errorf("found %v", got)
	}
	c.identity("ops", opsRole, "ops", 7)
	c.identity("nobody", "", "nobody")
	eventually(t, "the mistakes are found", func() bool {
		return slices.Equal(codes(live.Findings()), []string{"MappingInvalid", "MappingInvalid", "MappingDuplicate"})
	})
	mapped(t, live, opsRole, "")
	c.Remove("/apis/iamauthenticator.k8s.aws/v1alpha1/iamidentitymappings/ada-2")
	mapped(t, live, ada, "ada")
	c.Remove("/apis/iamauthenticator.k8s.aws/v1alpha1/iamidentitymappings/nodes")
	mapped(t, live, nodeRole, "")
}

func TestChangesAreReportedOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.set(map[string]string{"mapRoles": nodes})
	live, observer := follow(t, ofConfigMap(c))
	mapped(t, live, nodeRole, nodeName)
	c.set(map[string]string{"mapRoles": nodes, "mapUsers": "- {username: nobody}\n"})
	eventually(t, "the mistake is reported", func() bool { return len(observer.all()) == 2 })
	// An edit of ignored fields is no change, nor is the same finding.
	if err := c.Put(awsAuth, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Data: map[string]string{
			"mapRoles": nodes, "mapUsers": "- {username: nobody}\n",
		},
	}); err != nil {
		t.Fatal(err)
	}
	c.set(map[string]string{"mapRoles": nodes})
	eventually(t, "the end of the mistake is reported", func() bool { return len(observer.all()) > 2 })
	changes := observer.all()
	if len(changes) != 3 {
		t.Fatalf("recorded %d changes: %+v", len(changes), changes)
	}
	if changes[0].Source.Mappings[iam.RoleMapping] != 1 || changes[0].Found != nil {
		t.Errorf("first change: %+v", changes[0])
	}
	if !slices.Equal(codes(changes[1].Found), []string{"MappingInvalid"}) || changes[1].Fixed != nil {
		t.Errorf("change with the mistake: %+v", changes[1])
	}
	if !slices.Equal(codes(changes[2].Fixed), []string{"MappingInvalid"}) || changes[2].Found != nil {
		t.Errorf("change with the correction: %+v", changes[2])
	}
}

type kinds = []v1alpha1.MappingSource
