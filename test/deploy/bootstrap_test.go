package deploy

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

const (
	tokenGroup        = "system:bootstrappers:node-authorizer"
	nodeBootstrapper  = "system:node-bootstrapper"
	systemNamespace   = "kube-system"
	bootstrapAccount  = "node-authorizer-bootstrap"
	autoApprovalRoles = "system:certificates.k8s.io:certificatesigningrequests:"
)

// The custom resources have one source, next to their types.
func TestCustomResourcesAreOfTheTypes(t *testing.T) {
	for _, resource := range []string{"nodeattestations", "machines"} {
		want := read(t, "../../api/v1alpha1/"+resource+".yaml")
		for _, folder := range []string{deployFolder + "/bootstrap/cluster/", chartFolder + "/files/"} {
			if read(t, folder, resource+".yaml") != want {
				t.Errorf("%s%s.yaml is not api/v1alpha1/%s.yaml: copy it", folder, resource, resource)
			}
		}
	}
}

// The right to read Machines is in a folder of its own, which a service needs with the attestor tpm or key, or with Machines as a
// source of serving certificates.
func TestRightsToReadMachinesAreInTheirOwnFolder(t *testing.T) {
	objects := built(t, "bootstrap/registered-machines")
	role := only[*rbacv1.ClusterRole](t, objects)
	service := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: bootstrapAccount}
	if got := subjectsOf(objects, role.Name); !slices.Equal(got, []rbacv1.Subject{service}) {
		t.Errorf("the rights are bound to %v", got)
	}
	for _, attestor := range []string{"attestor: key, key: {clusterID: shop}", "attestor: tpm"} {
		inChart := clusterRole(t, rendered(t, strings.Replace(joinsOnly, "attestor: aws", attestor, 1)), ":bootstrap").Rules
		if !slices.ContainsFunc(inChart, func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, role.Rules[0]) }) {
			t.Errorf("%s: the chart has the rights %v, want %v too", attestor, inChart, role.Rules)
		}
	}
	for sources, want := range map[string]bool{
		"{nodeAddresses: true}, {machine: true}, {names: ['{{.NodeName}}']}": true, "{nodeAddresses: true}, {machine: false}": false,
	} {
		chart := rendered(t, strings.Replace(approverOnly, "service: false",
			"service: false, config: {approver: {servingCertificates: ["+sources+"]}}", 1))
		inChart := clusterRole(t, chart, ":approver").Rules
		if got := slices.ContainsFunc(inChart, func(r rbacv1.PolicyRule) bool { return reflect.DeepEqual(r, role.Rules[0]) }); got != want {
			t.Errorf("%s: the chart has the rights %v", sources, inChart)
		}
	}
}

// The right to read the Machines of Cluster API is in a folder of its own, for each of their namespaces.
func TestRightsToReadMachinesOfClusterAPIAreInTheirOwnFolder(t *testing.T) {
	objects := built(t, "bootstrap/cluster-api")
	role := only[*rbacv1.Role](t, objects)
	service := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: bootstrapAccount}
	if got := subjectsOf(objects, role.Name); !slices.Equal(got, []rbacv1.Subject{service}) {
		t.Errorf("the rights are bound to %v", got)
	}
	for clusterAPI, want := range map[string][]string{
		"{namespaces: [fleet, edge], clusterName: shop}":                {"fleet", "edge"},
		"{namespaces: [fleet], clusterName: shop, kubeconfig: another}": nil,
		"{}": nil,
	} {
		chart := rendered(t, strings.Replace(joinsOnly, "attestor: aws", "attestor: aws, clusterAPI: "+clusterAPI, 1))
		var namespaces []string
		for _, o := range chart {
			if r, ok := o.(*rbacv1.Role); ok && strings.HasSuffix(r.Name, ":cluster-api") {
				namespaces = append(namespaces, r.Namespace)
				if !reflect.DeepEqual(r.Rules, role.Rules) {
					t.Errorf("the chart has the rights %v, want %v", r.Rules, role.Rules)
				}
			}
		}
		if !slices.Equal(namespaces, want) {
			t.Errorf("%s: the rights are in the namespaces %v, want %v", clusterAPI, namespaces, want)
		}
		got := subjectsOf(chart, "shop-node-authorizer:cluster-api")
		if len(got) != len(want) || slices.ContainsFunc(got, func(s rbacv1.Subject) bool { return s.Name != podAccount(t, chart) }) {
			t.Errorf("%s: the chart binds the rights to %v", clusterAPI, got)
		}
	}
}

// The rights to write Machines are in a folder of their own, which a service with bootstrap.approval: Manual needs.
func TestRightsOfManualApprovalAreInTheirOwnFolder(t *testing.T) {
	objects := built(t, "bootstrap/manual-approval")
	role := only[*rbacv1.ClusterRole](t, objects)
	service := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: bootstrapAccount}
	if got := subjectsOf(objects, role.Name); !slices.Equal(got, []rbacv1.Subject{service}) {
		t.Errorf("the rights are bound to %v", got)
	}
	chart := rendered(t, strings.Replace(joinsOnly, "attestor: aws", "attestor: key, approval: Manual, key: {clusterID: shop}", 1))
	if inChart := clusterRole(t, chart, ":manual-approval").Rules; !reflect.DeepEqual(inChart, role.Rules) {
		t.Errorf("the chart has the rights %v, want %v", inChart, role.Rules)
	}
	if got := subjectsOf(chart, "shop-node-authorizer:manual-approval"); len(got) != 1 || got[0].Name != podAccount(t, chart) {
		t.Errorf("the chart binds the rights to %v", got)
	}
	for _, o := range slices.Concat(built(t, "bootstrap"), rendered(t, joinsOnly)) {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "machines") {
				t.Errorf("with an attestor that asks for no machines, %s may %v machines", role.Name, rule.Verbs)
			}
		}
	}
}

func bootstrapConfiguration(t *testing.T) *v1alpha1.ServerConfiguration {
	t.Helper()
	config, err := v1alpha1.Parse([]byte(only[*corev1.ConfigMap](t, built(t, "bootstrap")).Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// A placeholder that is not replaced must not be the name of another cluster.
func TestClusterNameIsAPlaceholder(t *testing.T) {
	if !strings.Contains(read(t, deployFolder, "bootstrap/config.yaml"), "\n    clusterName: CLUSTER_NAME\n") {
		t.Error("the cluster's name is not a placeholder")
	}
}

func TestBootstrapConfiguration(t *testing.T) {
	config := bootstrapConfiguration(t)
	if config.Webhook.Address != "" {
		t.Error("webhooks are served, which need rights that the service does not have")
	}
	if config.Bootstrap.Attestor != v1alpha1.AWSAttestor || !config.Bootstrap.AWS.VerifySignature ||
		!config.Bootstrap.AWS.VerifySourceAddress || !config.Bootstrap.VerifyRegistration {
		t.Errorf("evidence is not checked: %+v", config.Bootstrap)
	}
	if config.Bootstrap.Reattestation != v1alpha1.NeverReattest {
		t.Errorf("reattestation is %s", config.Bootstrap.Reattestation)
	}
	// Deny would stop the nodes of a control plane of kubeadm.
	if !config.Approver.Enabled || config.Approver.UnattestedNodes != v1alpha1.LeaveUnattested {
		t.Errorf("the approver is %+v", config.Approver)
	}
}

func TestBootstrapDaemonSet(t *testing.T) {
	objects := built(t, "bootstrap")
	checkDaemonSet(t, only[*appsv1.DaemonSet](t, objects), bootstrapConfiguration(t))
	pod := &only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
	if !mounts(pod, only[*corev1.ConfigMap](t, objects).Name) {
		t.Error("the pods do not mount their config")
	}
	if account := only[*corev1.ServiceAccount](t, objects); account.Name != pod.ServiceAccountName {
		t.Errorf("the pods run as %s", pod.ServiceAccountName)
	}
}

// checkDaemonSet checks the fields that pods on control plane nodes must have.
func checkDaemonSet(t *testing.T, d *appsv1.DaemonSet, config *v1alpha1.ServerConfiguration) {
	t.Helper()
	pod := &d.Spec.Template.Spec
	if !selects(t, d.Spec.Selector, d.Spec.Template.Labels) {
		t.Error("the DaemonSet does not select its pods")
	}
	if _, ok := pod.NodeSelector["node-role.kubernetes.io/control-plane"]; !ok {
		t.Errorf("nodes are selected by %v", pod.NodeSelector)
	}
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSDefault {
		t.Error("the pods wait for the network of pods or the cluster's DNS")
	}
	if !strings.HasPrefix(pod.PriorityClassName, "system-") {
		t.Errorf("the priority class is %q", pod.PriorityClassName)
	}
	checkTolerates(t, pod)
	checkPorts(t, &pod.Containers[0], config)
	checkProbes(t, pod)
	for _, m := range pod.Containers[0].VolumeMounts {
		if !m.ReadOnly {
			t.Errorf("volume %s is writable", m.Name)
		}
	}
	template := d.Spec.Template.DeepCopy()
	template.Spec.HostNetwork = false // what it needs beyond the standard
	for i := range template.Spec.Containers[0].Ports {
		template.Spec.Containers[0].Ports[i].HostPort = 0
	}
	checkRestricted(t, template)
}

// checkTolerates checks that the pods run before other pods.
func checkTolerates(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	for _, key := range []string{
		"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
		"node.cloudprovider.kubernetes.io/uninitialized", "node.kubernetes.io/network-unavailable",
	} {
		taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
		if !slices.ContainsFunc(pod.Tolerations, func(o corev1.Toleration) bool {
			return (o.Key == "" || o.Key == taint.Key) && o.Operator == corev1.TolerationOpExists &&
				(o.Effect == "" || o.Effect == taint.Effect)
		}) {
			t.Errorf("the pods do not tolerate %s", key)
		}
	}
}

func checkPorts(t *testing.T, container *corev1.Container, config *v1alpha1.ServerConfiguration) {
	t.Helper()
	listening := map[string]string{"bootstrap": config.Bootstrap.Address, "metrics": config.Metrics.Address}
	for _, port := range container.Ports {
		if want := listening[port.Name]; want != ":"+strconv.Itoa(int(port.ContainerPort)) || port.HostPort != port.ContainerPort {
			t.Errorf("port %s is %d, the config says %q", port.Name, port.ContainerPort, want)
		}
	}
	if len(container.Ports) != len(listening) {
		t.Errorf("ports are %v", container.Ports)
	}
}

// clusterRole returns the cluster role whose name ends in the suffix.
func clusterRole(t *testing.T, objects []runtime.Object, suffix string) *rbacv1.ClusterRole {
	t.Helper()
	for _, o := range objects {
		if role, ok := o.(*rbacv1.ClusterRole); ok && strings.HasSuffix(role.Name, suffix) {
			return role
		}
	}
	t.Fatalf("no cluster role ends in %s", suffix)
	return nil
}

// systemRole returns the role in kube-system whose name ends in the suffix.
func systemRole(t *testing.T, objects []runtime.Object, suffix string) *rbacv1.Role {
	t.Helper()
	for _, o := range objects {
		if role, ok := o.(*rbacv1.Role); ok && strings.HasSuffix(role.Name, suffix) && role.Namespace == systemNamespace {
			return role
		}
	}
	t.Fatalf("no role in %s ends in %s", systemNamespace, suffix)
	return nil
}

// subjectsOf returns the subjects of all bindings of a role.
func subjectsOf(objects []runtime.Object, role string) (subjects []rbacv1.Subject) {
	for _, o := range objects {
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			if b.RoleRef.Name == role {
				subjects = append(subjects, b.Subjects...)
			}
		case *rbacv1.RoleBinding:
			if b.RoleRef.Name == role {
				subjects = append(subjects, b.Subjects...)
			}
		}
	}
	return subjects
}

func TestBootstrapBindings(t *testing.T) {
	for folder, account := range map[string]string{"bootstrap": bootstrapAccount, "bootstrap/kops": "node-authorizer"} {
		objects := built(t, folder)
		service := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: account}
		// Once in the cluster, once in kube-system.
		for _, role := range []string{"node-authorizer:bootstrap", "node-authorizer:approver"} {
			if got := subjectsOf(objects, role); !slices.Equal(got, []rbacv1.Subject{service, service}) {
				t.Errorf("%s: the rights of %s are those of %v", folder, role, got)
			}
		}
		machines := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: tokenGroup}
		if got := subjectsOf(objects, nodeBootstrapper); !slices.Equal(got, []rbacv1.Subject{machines}) {
			t.Errorf("%s: certificates may be asked for by %v", folder, got)
		}
		nodes := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:nodes"}
		if got := subjectsOf(objects, "node-authorizer:selfnodeserver"); !slices.Equal(got, []rbacv1.Subject{nodes}) {
			t.Errorf("%s: serving certificates may be asked for by %v", folder, got)
		}
	}
}

// The approver's rights are bound by a separate folder.
func TestApproverRightsAreInTheirOwnFolder(t *testing.T) {
	if config := bootstrapConfiguration(t); !config.Approver.Enabled {
		t.Error("the approver does not run, and its rights are bound")
	}
	bindings := len(subjectsOf(built(t, "bootstrap/approver"), "node-authorizer:approver"))
	if bindings != 2 || len(built(t, "bootstrap/approver")) != bindings {
		t.Errorf("bootstrap/approver has %v", kinds(built(t, "bootstrap/approver")))
	}
	for _, file := range []string{"bootstrap/account.yaml", "bootstrap/cluster/joining.yaml"} {
		if strings.Contains(read(t, deployFolder, file), "name: node-authorizer:approver") {
			t.Errorf("%s binds the approver's rights too", file)
		}
	}
}

// The policy applies to the service account and to all users with the roles. It is not in
// the first step for clusters of kops, because it would stop the old service from making
// tokens.
func TestPolicyAppliesToAllUsersWithTheRoles(t *testing.T) {
	for _, folder := range []string{"bootstrap", "bootstrap/policy"} {
		got := only[*admissionregistrationv1.ValidatingAdmissionPolicy](t, built(t, folder)).Spec.MatchConditions
		for _, want := range []string{
			"request.userInfo.username == 'system:serviceaccount:" + systemNamespace + ":" + bootstrapAccount + "' ||",
			".resource('bootstraptokens').namespace('" + systemNamespace + "').check('write').allowed()",
		} {
			if len(got) != 1 || !strings.Contains(got[0].Expression, want) {
				t.Errorf("%s: the policy is not for %s: %v", folder, want, got)
			}
		}
	}
	for _, o := range built(t, "bootstrap/kops") {
		if _, found := o.(*admissionregistrationv1.ValidatingAdmissionPolicy); found {
			t.Error("bootstrap/kops has the policy")
		}
	}
	objects := built(t, "bootstrap")
	for role, want := range map[string]bool{":bootstrap": true, ":approver": false} {
		writes, marked := false, false
		for _, rule := range systemRole(t, objects, role).Rules {
			writes = writes || slices.Contains(rule.Resources, "secrets")
			marked = marked || slices.Equal(rule.APIGroups, []string{"node-authorizer.io"}) &&
				slices.Equal(rule.Resources, []string{"bootstraptokens"}) && slices.Equal(rule.Verbs, []string{"write"})
		}
		if writes != want || marked != want {
			t.Errorf("role %s has rights on secrets: %v, and is known to the policy: %v, want %v", role, writes, marked, want)
		}
	}
}

// kube-controller-manager approves the requests of the holders of these roles, regardless
// of the approver.
func TestNoBindingAutoApprovesTokens(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// The tests' own manifests are not installed, and neither are the facts about other clusters.
		facts := filepath.Join("..", "..", "examples", "clusters")
		if entry.IsDir() && (path == facts || slices.Contains([]string{"test", "testdata", ".git"}, entry.Name())) {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".yaml" && ext != ".tpl" {
			return nil
		}
		seen++
		if strings.Contains(read(t, path), autoApprovalRoles) {
			t.Errorf("%s names a role of automatic approval", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("no manifest was read")
	}
}

// These are the rights of a stolen token of the service account.
func TestBootstrapRightsAreNarrow(t *testing.T) {
	objects := built(t, "bootstrap")
	inCluster := slices.Concat(clusterRole(t, objects, ":bootstrap").Rules, clusterRole(t, objects, ":approver").Rules)
	rules := slices.Concat(inCluster, systemRole(t, objects, ":bootstrap").Rules, systemRole(t, objects, ":approver").Rules)
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 || slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
			t.Errorf("rule %v is not narrow", rule)
		}
		for _, verb := range []string{"bind", "escalate", "impersonate", "delete", "deletecollection", "patch"} {
			if slices.Contains(rule.Verbs, verb) {
				t.Errorf("rule %v has the verb %s", rule, verb)
			}
		}
		create := slices.Equal(rule.Verbs, []string{"create"}) && len(rule.ResourceNames) == 0
		readKey := slices.Equal(rule.Verbs, []string{"get"}) && slices.Equal(rule.ResourceNames, []string{"node-authorizer-key"})
		if slices.Contains(rule.Resources, "secrets") && !create && !readKey {
			t.Errorf("with secrets more may be done than to create them and to read the key: %v of %v", rule.Verbs, rule.ResourceNames)
		}
	}
	for _, rule := range inCluster {
		if slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "leases") {
			t.Errorf("rule %v holds in every namespace", rule)
		}
	}
	// Only the approver approves, sends access reviews and takes part in leader election,
	// and only the service creates.
	for suffix, forbidden := range map[string][]string{
		":bootstrap": {"signers", "certificatesigningrequests", "certificatesigningrequests/approval", "subjectaccessreviews", "leases"},
	} {
		for _, rule := range slices.Concat(clusterRole(t, objects, suffix).Rules, systemRole(t, objects, suffix).Rules) {
			for _, resource := range forbidden {
				if slices.Contains(rule.Resources, resource) {
					t.Errorf("%s has rights on %s", suffix, resource)
				}
			}
		}
	}
	for _, rule := range slices.Concat(clusterRole(t, objects, ":approver").Rules, systemRole(t, objects, ":approver").Rules) {
		if slices.Contains(rule.Verbs, "create") && !slices.Contains(rule.Resources, "leases") &&
			!slices.Contains(rule.Resources, "subjectaccessreviews") {
			t.Errorf("the approver may create %v", rule.Resources)
		}
	}
}

// The policy compares with the group in the format of Secrets.
func TestPolicyNamesTheGroupOfTokens(t *testing.T) {
	if want := "'" + base64.StdEncoding.EncodeToString([]byte(tokenGroup)) + "'"; !strings.Contains(read(t, deployFolder,
		"bootstrap/policy/policy.yaml"),
		want) {
		t.Errorf("the policy does not name %s", want)
	}
}

// kubeadm's own tokens and the tokens of the service are bound to the same roles.
func TestKubeadmBindings(t *testing.T) {
	objects := built(t, "bootstrap/kubeadm")
	machines := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: tokenGroup}
	for _, role := range []string{"kubeadm:nodes-kubeadm-config", "kubeadm:kubelet-config", "kube-proxy", "kubeadm:get-nodes"} {
		if got := subjectsOf(objects, role); !slices.Equal(got, []rbacv1.Subject{machines}) {
			t.Errorf("%s is bound to %v", role, got)
		}
	}
}

func TestAWSPolicyAllowsOneAction(t *testing.T) {
	var policy struct {
		Version   string
		Statement []struct {
			Sid, Effect, Action, Resource string
		}
	}
	if err := json.Unmarshal([]byte(read(t, deployFolder, "bootstrap/aws/policy.json")), &policy); err != nil {
		t.Fatal(err)
	}
	if len(policy.Statement) != 1 || policy.Statement[0].Action != "ec2:DescribeInstances" || policy.Statement[0].Effect != "Allow" {
		t.Errorf("the statements are %v", policy.Statement)
	}
}
