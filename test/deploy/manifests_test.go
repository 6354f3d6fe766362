package deploy

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	podsecurityapi "k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// Every file is either decoded here or of a kind that another test reads.
func TestEveryManifestIsOfAKnownKind(t *testing.T) {
	elsewhere := []string{
		"kind: AuthorizationConfiguration", "kind: AdmissionConfiguration", "kind: ServerConfiguration",
		"kind: Kustomization", "kind: KubeletConfiguration", "write_files:", "variant: fcos",
	}
	err := filepath.WalkDir(deployFolder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content := read(t, path)
		if slices.ContainsFunc(elsewhere, func(kind string) bool { return strings.Contains(content, "\n"+kind) }) {
			return nil
		}
		t.Run(strings.TrimPrefix(path, deployFolder+"/"), func(t *testing.T) {
			if len(mustDecode(t, filledIn.Replace(content))) == 0 {
				t.Error("the file has no objects")
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The API server refuses a webhook whose placeholder was not replaced.
func TestPlaceholderOfTheAuthorityIsRefused(t *testing.T) {
	for _, form := range forms {
		for _, file := range []string{"noderestriction.yaml", "tolerations.yaml"} {
			if _, err := decode(read(t, deployFolder, form, "webhooks", file)); err == nil {
				t.Errorf("%s/webhooks/%s can be installed as it is", form, file)
			}
		}
	}
}

func TestKustomizeBuildsEachFolder(t *testing.T) {
	for folder, want := range map[string][]string{
		"audit":               {"Job", "Namespace", "PersistentVolumeClaim"},
		"audit/merge":         {"Job"},
		"rbac":                {"ClusterRole"},
		"chain":               {"ClusterRole"},
		"reader":              {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
		"reader/secrets":      {"ClusterRole", "ClusterRoleBinding"},
		"reader/openshift":    {"Role", "RoleBinding"},
		"static-pod":          {"ClusterRole", "ClusterRoleBinding"},
		"static-pod/webhooks": {"MutatingWebhookConfiguration"},
		"service": {
			"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "Namespace", "PodDisruptionBudget", "Service",
			"ServiceAccount",
		},
		"service/webhooks":     {"MutatingWebhookConfiguration"},
		"iam/rbac":             {"Role", "RoleBinding"},
		"iam/identitymappings": {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"},
		"containment": {
			"ClusterRole", "ClusterRoleBinding", "ConfigMap", "CustomResourceDefinition", "CustomResourceDefinition", "Role",
			"RoleBinding",
		},
		"containment/bootstrap": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
		"bootstrap/cluster": {
			"ClusterRole", "ClusterRole", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding",
			"CustomResourceDefinition", "CustomResourceDefinition", "Role", "Role",
		},
		"bootstrap/manual-approval":     {"ClusterRole", "ClusterRoleBinding"},
		"bootstrap/registered-machines": {"ClusterRole", "ClusterRoleBinding"},
		"bootstrap/cluster-api":         {"Role", "RoleBinding"},
		"bootstrap/policy":              {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"bootstrap/kubeadm":             {"ClusterRoleBinding", "RoleBinding", "RoleBinding", "RoleBinding"},
		"bootstrap/kops": {
			"ClusterRole", "ClusterRole", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding", "ClusterRoleBinding",
			"ClusterRoleBinding",
			"CustomResourceDefinition", "CustomResourceDefinition", "Role", "Role", "RoleBinding", "RoleBinding",
		},
		"bootstrap": {
			"ClusterRole", "ClusterRole", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding", "ClusterRoleBinding",
			"ClusterRoleBinding",
			"ConfigMap", "CustomResourceDefinition", "CustomResourceDefinition", "DaemonSet", "Role", "Role", "RoleBinding", "RoleBinding",
			"ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		},
	} {
		t.Run(folder, func(t *testing.T) {
			var got []string
			for _, o := range built(t, folder) {
				got = append(got, o.GetObjectKind().GroupVersionKind().Kind)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("kinds are %v, want %v", got, want)
			}
		})
	}
}

func TestServerConfigurationsAreValid(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(deployFolder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "config.yaml" {
			return err
		}
		seen++
		config, err := v1alpha1.Parse([]byte(read(t, path)))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		t.Run(path, func(t *testing.T) { checkCallers(t, config) })
		return nil
	})
	if err != nil || seen < 5 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// callerName is the common name of kube-apiserver's client certificate: the commands of the guide and the
// chart make one with it.
const callerName = "kube-apiserver"

// checkCallers checks that only the API server may call, if the server has webhooks.
func checkCallers(t *testing.T, config *v1alpha1.ServerConfiguration) {
	t.Helper()
	if config.Webhook.Address == "" {
		return
	}
	if config.Webhook.ClientAuthentication != v1alpha1.ClientCertificateRequired {
		t.Errorf("clientAuthentication is %s", config.Webhook.ClientAuthentication)
	}
	if !slices.Equal(config.Webhook.AllowedClientNames, []string{callerName}) {
		t.Errorf("allowedClientNames are %v", config.Webhook.AllowedClientNames)
	}
}

func TestDeployment(t *testing.T) {
	objects := built(t, "service")
	checkDeployment(t, only[*appsv1.Deployment](t, objects))
	checkSelectors(t, only[*appsv1.Deployment](t, objects), only[*corev1.Service](t, objects),
		only[*policyv1.PodDisruptionBudget](t, objects))
	config := only[*corev1.ConfigMap](t, objects)
	if _, err := v1alpha1.Parse([]byte(config.Data["config.yaml"])); err != nil {
		t.Error(err)
	}
	namespace := only[*corev1.Namespace](t, objects)
	if namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Error("the namespace does not enforce the restricted pod security standard")
	}
	if !mounts(&only[*appsv1.Deployment](t, objects).Spec.Template.Spec, config.Name) {
		t.Errorf("the pods do not mount the config map %s", config.Name)
	}
}

// mounts reports whether a pod has a volume of the config map.
func mounts(pod *corev1.PodSpec, configMap string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == configMap })
}

// checkDeployment checks the fields that a Deployment of more than one replica must have.
func checkDeployment(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	if *d.Spec.Replicas != 2 {
		t.Errorf("%d replicas, want 2", *d.Spec.Replicas)
	}
	template := &d.Spec.Template
	checkRestricted(t, template)
	checkProbes(t, &template.Spec)
	required := template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(required) != 1 || required[0].TopologyKey != corev1.LabelHostname || !selects(t, required[0].LabelSelector, template.Labels) {
		t.Errorf("two replicas may share a node: %v", required)
	}
}

// checkRestricted checks pods against the pod security standard.
func checkRestricted(t *testing.T, template *corev1.PodTemplateSpec) {
	t.Helper()
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurityapi.LevelVersion{Level: podsecurityapi.LevelRestricted, Version: podsecurityapi.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			t.Errorf("the restricted pod security standard refuses the pods: %s (%s)", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
	if readOnly := template.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
		t.Error("the root file system is not read-only")
	}
}

func checkProbes(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	c := &pod.Containers[0]
	metrics := map[intstr.IntOrString]bool{intstr.FromString("metrics"): true, intstr.FromInt32(10271): true}
	for path, probe := range map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || !metrics[probe.HTTPGet.Port] {
			t.Errorf("no probe asks %s at the port for metrics, which needs no certificate", path)
		}
	}
}

// checkSelectors checks that the Service and the budget select the pods of the Deployment.
func checkSelectors(t *testing.T, d *appsv1.Deployment, s *corev1.Service, budget *policyv1.PodDisruptionBudget) {
	t.Helper()
	pods := d.Spec.Template.Labels
	if !selects(t, d.Spec.Selector, pods) || !selects(t, budget.Spec.Selector, pods) ||
		!labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pods)) {
		t.Errorf("pods with the labels %v are not selected by all of the Deployment, the Service and the budget", pods)
	}
	for _, port := range s.Spec.Ports {
		named := func(p corev1.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }
		if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, named) {
			t.Errorf("the Service's port %s leads to no port of the pods", port.Name)
		}
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, pods map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !s.Empty() && s.Matches(labels.Set(pods))
}

// A static pod must not refer to API objects: the kubelet could not read them, and the
// API server would refuse its mirror pod.
func TestStaticPod(t *testing.T) {
	pod := only[*corev1.Pod](t, mustDecode(t, filledIn.Replace(read(t, deployFolder, "static-pod/server/node-authorizer.yaml"))))
	if pod.Spec.ServiceAccountName != "" {
		t.Error("the pod has a service account")
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath == nil {
			t.Errorf("volume %s is not of the host", v.Name)
		}
	}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if !m.ReadOnly {
			t.Errorf("volume %s is writable", m.Name)
		}
	}
	if !pod.Spec.HostNetwork {
		t.Error("the pod waits for the network of pods")
	}
	checkProbes(t, &pod.Spec)
	template := &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: *pod.Spec.DeepCopy()}
	template.Spec.HostNetwork, template.Spec.Volumes = false, nil // what it needs beyond the standard
	template.Spec.Containers[0].Ports = nil
	template.Spec.Containers[0].LivenessProbe.HTTPGet.Host = ""
	template.Spec.Containers[0].ReadinessProbe.HTTPGet.Host = ""
	checkRestricted(t, template)
}

// The binding of the static pod has the user of its certificate; the binding of the Deployment
// has its service account.
func TestBindings(t *testing.T) {
	for form, want := range map[string]rbacv1.Subject{
		"static-pod": {Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "node-authorizer"},
		"service":    {Kind: rbacv1.ServiceAccountKind, Namespace: "node-authorizer", Name: "node-authorizer"},
	} {
		objects := built(t, form)
		binding := only[*rbacv1.ClusterRoleBinding](t, objects)
		if !slices.Equal(binding.Subjects, []rbacv1.Subject{want}) {
			t.Errorf("%s: subjects are %v", form, binding.Subjects)
		}
		if role := only[*rbacv1.ClusterRole](t, objects); binding.RoleRef.Name != role.Name {
			t.Errorf("%s: %s is bound, not %s", form, binding.RoleRef.Name, role.Name)
		}
	}
	account := only[*corev1.ServiceAccount](t, built(t, "service"))
	pods := only[*appsv1.Deployment](t, built(t, "service")).Spec.Template.Spec
	if account.Name != pods.ServiceAccountName {
		t.Errorf("the pods run as %s", pods.ServiceAccountName)
	}
}

// webhooks returns the webhooks of NodeRestriction and of tolerations.
func webhooks(t *testing.T, form string) (restriction, tolerations *admissionregistrationv1.MutatingWebhook) {
	t.Helper()
	one := func(file string) *admissionregistrationv1.MutatingWebhook {
		objects := mustDecode(t, filledIn.Replace(read(t, deployFolder, form, "webhooks", file)))
		all := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects).Webhooks
		if len(all) != 1 {
			t.Fatalf("%s has %d webhooks, want 1", file, len(all))
		}
		return &all[0]
	}
	return one("noderestriction.yaml"), one("tolerations.yaml")
}
