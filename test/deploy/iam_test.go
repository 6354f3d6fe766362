package deploy

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func TestAuthenticatorKubeconfigs(t *testing.T) {
	for form, want := range map[string]struct{ host, name string }{
		"static-pod": {"https://127.0.0.1:10270/authenticate", ""},
		"service":    {"https://10.96.0.17/authenticate", "node-authorizer.node-authorizer.svc"},
	} {
		t.Run(form, func(t *testing.T) {
			path := filepath.Join(installed(t, form+"/apiserver"), "authenticate.kubeconfig")
			write(t, path, filledIn.Replace(read(t, deployFolder, "iam", form, "authenticate.kubeconfig")))
			config, err := webhookutil.LoadKubeconfig(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != want.host || config.ServerName != want.name {
				t.Errorf("the server is %s as %q", config.Host, config.ServerName)
			}
			checkCredentials(t, config)
		})
	}
}

// The config differs from the config of deploy/static-pod only in the settings for
// authentication.
func TestConfigurationOfAuthentication(t *testing.T) {
	config, err := v1alpha1.Parse([]byte(filledIn.Replace(read(t, deployFolder, "iam/static-pod/config.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	checkCallers(t, config)
	for _, served := range []v1alpha1.Served{v1alpha1.ServeAuthorization, v1alpha1.ServeAdmission, v1alpha1.ServeAuthentication} {
		if !config.Webhook.Answers(served) {
			t.Errorf("it does not serve %s", served)
		}
	}
	base, err := v1alpha1.Parse([]byte(read(t, deployFolder, "static-pod/server/config.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	config.Webhook.Serves, config.IAM = base.Webhook.Serves, base.IAM
	if !reflect.DeepEqual(config, base) {
		t.Errorf("the other settings are\n%+v\nwant\n%+v", config, base)
	}
	if _, err := v1alpha1.Parse([]byte(strings.Replace(read(t, deployFolder, "iam/static-pod/config.yaml"), "CLUSTER_ID", `""`,
		1))); err == nil {
		t.Error("it is valid without the id of the cluster")
	}
}

// A kubelet runs our program. Its kubeconfig has no secrets.
func TestKubeconfigOfANode(t *testing.T) {
	config, err := clientcmd.Load([]byte(filledIn.Replace(read(t, deployFolder, "iam/node.kubeconfig"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.ConfirmUsable(*config, ""); err != nil && !strings.Contains(err.Error(), "certificate-authority") {
		t.Error(err)
	}
	user := config.AuthInfos["kubelet"]
	if user == nil || user.Exec == nil || user.Token != "" || user.ClientKeyData != nil || user.Password != "" {
		t.Fatalf("the user is %+v", user)
	}
	want := []string{"token", "--cluster-id", "blue"}
	if user.Exec.InteractiveMode != clientcmdapi.NeverExecInteractiveMode || !slices.Equal(user.Exec.Args, want) ||
		filepath.Base(user.Exec.Command) != "node-authorizer" {
		t.Errorf("it runs %s %v", user.Exec.Command, user.Exec.Args)
	}
}

// The server reads the example without a finding, and its nodes are authenticated as
// nodes.
func TestExampleOfAWSAuth(t *testing.T) {
	example := only[*corev1.ConfigMap](t, mustDecode(t, read(t, deployFolder, "iam/aws-auth.yaml")))
	defaults := v1alpha1.Defaults().IAM
	if example.Namespace != defaults.ConfigMap.Namespace || example.Name != defaults.ConfigMap.Name {
		t.Errorf("it is %s/%s", example.Namespace, example.Name)
	}
	parsed, findings := iam.ParseConfigMap(example.Data, "example", finding.Place{})
	rules := iam.Rules{Partition: "aws", RolePaths: iam.MatchName, Reserved: iam.DefaultReserved()}
	if findings = append(findings, parsed.Check(rules)...); len(findings) > 0 {
		t.Errorf("found %v", findings)
	}
	node := parsed.Roles[0]
	username := strings.Replace(node.Username, "{{EC2PrivateDNSName}}", "ip-10-0-0-1.eu-west-1.compute.internal", 1)
	if got := nodeidentity.Of(username, node.Groups); !got.IsNode || got.Name != "ip-10-0-0-1.eu-west-1.compute.internal" {
		t.Errorf("its node is %+v", got)
	}
}

func TestRightsInAWS(t *testing.T) {
	var policy struct {
		Statement []struct{ Effect, Action, Resource string }
	}
	if err := json.Unmarshal([]byte(read(t, deployFolder, "iam/aws/policy.json")), &policy); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, s := range policy.Statement {
		if s.Effect != "Allow" {
			t.Errorf("the effect is %s", s.Effect)
		}
		actions = append(actions, s.Action)
	}
	if want := []string{"ec2:DescribeInstances", "iam:GetInstanceProfile"}; !slices.Equal(actions, want) {
		t.Errorf("granted are %v, the server asks for %v", actions, want)
	}
}

// asksOfMappings returns the requests of live mappings to a cluster with a mistake in its
// ConfigMap.
func asksOfMappings(t *testing.T) []string {
	t.Helper()
	var mu sync.Mutex
	asked := map[string]bool{}
	cluster := fakeapiserver.New(fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		mu.Lock()
		defer mu.Unlock()
		verb, query := map[string]string{http.MethodGet: "list", http.MethodPost: "create"}[r.Method], r.URL.Query()
		if query.Get("watch") != "" {
			verb = "watch"
		}
		resource := filepath.Base(r.URL.Path)
		if name, ok := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name="); ok {
			resource += "/" + name
		}
		asked[verb+" "+resource] = true
		return fakeapiserver.NoFault
	}})
	t.Cleanup(cluster.Close)
	if err := cluster.Put("/api/v1/namespaces/kube-system/configmaps/aws-auth",
		&corev1.ConfigMap{Data: map[string]string{"mapRoles": "["}}); err != nil {
		t.Fatal(err)
	}
	live, err := mappings.New(mappings.Options{
		Sources: []v1alpha1.MappingSource{
			v1alpha1.ConfigMapSource, v1alpha1.IdentityMappingSource,
		}, Namespace: "kube-system", Name: "aws-auth", Cluster: cluster.Config(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { live.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	all := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Keys(asked))
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return len(all()) == 5, nil })
	if err != nil {
		t.Fatalf("asked for %v: %v", all(), err)
	}
	return all()
}

// namedRights returns the rights of rules: "list configmaps/aws-auth".
func namedRights(rules ...rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if rule.ResourceNames == nil {
					all = append(all, verb+" "+resource)
				}
				for _, name := range rule.ResourceNames {
					all = append(all, verb+" "+resource+"/"+name)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestRightsOfAuthenticationAreThoseThatTheServerUses(t *testing.T) {
	role, cluster := only[*rbacv1.Role](t, built(t, "iam/rbac")), only[*rbacv1.ClusterRole](t, built(t, "iam/identitymappings"))
	want := asksOfMappings(t)
	if got := namedRights(slices.Concat(role.Rules, cluster.Rules)...); !slices.Equal(got, want) {
		t.Errorf("granted are\n%s\nused are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if role.Namespace != "kube-system" {
		t.Errorf("the role is in %s", role.Namespace)
	}
	// The subjects that also read the cluster.
	user := only[*rbacv1.ClusterRoleBinding](t, built(t, "static-pod")).Subjects[0]
	account := only[*rbacv1.ClusterRoleBinding](t, built(t, "service")).Subjects[0]
	for _, subjects := range [][]rbacv1.Subject{
		only[*rbacv1.RoleBinding](t, built(t, "iam/rbac")).Subjects, only[*rbacv1.ClusterRoleBinding](t,
			built(t, "iam/identitymappings")).Subjects,
	} {
		if !slices.Equal(subjects, []rbacv1.Subject{user, account}) {
			t.Errorf("the subjects are %v", subjects)
		}
	}
}

func TestChartOfAuthentication(t *testing.T) {
	const alone = image + "server: {config: {webhook: {serves: [Authentication]}, iam: {clusterID: blue"
	files := []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Secret", "Secret", "Service", "ServiceAccount"}
	with := func(more ...string) []string { return slices.Sorted(slices.Values(slices.Concat(files, more))) }
	for name, c := range map[string]struct {
		values string
		want   []string
	}{
		"alone, it reads no pods": {alone + "}}}", with("Role", "RoleBinding")},
		"of custom resources too": {
			alone + ", sources: [ConfigMap, IdentityMapping]}}}",
			with("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
		},
		"of a file, it reads nothing": {alone + ", sources: [File]}}, mappings: {mapAccounts: ['111122223333']}}", with()},
		"beside authorization": {
			strings.Replace(alone, "[Auth", "[Authorization, Auth", 1) + "}}}",
			with("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
		},
		"with rights of its own there": {
			alone + "}}}\nserviceAccount: {annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::111122223333:role/authorizer'}}",
			with("Role", "RoleBinding"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := rendered(t, c.values)
			if got := kinds(objects); !slices.Equal(got, c.want) {
				t.Errorf("kinds are %v, want %v", got, c.want)
			}
			data := only[*corev1.ConfigMap](t, objects).Data
			config, err := v1alpha1.Parse([]byte(data["config.yaml"]))
			if err != nil {
				t.Fatalf("%v\n%s", err, data["config.yaml"])
			}
			if config.IAM.File != "" {
				checkMappingsFile(t, only[*appsv1.Deployment](t, objects), config.IAM.File, data)
			}
			if account := only[*corev1.ServiceAccount](t, objects); strings.Contains(c.values, "role-arn") != (account.Annotations != nil) {
				t.Errorf("the service account has %v", account.Annotations)
			}
		})
	}
}

// checkMappingsFile checks the path of the file in the config, and the mappings in it.
func checkMappingsFile(t *testing.T, d *appsv1.Deployment, path string, data map[string]string) {
	t.Helper()
	mounted := slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].VolumeMounts,
		func(m corev1.VolumeMount) bool { return m.MountPath == filepath.Dir(path) })
	parsed, findings := iam.ParseFile([]byte(data[filepath.Base(path)]), path)
	if !mounted || len(findings) > 0 || len(parsed.Accounts) != 1 {
		t.Errorf("%s has %+v, %v", path, parsed, findings)
	}
}

func TestChartGrantsWhatTheManifestsGrant(t *testing.T) {
	objects := rendered(t,
		image+"server: {config: {webhook: {serves: [Authentication]}, iam: {clusterID: blue, sources: [ConfigMap, IdentityMapping]}}}")
	got, want := only[*rbacv1.Role](t, objects), only[*rbacv1.Role](t, built(t, "iam/rbac"))
	if !reflect.DeepEqual(got.Rules, want.Rules) || got.Namespace != want.Namespace {
		t.Errorf("the role is %v", got)
	}
	if got, want := only[*rbacv1.ClusterRole](t, objects), only[*rbacv1.ClusterRole](t,
		built(t, "iam/identitymappings")); !reflect.DeepEqual(got.Rules, want.Rules) {
		t.Errorf("the cluster role is %v", got)
	}
	elsewhere := rendered(t,
		image+"server: {config: {webhook: {serves: [Authentication]}, iam: {clusterID: blue, configMap: {namespace: nodes, name: who}}}}")
	if got := only[*rbacv1.Role](t, elsewhere); got.Namespace != "nodes" || !slices.Equal(got.Rules[0].ResourceNames, []string{"who"}) {
		t.Errorf("the role of another ConfigMap is %v", got)
	}
}

func TestChartRefusesBadValuesOfAuthentication(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"another question":            {"server: {config: {webhook: {serves: [Authenticate]}}}", "serves"},
		"no question":                 {"server: {config: {webhook: {serves: []}}}", "serves"},
		"another source":              {"server: {config: {iam: {sources: [Table]}}}", "sources"},
		"a file of the user":          {"server: {config: {iam: {file: /etc/mappings.yaml}}}", "file"},
		"mappings without the source": {"server: {mappings: {mapAccounts: ['111122223333']}}", "server.mappings has no effect"},
		"misspelt mappings":           {"server: {mappings: {maproles: []}}", "maproles"},
		"webhooks that are not served": {
			"server: {config: {webhook: {serves: [Authentication]}, iam: {clusterID: blue}}}\nwebhooks: {enabled: true}",
			"webhooks.enabled needs Admission",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(image + c.values); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one about %s", err, c.want)
			}
		})
	}
}

// The commands of docs/guides/iam.md that set kube-apiserver's flags and write a node's
// kubeconfig.
func TestCommandsThatSetUpAuthentication(t *testing.T) {
	h := newHost(t)
	h.install(t)
	h.run(t,
		"cp -r host/server host/apiserver /etc/kubernetes/node-authorizer/\n"+
			"chown -R 65532:65532 /etc/kubernetes/node-authorizer/server\nchmod -R go= /etc/kubernetes/node-authorizer/*\n"+
			"cp host/node-authorizer.yaml /etc/kubernetes/manifests/")
	h.run(t, "kube-apiserver.yaml.before-iam")
	folder := h.path("etc/kubernetes/node-authorizer/apiserver")
	flags := sets.New(h.kubeAPIServer(t).Containers[0].Command...)
	if !flags.HasAll("kube-apiserver", "--authentication-token-webhook-config-file="+folder+"/authenticate.kubeconfig",
		"--authentication-token-webhook-version=v1", "--authentication-token-webhook-cache-ttl=30s",
		"--authorization-mode=Node,RBAC") {
		t.Errorf("flags of kube-apiserver are %v", h.kubeAPIServer(t).Containers[0].Command)
	}
	if _, err := webhookutil.LoadKubeconfig(folder+"/authenticate.kubeconfig", nil); err != nil {
		t.Error(err)
	}
	h.run(t, "kubelet.kubeconfig")
	config, err := clientcmd.LoadFromFile(h.path("etc/kubernetes/kubelet.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if config.Clusters["cluster"].Server != "https://api.blue.example.com:6443" ||
		!slices.Contains(config.AuthInfos["kubelet"].Exec.Args, "blue") {
		t.Errorf("the kubeconfig is %+v", config)
	}
}
