package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	webhookadmission "k8s.io/apiserver/pkg/admission/plugin/webhook/config"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
)

// apiserverFolder is the folder of kube-apiserver's files.
const apiserverFolder = "/etc/kubernetes/node-authorizer/apiserver"

// authorization loads and validates a configuration as kube-apiserver does.
func authorization(t *testing.T, document string) *apiserverapi.AuthorizationConfiguration {
	t.Helper()
	document = strings.ReplaceAll(document, apiserverFolder, installed(t, "static-pod/apiserver"))
	config, err := load.LoadFromData([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	types := sets.New("Node", "RBAC", "Webhook")
	if errs := validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, config, types,
		sets.New("Webhook")); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return config
}

// installed returns a folder with the files of deploy and the certificates, as an
// administrator makes it.
func installed(t *testing.T, folder string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(deployFolder, folder))); err != nil {
		t.Fatal(err)
	}
	certificate, key := keyPair(t)
	for _, name := range []string{"ca.crt", "cluster-ca.crt", "client.crt"} {
		write(t, filepath.Join(dir, name), certificate)
	}
	write(t, filepath.Join(dir, "client.key"), key)
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keyPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

func TestAuthorizationConfiguration(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			document := read(t, deployFolder, form, "apiserver/authorization.yaml")
			config := authorization(t, document)
			if len(config.Authorizers) != 2 || config.Authorizers[0].Webhook == nil || config.Authorizers[1].Type != "RBAC" {
				t.Fatalf("authorizers are %v, want ours and RBAC", config.Authorizers)
			}
			webhook := config.Authorizers[0].Webhook
			if webhook.FailurePolicy != apiserverapi.FailurePolicyNoOpinion {
				t.Errorf("failurePolicy is %s", webhook.FailurePolicy)
			}
			// Before Kubernetes 1.34, this is the only way to disable caching of answers.
			if webhook.AuthorizedTTL.Duration > time.Millisecond || webhook.UnauthorizedTTL.Duration > time.Millisecond {
				t.Error("answers are cached")
			}
			if webhook.Timeout.Duration > 5*time.Second {
				t.Errorf("the timeout is %s, which a node's lease cannot wait for", webhook.Timeout)
			}
			authorization(t, strings.Replace(document, "apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", 1))
			for _, field := range []string{"cacheAuthorizedRequests", "cacheUnauthorizedRequests"} {
				if strings.Contains(document, field+":") {
					t.Errorf("%s is not known before Kubernetes 1.34", field)
				}
			}
		})
	}
}

func TestOnlyNodesAreSentToTheAuthorizer(t *testing.T) {
	for _, form := range forms {
		config := authorization(t, read(t, deployFolder, form, "apiserver/authorization.yaml"))
		matcher, errs := validation.ValidateAndCompileMatchConditions(authorizationcel.NewDefaultCompiler(),
			config.Authorizers[0].Webhook.MatchConditions)
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		for _, c := range []struct {
			user   string
			groups []string
			want   bool
		}{
			{"system:node:worker-1", []string{"system:nodes", "system:authenticated"}, true},
			{"system:node:", []string{"system:nodes"}, true}, // has a reason of its own
			{"system:node:worker-1", []string{"system:authenticated"}, false},
			{"alice", []string{"system:nodes"}, false},
			{"system:node-authorizer", []string{"system:nodes"}, false},
			{"system:kube-scheduler", nil, false},
		} {
			for _, spec := range []authorizationv1.SubjectAccessReviewSpec{
				{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}},
				{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/healthz"}},
			} {
				spec.User, spec.Groups = c.user, c.groups
				got, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec})
				if err != nil || got != c.want {
					t.Errorf("%s: user %q of %v is sent: %v, %v", form, c.user, c.groups, got, err)
				}
			}
		}
	}
}

// Package chain accepts the chain of the server.
func TestChainConfiguration(t *testing.T) {
	document := read(t, deployFolder, "chain/authorization.yaml")
	authorization(t, document)
	config, err := chain.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if !config.Asks(chain.NameNode) || !config.Asks(chain.NameRBAC) {
		t.Error("the chain does not ask Node and RBAC")
	}
}

// kube-apiserver presents its certificate to /authorize, over TLS with a name in the
// server's certificate.
func TestAuthorizerKubeconfigs(t *testing.T) {
	for form, want := range map[string]struct{ host, name string }{
		"static-pod": {"https://127.0.0.1:10270/authorize", ""},
		"service":    {"https://10.96.0.17/authorize", "node-authorizer.node-authorizer.svc"},
	} {
		t.Run(form, func(t *testing.T) {
			path := filepath.Join(installed(t, form+"/apiserver"), "authorize.kubeconfig")
			write(t, path, filledIn.Replace(read(t, path)))
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

// checkCredentials checks that the certificates are in the folder of the kubeconfig.
func checkCredentials(t *testing.T, config *rest.Config) {
	t.Helper()
	if config.CertFile == "" || config.KeyFile == "" {
		t.Error("no client certificate is shown")
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		t.Error(err)
	}
}

func TestServerKubeconfig(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(installed(t, "static-pod/server"), "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	// kubeadm's certificate of kube-apiserver has this name, but not 127.0.0.1.
	if config.ServerName != "kubernetes" || config.CAFile == "" {
		t.Errorf("kube-apiserver is reached as %q with the authority %q", config.ServerName, config.CAFile)
	}
	checkCredentials(t, config)
}

// The admission plugins find the certificate by the address in the webhook
// configurations.
func TestAdmissionConfiguration(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			dir := installed(t, form+"/apiserver")
			document := strings.ReplaceAll(read(t, dir, "admission.yaml"), apiserverFolder, dir)
			plugins := admissionPlugins(t, document)
			if len(plugins) != 1 {
				t.Errorf("plugins are %v", plugins)
			}
			config, err := webhookadmission.LoadConfig(strings.NewReader(plugins["MutatingAdmissionWebhook"]))
			if err != nil {
				t.Fatal(err)
			}
			checkCredentials(t, admissionClient(t, form, config.KubeConfigFile))
		})
	}
}

// admissionPlugins returns the configurations of the plugins by name.
func admissionPlugins(t *testing.T, document string) map[string]string {
	t.Helper()
	s := runtime.NewScheme()
	install.Install(s)
	object, err := runtime.Decode(serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer(), []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	plugins := map[string]string{}
	for _, plugin := range object.(*apiserverv1.AdmissionConfiguration).Plugins {
		plugins[plugin.Name] = string(plugin.Configuration.Raw)
	}
	return plugins
}

// admissionClient returns the client configuration for a webhook.
func admissionClient(t *testing.T, form, kubeconfig string) *rest.Config {
	t.Helper()
	resolver, err := webhookutil.NewDefaultAuthenticationInfoResolver(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	restriction, tolerations := webhooks(t, form)
	if service := restriction.ClientConfig.Service; service != nil {
		if *service.Path != "/admit" || *tolerations.ClientConfig.Service.Path != "/mutate" {
			t.Errorf("paths are %s and %s", *service.Path, *tolerations.ClientConfig.Service.Path)
		}
		config, err := resolver.ClientConfigForService(service.Name, service.Namespace, int(*service.Port))
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	address := parse(t, *restriction.ClientConfig.URL)
	if address.Path != "/admit" || parse(t, *tolerations.ClientConfig.URL).Path != "/mutate" {
		t.Errorf("urls are %s and %s", address, *tolerations.ClientConfig.URL)
	}
	if _, _, err := net.SplitHostPort(address.Host); err != nil {
		t.Error(err)
	}
	config, err := resolver.ClientConfigFor(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
