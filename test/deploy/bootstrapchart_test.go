package deploy

import (
	"crypto/x509"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// joinsOnly has the bootstrap service without the webhook server.
const joinsOnly = image + `
server: {enabled: false}
bootstrap:
  enabled: true
  config: {bootstrap: {attestor: aws, aws: {clusterName: shop.example.com}}}
  certificates: {names: [join.shop.example.com], addresses: [10.0.0.5]}
`

// approverOnly has the approver without the bootstrap service.
const approverOnly = image + `
server: {enabled: false}
bootstrap: {enabled: true, service: false}
`

// TestChartOfTheApproverAlone: it makes no tokens, listens for no machines, and its config is one for the approver.
func TestChartOfTheApproverAlone(t *testing.T) {
	files, err := render(approverOnly)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		for _, word := range []string{"bootstraptokens", "node-bootstrapper", "hostPort: 10443", "kubernetes.io/tls", "secrets"} {
			if strings.HasPrefix(name, "bootstrap") && strings.Contains(content, word) {
				t.Errorf("%s has %s", name, word)
			}
		}
	}
	for _, object := range rendered(t, approverOnly) {
		if m, ok := object.(*corev1.ConfigMap); ok {
			config, err := v1alpha1.Parse([]byte(m.Data["config.yaml"]))
			if err != nil || !config.Approver.Enabled || config.Bootstrap.Address != "" {
				t.Errorf("%+v, %v", config, err)
			}
		}
	}
	for _, wrong := range []string{"{approver: {enabled: false}}", "{bootstrap: {maxBodyBytes: 2048}}"} {
		_, err := render(strings.Replace(approverOnly, "service: false", "service: false, config: "+wrong, 1))
		if err == nil || !strings.Contains(err.Error(), "is for the approver alone") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// TestChartBringsAProgram: an init container copies the program of bootstrap.exec into a volume.
func TestChartBringsAProgram(t *testing.T) {
	const values = image + `
server: {enabled: false}
bootstrap:
  enabled: true
  config: {bootstrap: {attestor: exec, exec: {provider: other, command: [/programs/attest]}}}
  certificates: {names: [join.shop.example.com]}
  initContainers: [{name: program, image: registry.example.com/attest, command: [cp, /attest, /programs/attest],
    volumeMounts: [{name: programs, mountPath: /programs}]}]
  volumes: [{name: programs, emptyDir: {}}]
  volumeMounts: [{name: programs, mountPath: /programs, readOnly: true}]
`
	for _, object := range rendered(t, values) {
		if set, ok := object.(*appsv1.DaemonSet); ok {
			pod := set.Spec.Template.Spec
			mounts := pod.Containers[0].VolumeMounts
			last := len(mounts) - 1
			if len(pod.InitContainers) != 1 || pod.Volumes[len(pod.Volumes)-1].Name != "programs" || mounts[last].MountPath != "/programs" {
				t.Errorf("%+v", pod)
			}
			return
		}
	}
	t.Error("there is no DaemonSet")
}

func TestChartOfTheBootstrapService(t *testing.T) {
	approver := []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	rights := append([]string{
		"ClusterRole", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding", "ClusterRoleBinding", "Role",
		"RoleBinding", "ServiceAccount",
	},
		approver...)
	service, resources := []string{"ConfigMap", "DaemonSet"}, []string{"CustomResourceDefinition", "CustomResourceDefinition"}
	policy := []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	with := func(lists ...[]string) []string { return slices.Sorted(slices.Values(slices.Concat(lists...))) }
	for name, c := range map[string]struct {
		values string
		want   []string
	}{
		"alone": {joinsOnly, with(rights, service, policy, resources, []string{"Secret"})},
		"for kubeadm": {
			strings.Replace(joinsOnly, "enabled: true", "enabled: true\n  kubeadm: true", 1),
			with(rights, service, policy, resources,
				[]string{"Secret", "ClusterRoleBinding", "RoleBinding", "RoleBinding", "RoleBinding"}),
		},
		"without what is installed already": {
			strings.Replace(joinsOnly, "enabled: true", "enabled: true\n  customResource: false\n  admissionPolicy: false", 1),
			with(rights, service, []string{"Secret"}),
		},
		"the approver alone": {
			approverOnly,
			with(approver, resources, []string{"ConfigMap", "DaemonSet", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}),
		},
		"beside the server": {
			strings.Replace(joinsOnly, "server: {enabled: false}", "", 1),
			with(rights, service, policy, resources, []string{
				"Secret",
				"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "PodDisruptionBudget", "Secret", "Secret",
				"Service", "ServiceAccount",
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kinds(rendered(t, c.values)); !slices.Equal(got, c.want) {
				t.Errorf("kinds are %v, want %v", got, c.want)
			}
		})
	}
}

func TestChartWithoutTheBootstrapService(t *testing.T) {
	files, err := render(image)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if strings.HasPrefix(name, "bootstrap") && strings.TrimSpace(content) != "" {
			t.Errorf("%s is not empty:\n%s", name, content)
		}
		if strings.Contains(content, "nodeattestations") {
			t.Errorf("%s mentions the ledger", name)
		}
	}
}

func TestChartRefusesBadValuesOfTheBootstrapService(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"no attestor":         {"attestor: aws,", "", "bootstrap.config.bootstrap.attestor is required"},
		"an unknown attestor": {"attestor: aws", "attestor: floppy", "attestor"},
		"no names or addresses": {
			"names: [join.shop.example.com], addresses: [10.0.0.5]", "", "bootstrap.certificates.names is required",
		},
		"clients without an authority":  {"addresses: [10.0.0.5]", "requireClient: true", "existingSecret is required with requireClient"},
		"an address that the pods lack": {"attestor: aws", "attestor: aws, address: ':1'", "address"},
		"webhooks":                      {"config: {", "config: {webhook: {}, ", "webhook"},
		"a misspelt field":              {"enabled: true", "enabled: true\n  kubeadmn: true", "kubeadmn"},
		"an unknown policy for nodes":   {"config: {", "config: {approver: {unattestedNodes: Maybe}, ", "unattestedNodes"},
	} {
		t.Run(name, func(t *testing.T) {
			values := strings.Replace(joinsOnly, c.from, c.to, 1)
			if values == joinsOnly {
				t.Fatal("the values did not change")
			}
			if _, err := render(values); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one about %s", err, c.want)
			}
		})
	}
}

// The chart installs the same rights and settings as the manifests in deploy.
func TestChartOfTheBootstrapServiceAgreesWithTheManifests(t *testing.T) {
	chart, manifests := rendered(t, joinsOnly), built(t, "bootstrap")
	checkDaemonSet(t, only[*appsv1.DaemonSet](t, chart), chartBootstrapConfiguration(t, chart))
	if a, b := podOfDaemonSet(t, chart), podOfDaemonSet(t, manifests); !reflect.DeepEqual(a, b) {
		t.Errorf("the pods differ:\n%v\n%v", a, b)
	}
	if a, b := chartBootstrapConfiguration(t, chart), bootstrapConfiguration(t); !reflect.DeepEqual(a, b) {
		t.Errorf("the configs differ:\n%+v\n%+v", a, b)
	}
	for _, get := range []func([]runtime.Object) any{
		func(o []runtime.Object) any { return clusterRole(t, o, ":bootstrap").Rules },
		func(o []runtime.Object) any { return clusterRole(t, o, ":selfnodeserver").Rules },
		func(o []runtime.Object) any { return clusterRole(t, o, ":approver").Rules },
		func(o []runtime.Object) any { return systemRole(t, o, ":bootstrap").Rules },
		func(o []runtime.Object) any { return systemRole(t, o, ":approver").Rules },
		func(o []runtime.Object) any { return subjectsOf(o, nodeBootstrapper) },
		func(o []runtime.Object) any { return definitions(o)["nodeattestations.node-authorizer.io"].Spec },
		func(o []runtime.Object) any { return definitions(o)["machines.node-authorizer.io"].Spec },
		func(o []runtime.Object) any { return policyWithoutAccount(t, o) },
		func(o []runtime.Object) any {
			return only[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, o).Spec.ValidationActions
		},
	} {
		if a, b := get(chart), get(manifests); !reflect.DeepEqual(a, b) {
			t.Errorf("they differ:\n%v\n%v", a, b)
		}
	}
	for o, role := range map[*[]runtime.Object]string{
		&chart: "shop-node-authorizer:selfnodeserver", &manifests: "node-authorizer:selfnodeserver",
	} {
		if got := subjectsOf(*o, role); len(got) != 1 || got[0].Name != "system:nodes" {
			t.Errorf("serving certificates may be asked for by %v", got)
		}
	}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "guards", Name: podAccount(t, chart)}
	for _, role := range []string{"bootstrap", "approver"} {
		if got := subjectsOf(chart, "shop-node-authorizer:"+role); !slices.Equal(got, []rbacv1.Subject{account, account}) {
			t.Errorf("the rights are those of %v, the pods run as %s", got, account.Name)
		}
	}
	policy := only[*admissionregistrationv1.ValidatingAdmissionPolicy](t, chart)
	want := "'system:serviceaccount:guards:" + account.Name + "' ||"
	if got := policy.Spec.MatchConditions[0].Expression; !strings.Contains(got, want) {
		t.Errorf("the policy is for %s, want %s", got, want)
	}
	if binding := only[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, chart); binding.Spec.PolicyName != policy.Name {
		t.Errorf("the policy %s is bound, not %s", binding.Spec.PolicyName, policy.Name)
	}
}

// The rights to approve are installed only with the approver.
func TestChartGivesTheRightsOfTheApproverToApproversOnly(t *testing.T) {
	objects := rendered(t, strings.Replace(joinsOnly, "config: {", "config: {approver: {enabled: false}, ", 1))
	for _, o := range objects {
		var name string
		var rules []rbacv1.PolicyRule
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			name, rules = o.Name, o.Rules
		case *rbacv1.Role:
			name, rules = o.Name, o.Rules
		case *rbacv1.ClusterRoleBinding:
			name = o.Name
		case *rbacv1.RoleBinding:
			name = o.Name
		}
		if strings.Contains(name, "approver") {
			t.Errorf("there is %s", name)
		}
		for _, rule := range rules {
			for _, resource := range []string{
				"signers", "certificatesigningrequests", "certificatesigningrequests/approval", "subjectaccessreviews",
				"leases",
			} {
				if slices.Contains(rule.Resources, resource) {
					t.Errorf("%s has rights on %s", name, resource)
				}
			}
		}
	}
	if got, want := systemRole(t, objects, ":bootstrap").Namespace, systemNamespace; got != want {
		t.Errorf("the role of the service is in %s", got)
	}
}

func chartBootstrapConfiguration(t *testing.T, objects []runtime.Object) *v1alpha1.ServerConfiguration {
	t.Helper()
	config, err := v1alpha1.Parse([]byte(only[*corev1.ConfigMap](t, objects).Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func podAccount(t *testing.T, objects []runtime.Object) string {
	t.Helper()
	return only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec.ServiceAccountName
}

func podOfDaemonSet(t *testing.T, objects []runtime.Object) *corev1.PodSpec {
	t.Helper()
	return podOf(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: only[*appsv1.DaemonSet](t, objects).Spec.Template}})
}

func policyWithoutAccount(t *testing.T, objects []runtime.Object) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	spec := only[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects).Spec.DeepCopy()
	spec.MatchConditions[0].Expression, _, _ = strings.Cut(spec.MatchConditions[0].Expression, "'")
	return *spec
}

// The ledger is kept when the release is deleted, so that joined machines stay recorded, and so are registered machines.
func TestChartKeepsTheLedger(t *testing.T) {
	resources := definitions(rendered(t, joinsOnly))
	for name, resource := range resources {
		if resource.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("annotations of %s are %v", name, resource.Annotations)
		}
	}
	if len(resources) != 2 {
		t.Errorf("%d resources", len(resources))
	}
}

// Helm's certificate is valid for the names and addresses that machines use.
func TestChartMakesAServingCertificateForMachines(t *testing.T) {
	secret := only[*corev1.Secret](t, rendered(t, joinsOnly))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret.Data["ca.crt"])
	for _, name := range []string{"join.shop.example.com", "10.0.0.5"} {
		if _, err := certificate(t, secret).Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	pod := only[*appsv1.DaemonSet](t, rendered(t, joinsOnly)).Spec.Template.Spec
	if mounted := pod.Volumes[1].Secret.SecretName; mounted != secret.Name {
		t.Errorf("the pods mount %s", mounted)
	}
}

func TestChartUsesACertificateOfTheUser(t *testing.T) {
	objects := rendered(t,
		strings.Replace(joinsOnly, "names: [join.shop.example.com], addresses: [10.0.0.5]", "existingSecret: joins, requireClient: true",
			1))
	if got := only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec.Volumes[1].Secret.SecretName; got != "joins" {
		t.Errorf("the pods mount %s", got)
	}
	if slices.Contains(kinds(objects), "Secret") {
		t.Error("there is a certificate of Helm's too")
	}
	if config := chartBootstrapConfiguration(t, objects); config.Bootstrap.ClientCAFile != "/etc/node-authorizer/tls/ca.crt" {
		t.Errorf("machines are checked with %q", config.Bootstrap.ClientCAFile)
	}
}

func TestChartNotesOfTheBootstrapService(t *testing.T) {
	files, err := render(joinsOnly)
	if err != nil {
		t.Fatal(err)
	}
	notes := files["NOTES.txt"]
	for _, want := range []string{
		"rollout status daemonset/shop-node-authorizer-bootstrap", "docs/guides/bootstrap.md", "--subresource=nodeclient",
		`get secret shop-node-authorizer-bootstrap-tls -o go-template="{{index .data \"ca.crt\" | base64decode}}"`,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	for _, other := range []string{"webhooks", "docs/guides/install.md"} {
		if strings.Contains(notes, other) {
			t.Errorf("the notes mention %q without a server:\n%s", other, notes)
		}
	}
}

func TestChartMonitorsTheBootstrapService(t *testing.T) {
	files, err := render(joinsOnly + "podMonitor: {enabled: true}\n")
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Kind string `json:"kind"`
		Spec struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			PodMetricsEndpoints []struct {
				Port string `json:"port"`
			} `json:"podMetricsEndpoints"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(files["monitoring.yaml"]), &monitor); err != nil {
		t.Fatal(err)
	}
	d := only[*appsv1.DaemonSet](t, rendered(t, joinsOnly))
	if monitor.Kind != "PodMonitor" || !reflect.DeepEqual(monitor.Spec.Selector.MatchLabels, d.Spec.Selector.MatchLabels) {
		t.Errorf("%s selects %v", monitor.Kind, monitor.Spec.Selector.MatchLabels)
	}
	if len(monitor.Spec.PodMetricsEndpoints) != 1 || monitor.Spec.PodMetricsEndpoints[0].Port != "metrics" {
		t.Errorf("scraped are %v", monitor.Spec.PodMetricsEndpoints)
	}
}
