package deploy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
)

// The custom resources have one source, next to their types.
func TestCustomResourcesOfContainmentAreThoseOfTheTypes(t *testing.T) {
	for _, file := range []string{"nodescopes.yaml", "quarantines.yaml"} {
		want := read(t, "../../api/policy/v1alpha1", file)
		for _, folder := range []string{deployFolder + "/containment", chartFolder + "/files"} {
			if read(t, folder, file) != want {
				t.Errorf("%s/%s is not api/policy/v1alpha1/%s: copy it", folder, file, file)
			}
		}
	}
}

// The config differs from the config of deploy/static-pod only in the section containment.
func TestConfigurationOfContainment(t *testing.T) {
	config, err := v1alpha1.Parse([]byte(read(t, deployFolder, "containment/static-pod/config.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if config.Containment.NodeScopes != v1alpha1.Enabled || config.Containment.Quarantines != v1alpha1.Enabled {
		t.Errorf("containment is %+v", config.Containment)
	}
	base, err := v1alpha1.Parse([]byte(read(t, deployFolder, "static-pod/server/config.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	config.Containment = base.Containment
	if !reflect.DeepEqual(config, base) {
		t.Errorf("the other settings are\n%+v\nwant\n%+v", config, base)
	}
}

// These are the rights of a stolen credential of a server: it can change no scope, and end no
// quarantine within the limit.
func TestRightsOfContainment(t *testing.T) {
	for folder, want := range map[string][]string{
		"containment": {
			"get configmaps/node-authorizer-quarantined-nodes", "get nodescopes", "get quarantines",
			"list apiservices", "list nodes", "list nodescopes", "list quarantines",
			"update configmaps/node-authorizer-quarantined-nodes", "update nodescopes/status", "update quarantines/status",
			"watch apiservices", "watch nodes", "watch nodescopes", "watch quarantines",
		},
		"containment/bootstrap": {
			"get configmaps/node-authorizer-quarantined-nodes", "get quarantines", "list nodes", "list quarantines",
			"update configmaps/node-authorizer-quarantined-nodes", "update quarantines/status",
			"watch nodes", "watch quarantines",
		},
	} {
		t.Run(folder, func(t *testing.T) {
			objects := built(t, folder)
			if got := namedRights(only[*rbacv1.ClusterRole](t, objects).Rules...); !slices.Equal(got, want) {
				t.Errorf("granted are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			events := only[*rbacv1.Role](t, objects)
			inDefault := events.Namespace == metav1.NamespaceDefault
			if got := namedRights(events.Rules...); !slices.Equal(got, []string{"create events"}) || !inDefault {
				t.Errorf("granted in %s are %v", events.Namespace, got)
			}
		})
	}
}

// The servers do not create the record. A release that is deleted keeps it, because quarantines stay in force.
func TestTheRecordOfQuarantinedNodesIsInstalled(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{
		"deploy": built(t, "containment"), "the chart": rendered(t, contained),
	} {
		record := configMapNamed(objects, containment.RecordName)
		switch {
		case record == nil || record.Namespace != containment.RecordNamespace || len(record.Data) > 0:
			t.Errorf("%s: the record is %v", name, record)
		case name != "deploy" && record.Annotations["helm.sh/resource-policy"] != "keep":
			t.Errorf("%s: the record is deleted with the release", name)
		}
	}
}

// configMapNamed returns the ConfigMap with a name; nil if there is none.
func configMapNamed(objects []runtime.Object, name string) *corev1.ConfigMap {
	for _, o := range objects {
		if m, ok := o.(*corev1.ConfigMap); ok && m.Name == name {
			return m
		}
	}
	return nil
}

func TestWhoHasTheRightsOfContainment(t *testing.T) {
	servers := []rbacv1.Subject{
		only[*rbacv1.ClusterRoleBinding](t, built(t, "static-pod")).Subjects[0],
		only[*rbacv1.ClusterRoleBinding](t, built(t, "service")).Subjects[0],
	}
	service := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: bootstrapAccount}}
	for folder, c := range map[string]struct {
		role string
		want []rbacv1.Subject
	}{
		"containment": {"node-authorizer:containment", servers}, "containment/bootstrap": {"node-authorizer:quarantines", service},
	} {
		// Once in the cluster, once in the namespace default.
		if got := subjectsOf(built(t, folder), c.role); !slices.Equal(got, slices.Concat(c.want, c.want)) {
			t.Errorf("%s: the rights are those of %v", folder, got)
		}
	}
}

const contained = image + "server: {config: {containment: {quarantines: Enabled}}}\n"

func TestChartOfContainment(t *testing.T) {
	rights := []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	resources := []string{"ConfigMap", "CustomResourceDefinition", "CustomResourceDefinition"}
	joins := strings.Replace(joinsOnly, "config: {", "config: {containment: {quarantines: Enabled}, ", 1)
	for name, c := range map[string]struct {
		base, values string
		more         [][]string
	}{
		"quarantines": {image, contained, [][]string{rights, resources}},
		"scopes":      {image, strings.Replace(contained, "quarantines", "nodeScopes", 1), [][]string{rights, resources}},
		"without what is installed already": {
			image, contained + "containment: {customResources: false}\n", [][]string{rights},
		},
		"without rights": {image + "rbac: {create: false}\n", contained + "rbac: {create: false}\n", [][]string{resources}},
		"disabled": {
			image, strings.Replace(contained, "quarantines: Enabled", "quarantines: Disabled, maxQuarantinedNodes: 3", 1), nil,
		},
		"of the bootstrap service": {joinsOnly, joins, [][]string{rights, resources}},
		"of both": {
			strings.Replace(joinsOnly, "server: {enabled: false}", "", 1),
			strings.Replace(joins, "server: {enabled: false}", strings.TrimPrefix(contained, image), 1),
			[][]string{rights, rights, resources},
		},
		"of a server elsewhere": {
			"server: {enabled: false}\nrbac: {user: node-authorizer}\n",
			"server: {enabled: false, config: {containment: {nodeScopes: Enabled}}}\nrbac: {user: node-authorizer}\n",
			[][]string{rights, resources},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := slices.Sorted(slices.Values(slices.Concat(append(c.more, kinds(rendered(t, c.base)))...)))
			if got := kinds(rendered(t, c.values)); !slices.Equal(got, want) {
				t.Errorf("kinds are %v, want %v", got, want)
			}
		})
	}
}

func TestChartInstallsTheCustomResourcesOfContainment(t *testing.T) {
	want := definitions(built(t, "containment"))
	got := definitions(rendered(t, contained))
	if len(got) != 2 {
		t.Fatalf("the chart has %d custom resources", len(got))
	}
	for name, definition := range got {
		if definition.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s is deleted with the release, and its objects with it", name)
		}
		if want[name] == nil || !reflect.DeepEqual(definition.Spec, want[name].Spec) {
			t.Errorf("%s differs from that of deploy/containment", name)
		}
	}
}

func definitions(objects []runtime.Object) map[string]*apiextensionsv1.CustomResourceDefinition {
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, o := range objects {
		if d, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
			found[d.Name] = d
		}
	}
	return found
}

func TestChartGrantsTheRightsOfContainment(t *testing.T) {
	joins := strings.Replace(joinsOnly, "config: {", "config: {containment: {quarantines: Enabled}, ", 1)
	for suffix, c := range map[string]struct {
		values, folder string
		subject        rbacv1.Subject
	}{
		":containment": {contained, "containment", rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Namespace: "guards", Name: "shop-node-authorizer",
		}},
		":quarantines": {joins, "containment/bootstrap", rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Namespace: "guards", Name: "shop-node-authorizer-bootstrap",
		}},
	} {
		t.Run(suffix, func(t *testing.T) {
			objects, want := rendered(t, c.values), built(t, c.folder)
			if got := clusterRole(t, objects, suffix); !reflect.DeepEqual(got.Rules, only[*rbacv1.ClusterRole](t, want).Rules) {
				t.Errorf("the cluster role is %v", got)
			}
			events := roleIn(t, objects, metav1.NamespaceDefault)
			if !reflect.DeepEqual(events.Rules, only[*rbacv1.Role](t, want).Rules) {
				t.Errorf("the role is %v", events)
			}
			if got := subjectsOf(objects, events.Name); !slices.Equal(got, []rbacv1.Subject{c.subject, c.subject}) {
				t.Errorf("the rights are those of %v", got)
			}
		})
	}
}

// roleIn returns the one role in a namespace.
func roleIn(t *testing.T, objects []runtime.Object, namespace string) *rbacv1.Role {
	t.Helper()
	return only[*rbacv1.Role](t, slices.DeleteFunc(slices.Clone(objects), func(o runtime.Object) bool {
		role, ok := o.(*rbacv1.Role)
		return ok && role.Namespace != namespace
	}))
}

func TestChartRefusesBadContainment(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"another switch":      {strings.Replace(contained, "Enabled", "Enforce", 1), "quarantines"},
		"a limit of no nodes": {strings.Replace(contained, "quarantines: Enabled", "maxQuarantinedNodes: 0", 1), "maxQuarantinedNodes"},
		"a scope without questions": {
			strings.Replace(contained, "containment: {quarantines",
				"webhook: {serves: [Authentication]}, iam: {clusterID: blue}, containment: {nodeScopes", 1), "nodeScopes",
		},
		"a scope of the bootstrap service": {
			strings.Replace(joinsOnly, "config: {", "config: {containment: {nodeScopes: Enabled}, ", 1), "nodeScopes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(c.values); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one about %s", err, c.want)
			}
		})
	}
}
