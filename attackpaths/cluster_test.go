package attackpaths_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// newCluster returns a cluster without objects.
func newCluster() *attackpaths.Cluster {
	return &attackpaths.Cluster{
		Inventory: inventory.New(), Relations: graph.New(), RBAC: rbac.NewPolicy(), Features: kubeversion.For(kubeversion.Latest),
		Policies: admissionpolicy.New(),
	}
}

// parse adds the objects of a YAML text to a cluster.
func parse(t *testing.T, c *attackpaths.Cluster, text string) {
	t.Helper()
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		add(t, c, object)
	}
}

func add(t *testing.T, c *attackpaths.Cluster, object any) {
	t.Helper()
	switch o := object.(type) {
	case *corev1.Pod:
		c.Inventory.Set(o)
		c.Relations.SetPod(o)
	case *corev1.PersistentVolume:
		c.Inventory.Set(o)
		c.Relations.SetPersistentVolume(o)
	case *corev1.PersistentVolumeClaim, *corev1.Node, *corev1.Namespace, *corev1.ServiceAccount, *corev1.Secret, *corev1.ResourceQuota,
		*nodev1.RuntimeClass, *admissionv1.ValidatingWebhookConfiguration, *admissionv1.MutatingWebhookConfiguration,
		*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding:
		c.Inventory.Set(o)
	case *rbacv1.Role:
		c.RBAC.SetRole(o)
	case *rbacv1.ClusterRole:
		c.RBAC.SetClusterRole(o)
	case *rbacv1.RoleBinding:
		c.RBAC.SetRoleBinding(o)
	case *rbacv1.ClusterRoleBinding:
		c.RBAC.SetClusterRoleBinding(o)
	default:
		t.Fatalf("no place for a %T", object)
	}
}

// pod is a pod with a token of its account.
func pod(namespace, name, node, account string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s}
spec:
  nodeName: %s
  serviceAccountName: %s
  containers: [{name: c, image: i}]
  volumes:
  - name: token
    projected: {sources: [{serviceAccountToken: {path: token}}]}
%s---`, namespace, name, node, account, strings.Join(more, "\n"))
}

// role binds rules, one in a line as "verbs resources.group/sub [names]", to an account in a
// namespace; the empty namespace is the whole cluster.
func role(name, namespace, subject string, rules ...string) string {
	var list strings.Builder
	for _, rule := range rules {
		parts := strings.Fields(rule)
		resource, group, _ := strings.Cut(parts[1], "@")
		fmt.Fprintf(&list, "- {verbs: ['%s'], resources: [%q], apiGroups: [%q]", strings.ReplaceAll(parts[0], ",", "','"), resource, group)
		if len(parts) > 2 {
			fmt.Fprintf(&list, ", resourceNames: [%s]", parts[2])
		}
		list.WriteString("}\n")
	}
	kind, meta := "ClusterRole", "name: "+name
	if namespace != "" {
		kind, meta = "Role", "namespace: "+namespace+", name: "+name
	}
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]s
metadata: {%[2]s}
rules:
%[3]s---
apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]sBinding
metadata: {%[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]s, name: %[4]s}
subjects: [%[5]s]
---`, kind, meta, list.String(), name, subjectText(subject))
}

// subjectText is a subject written as ns/account, user NAME or group NAME.
func subjectText(subject string) string {
	if user, ok := strings.CutPrefix(subject, "user "); ok {
		return "{kind: User, apiGroup: rbac.authorization.k8s.io, name: '" + user + "'}"
	}
	if group, ok := strings.CutPrefix(subject, "group "); ok {
		return "{kind: Group, apiGroup: rbac.authorization.k8s.io, name: '" + group + "'}"
	}
	namespace, name, _ := strings.Cut(subject, "/")
	return "{kind: ServiceAccount, namespace: " + namespace + ", name: " + name + "}"
}

func account(namespace, name string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: %s, name: %s}\n---", namespace, name)
}

func secret(namespace, name, kind, of string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: Secret\ntype: %s\n"+
		"metadata: {namespace: %s, name: %s, annotations: {kubernetes.io/service-account.name: %q}}\n---",
		kind, namespace, name, of)
}

func namespace(name string, labels string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s}}\n---", name, labels)
}

func node(name string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\n---", name)
}

// lines renders what is reached, one line for each holding.
func lines(result attackpaths.Result) []string {
	var all []string
	for _, r := range result.Reached {
		text := r.Certainty.String() + " " + r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") + ":"
		for _, step := range r.Path {
			text += " " + string(step.Technique)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
