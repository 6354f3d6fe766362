package deploy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
)

// render runs `helm template shop` in the namespace guards, without a cluster. It returns
// the files by name.
func render(values string) (map[string]string, error) {
	c, err := loader.Load(chartFolder)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "shop", Namespace: "guards", Revision: 1, IsInstall: true}
	full, err := chartutil.ToRenderValues(c, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, full)
	if err != nil {
		return nil, err
	}
	byName := map[string]string{}
	for path, content := range files {
		byName[strings.TrimPrefix(path, "node-authorizer/templates/")] = content
	}
	return byName, nil
}

// rendered returns the rendered objects of the API server's own kinds.
func rendered(t *testing.T, values string) []runtime.Object {
	t.Helper()
	files, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for name, content := range files {
		if name == "NOTES.txt" || name == "_helpers.tpl" || name == "monitoring.yaml" {
			continue
		}
		decoded, err := decode(content)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, content)
		}
		objects = append(objects, decoded...)
	}
	return objects
}

func kinds(objects []runtime.Object) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetObjectKind().GroupVersionKind().Kind)
	}
	slices.Sort(names)
	return names
}

const image = "image: {repository: registry.example.com/node-authorizer}\n"

func TestChartRenders(t *testing.T) {
	server := []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Secret", "Secret", "Service", "ServiceAccount"}
	rights := []string{"ClusterRole", "ClusterRoleBinding"}
	with := func(lists ...[]string) []string { return slices.Sorted(slices.Values(slices.Concat(lists...))) }
	for name, c := range map[string]struct {
		values string
		want   []string
	}{
		"the server, before its webhooks": {image, with(server, rights)},
		"with its webhooks": {
			image + "webhooks: {enabled: true}", with(server, rights, []string{"MutatingWebhookConfiguration"}),
		},
		"with tolerations": {
			image + "webhooks: {enabled: true, extendedResourceToleration: true}",
			with(server, rights, []string{"MutatingWebhookConfiguration", "MutatingWebhookConfiguration"}),
		},
		"with a network policy": {
			image + "networkPolicy: {enabled: true, apiServers: [10.0.0.0/24]}", with(server, rights, []string{"NetworkPolicy"}),
		},
		"with a certificate of the user": {
			image + "certificates: {existingSecret: serving}",
			with(rights, []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"}),
		},
		"with one replica": {
			image + "server: {replicas: 1}",
			with(rights, []string{"ConfigMap", "Deployment", "Secret", "Secret", "Service", "ServiceAccount"}),
		},
		"for another cluster":           {image + "server: {kubeconfigSecret: hosted}\nrbac: {create: false}", server},
		"rights for a server elsewhere": {"server: {enabled: false}\nrbac: {user: node-authorizer}", rights},
		"webhooks for a server elsewhere": {
			"server: {enabled: false}\nrbac: {create: false}\nwebhooks: {enabled: true, url: 'https://127.0.0.1:10270', caBundle: Zm9v}",
			[]string{"MutatingWebhookConfiguration"},
		},
		"everything that can be set": {
			image + `
imagePullSecrets: [{name: pull}]
fullnameOverride: guard
server:
  config:
    log: {format: json, verbosity: 2}
    cluster: {kubernetesVersion: "1.36", featureGates: {PodCertificateRequest: true}}
    shutdown: {delay: 10s}
  resources: {requests: {cpu: "1"}, limits: {memory: 1Gi}}
  nodeSelector: {node-role.kubernetes.io/control-plane: ""}
  tolerations: []
  antiAffinity: Preferred
  podAnnotations: {example.com/owner: platform}
service: {clusterIP: 10.96.0.17, annotations: {example.com/owner: platform}}
`, with(server, rights),
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := rendered(t, c.values)
			if got := kinds(objects); !slices.Equal(got, c.want) {
				t.Errorf("kinds are %v, want %v", got, c.want)
			}
			for _, o := range objects {
				if m, ok := o.(*corev1.ConfigMap); ok {
					if _, err := v1alpha1.Parse([]byte(m.Data["config.yaml"])); err != nil {
						t.Errorf("the config file is not valid: %v\n%s", err, m.Data["config.yaml"])
					}
				}
			}
		})
	}
}

func TestChartRefusesBadValues(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"no image":                        {"", "image.repository is required"},
		"a misspelt name":                 {image + "server: {replica: 3}", "replica"},
		"a misspelt section":              {image + "webhook: {enabled: true}", "webhook"},
		"no replica":                      {image + "server: {replicas: 0}", "replicas"},
		"replicas as text":                {image + "server: {replicas: two}", "replicas"},
		"another section of the config":   {image + "server: {config: {logging: {}}}", "logging"},
		"the kind of the config":          {image + "server: {config: {kind: ServerConfiguration}}", "kind"},
		"another mode":                    {image + "server: {config: {authorization: {mode: RBAC}}}", "mode"},
		"plain HTTP":                      {image + "webhooks: {enabled: true, url: 'http://127.0.0.1:10270'}", "url"},
		"a url with a path":               {image + "webhooks: {enabled: true, url: 'https://127.0.0.1:10270/admit'}", "url"},
		"a timeout beyond leases":         {image + "webhooks: {enabled: true, timeoutSeconds: 30}", "timeoutSeconds"},
		"an authority that is not base64": {image + "webhooks: {enabled: true, caBundle: '-----BEGIN'}", "caBundle"},
		"a pull policy of its own":        {"image: {repository: a, pullPolicy: Sometimes}", "pullPolicy"},
		"a node as the server's user":     {image + "rbac: {user: 'system:node:worker-1'}", "user"},
		"a Secret that cannot be read": {
			image + "certificates: {existingSecret: serving}\nwebhooks: {enabled: true}", "webhooks.caBundle is required",
		},
		"webhooks without an address": {
			"server: {enabled: false}\nrbac: {create: false}\nwebhooks: {enabled: true, caBundle: Zm9v}",
			"webhooks.url is required",
		},
		"webhooks without an authority": {
			"server: {enabled: false}\nrbac: {create: false}\nwebhooks: {enabled: true, url: 'https://127.0.0.1:10270'}",
			"webhooks.caBundle is required",
		},
		"rights for nobody": {"server: {enabled: false}", "rbac.user is required"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(c.values); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one about %s", err, c.want)
			}
		})
	}
}

// The chart makes the same decisions as the manifests in deploy.
func TestChartAgreesWithTheManifests(t *testing.T) {
	objects := rendered(t, image+"webhooks: {enabled: true, extendedResourceToleration: true, caBundle: Zm9v}")
	restriction, tolerations := webhooks(t, "service")
	configured := map[string]*admissionregistrationv1.MutatingWebhook{}
	for _, o := range objects {
		if c, ok := o.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
			configured[c.Name] = &c.Webhooks[0]
		}
	}
	for name, want := range map[string]*admissionregistrationv1.MutatingWebhook{
		"shop-node-authorizer": restriction, "shop-node-authorizer-tolerations": tolerations,
	} {
		got := configured[name]
		if got == nil {
			t.Fatalf("configurations are %v, want %s", configured, name)
		}
		if *got.ClientConfig.Service.Path != *want.ClientConfig.Service.Path {
			t.Errorf("%s: the path is %s", name, *got.ClientConfig.Service.Path)
		}
		if got.ClientConfig = want.ClientConfig; !reflect.DeepEqual(got, want) {
			t.Errorf("%s differs", name)
		}
	}
	role := only[*rbacv1.ClusterRole](t, built(t, "rbac"))
	if got := only[*rbacv1.ClusterRole](t, objects); !reflect.DeepEqual(got.Rules, role.Rules) {
		t.Errorf("the rights differ: %v", got.Rules)
	}
	want := only[*appsv1.Deployment](t, built(t, "service"))
	got := only[*appsv1.Deployment](t, objects)
	checkDeployment(t, got)
	checkSelectors(t, got, only[*corev1.Service](t, objects), only[*policyv1.PodDisruptionBudget](t, objects))
	if !reflect.DeepEqual(podOf(got), podOf(want)) {
		t.Errorf("the pods differ:\n%v\n%v", podOf(got), podOf(want))
	}
	if !reflect.DeepEqual(got.Spec.Strategy, want.Spec.Strategy) {
		t.Errorf("the strategies differ: %v", got.Spec.Strategy)
	}
}

// podOf omits names that depend on the release.
func podOf(d *appsv1.Deployment) *corev1.PodSpec {
	pod := d.Spec.Template.Spec.DeepCopy()
	pod.ServiceAccountName, pod.Affinity = "", nil
	pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy = "", ""
	for i := range pod.Volumes {
		if source := &pod.Volumes[i]; source.ConfigMap != nil {
			source.ConfigMap.Name = ""
		} else {
			source.Secret.SecretName = ""
		}
	}
	return pod
}

func TestChartOfAChain(t *testing.T) {
	objects := rendered(t, image+`
server:
  config: {authorization: {mode: Chain}}
  authorizationConfiguration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: AuthorizationConfiguration
    authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]
`)
	files := only[*corev1.ConfigMap](t, objects).Data
	if _, err := chain.Parse([]byte(files["authorization.yaml"])); err != nil {
		t.Error(err)
	}
	config, err := v1alpha1.Parse([]byte(files["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if config.Authorization.Mode != v1alpha1.ChainMode || !strings.HasSuffix(config.Authorization.ConfigFile, "/authorization.yaml") {
		t.Errorf("authorization is %v", config.Authorization)
	}
	want := slices.Concat(granted(only[*rbacv1.ClusterRole](t, built(t, "rbac"))), granted(only[*rbacv1.ClusterRole](t, built(t, "chain"))))
	slices.Sort(want)
	if got := granted(only[*rbacv1.ClusterRole](t, objects)); !slices.Equal(got, want) {
		t.Errorf("granted are %v, want %v", got, want)
	}
}

// Helm's certificates let only kube-apiserver and the server trust each other: both are
// signed by the authority in the webhooks.
func TestChartMakesCertificates(t *testing.T) {
	objects := rendered(t, image+"webhooks: {enabled: true}")
	secrets := map[string]*corev1.Secret{}
	for _, o := range objects {
		if s, ok := o.(*corev1.Secret); ok {
			secrets[s.Name] = s
		}
	}
	server, client := secrets["shop-node-authorizer-tls"], secrets["shop-node-authorizer-client"]
	if server == nil || client == nil {
		t.Fatalf("secrets are %v", secrets)
	}
	bundle := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects).Webhooks[0].ClientConfig.CABundle
	if !bytes.Equal(bundle, server.Data["ca.crt"]) || !bytes.Equal(bundle, client.Data["ca.crt"]) {
		t.Error("there is more than one authority")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, name := range []string{"shop-node-authorizer.guards.svc", "127.0.0.1"} {
		if _, err := certificate(t, server).Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	caller := certificate(t, client)
	if _, err := caller.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	config, err := v1alpha1.Parse([]byte(only[*corev1.ConfigMap](t, objects).Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	checkCallers(t, config)
	if names := config.Webhook.AllowedClientNames; !slices.Contains(names, caller.Subject.CommonName) ||
		slices.Contains(names, certificate(t, server).Subject.CommonName) {
		t.Errorf("%v may call, the certificate for kube-apiserver is of %s", names, caller.Subject.CommonName)
	}
}

// certificate returns the certificate of a Secret. Its key must make handshakes cheap.
func certificate(t *testing.T, secret *corev1.Secret) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		t.Fatalf("%s: %v", secret.Name, err)
	}
	if key, ok := pair.PrivateKey.(*ecdsa.PrivateKey); !ok || key.Curve != elliptic.P256() {
		t.Errorf("%s has a key of type %T, want one of P-256", secret.Name, pair.PrivateKey)
	}
	return pair.Leaf
}

func TestChartMonitoring(t *testing.T) {
	files, err := render(image + "podMonitor: {enabled: true}\nprometheusRule: {enabled: true, labels: {release: " +
		"prometheus}}\ndashboard: {enabled: true}")
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string]string{}
	for document := range strings.SplitSeq(files["monitoring.yaml"], "\n---\n") {
		var object struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		documents[object.Kind] = document
	}
	var rule struct {
		Spec any `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(documents["PrometheusRule"]), &rule); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(rule.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := parsedRules(string(spec))
	if len(errs) > 0 || len(groups.Groups) == 0 {
		t.Error(errs)
	}
	var dashboard corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(documents["ConfigMap"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(dashboard.Data["node-authorizer.json"]); got != strings.TrimSpace(read(t, chartFolder,
		"files/dashboard.json")) {
		t.Error("the dashboard is not that of the chart's files")
	}
	var monitor struct {
		Spec struct {
			PodMetricsEndpoints []struct {
				Port string `json:"port"`
			} `json:"podMetricsEndpoints"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(documents["PodMonitor"]), &monitor); err != nil {
		t.Fatal(err)
	}
	ports := only[*appsv1.Deployment](t, rendered(t, image)).Spec.Template.Spec.Containers[0].Ports
	for _, endpoint := range monitor.Spec.PodMetricsEndpoints {
		if !slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == endpoint.Port }) {
			t.Errorf("the pods have no port %s", endpoint.Port)
		}
	}
}

func TestChartNotes(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"before the webhooks": {image, "--set webhooks.enabled=true"},
		"with the webhooks":   {image + "webhooks: {enabled: true}", "kubectl delete mutatingwebhookconfiguration shop-node-authorizer"},
		"the certificate":     {image, `get secret shop-node-authorizer-client -o go-template="{{index .data \"$file\" | base64decode}}"`},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := render(c.values)
			if err != nil {
				t.Fatal(err)
			}
			if notes := files["NOTES.txt"]; !strings.Contains(notes, c.want) {
				t.Errorf("the notes lack %q:\n%s", c.want, notes)
			}
		})
	}
}
