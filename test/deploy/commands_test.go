package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	webhookmanifest "k8s.io/apiserver/pkg/admission/plugin/webhook/manifest/loader"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// host is a control plane node with an administrator's folder and a checkout, to which
// paths of the pages are mapped.
type host struct{ dir string }

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t.TempDir()}
	for _, dir := range []string{"root", "etc/kubernetes/manifests"} {
		if err := os.MkdirAll(filepath.Join(h.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, h.path("etc/kubernetes/manifests/kube-apiserver.yaml"), read(t, "testdata/kube-apiserver.yaml"))
	if err := os.CopyFS(h.path("deploy"), os.DirFS(deployFolder)); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

// run runs the only block of commands of the pages that contains a text, without commands
// that need a cluster or root.
func (h *host) run(t *testing.T, containing string) {
	t.Helper()
	all := slices.DeleteFunc(blocks(t), func(b block) bool {
		return b.language != "sh" || !strings.Contains(b.text, containing)
	})
	if len(all) != 1 {
		t.Fatalf("%d blocks of commands contain %q, want 1", len(all), containing)
	}
	script := strings.NewReplacer("/etc/kubernetes", h.path("etc/kubernetes"), "/root", h.path("root"), "chown ", ": ").Replace(all[0].text)
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	shell.Dir = h.dir
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, output)
	}
}

// install makes the certificates and files that need no cluster.
func (h *host) install(t *testing.T) {
	t.Helper()
	h.run(t, "-subj /CN=node-authorizer-ca")
	for _, name := range []string{"client.crt", "client.key", "cluster-ca.crt"} {
		write(t, h.path("pki/"+name), read(t, h.path("pki/apiserver-client.crt")))
	}
	h.run(t, "mkdir -p host/server host/apiserver")
}

func TestCommandsThatMakeCertificates(t *testing.T) {
	h := newHost(t)
	h.run(t, "-subj /CN=node-authorizer-ca")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(read(t, h.path("pki/ca.crt"))))
	for _, c := range []struct {
		name, commonName string
		usage            x509.ExtKeyUsage
		hosts            []string
	}{
		{"tls", "node-authorizer", x509.ExtKeyUsageServerAuth, []string{"127.0.0.1", "node-authorizer.node-authorizer.svc"}},
		{"apiserver-client", callerName, x509.ExtKeyUsageClientAuth, []string{""}},
	} {
		pair, err := tls.LoadX509KeyPair(h.path("pki/"+c.name+".crt"), h.path("pki/"+c.name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		if pair.Leaf.Subject.CommonName != c.commonName || !slices.Equal(pair.Leaf.ExtKeyUsage, []x509.ExtKeyUsage{c.usage}) ||
			pair.Leaf.IsCA {
			t.Errorf("%s.crt is of %s for %v, authority: %v", c.name, pair.Leaf.Subject.CommonName, pair.Leaf.ExtKeyUsage, pair.Leaf.IsCA)
		}
		for _, host := range c.hosts {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{c.usage},
			}); err != nil {
				t.Errorf("%s.crt: %v", c.name, err)
			}
		}
	}
}

// kubeAPIServer returns the container of the manifest on the host.
func (h *host) kubeAPIServer(t *testing.T) *corev1.PodSpec {
	t.Helper()
	pod := only[*corev1.Pod](t, mustDecode(t, read(t, h.path("etc/kubernetes/manifests/kube-apiserver.yaml"))))
	return &pod.Spec
}

func (h *host) authorizers(t *testing.T) (types []string) {
	t.Helper()
	for _, a := range authorization(t,
		strings.ReplaceAll(read(t, h.path("etc/kubernetes/node-authorizer/apiserver/authorization.yaml")), h.path(""), "/")).Authorizers {
		types = append(types, string(a.Type))
	}
	return types
}

const (
	webhookType = string(apiserverapi.TypeWebhook)
	nodeType    = "Node"
	rbacType    = "RBAC"
)

// The commands of the kubeadm part, including the way back.
func TestCommandsThatChangeAControlPlaneNode(t *testing.T) {
	h := newHost(t)
	h.install(t)
	h.run(t, "- type: Node\\n  name: node\\n&|' host/apiserver/authorization.yaml")
	h.run(t, "cp host/node-authorizer.yaml /etc/kubernetes/manifests/")
	h.run(t, "kube-apiserver.yaml.before\nfolder=")

	folder := h.path("etc/kubernetes/node-authorizer/apiserver")
	pod := h.kubeAPIServer(t)
	flags := sets.New(pod.Containers[0].Command...)
	if !flags.HasAll("--authorization-config="+folder+"/authorization.yaml", "--admission-control-config-file="+folder+"/admission.yaml",
		"--enable-admission-plugins=NodeRestriction") ||
		flags.Has("--authorization-mode=Node,RBAC") {
		t.Errorf("flags of kube-apiserver are %v", pod.Containers[0].Command)
	}
	mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts,
		func(m corev1.VolumeMount) bool { return m.MountPath == folder && m.ReadOnly })
	if !mounted || len(pod.Volumes) != 2 || len(pod.Containers[0].VolumeMounts) != 2 {
		t.Errorf("volumes of kube-apiserver are %v", pod.Volumes)
	}
	if got := h.authorizers(t); !slices.Equal(got, []string{webhookType, nodeType, rbacType}) {
		t.Errorf("authorizers are %v at first", got)
	}

	h.run(t, "sed -i '/^- type: Node$/,")
	if got := h.authorizers(t); !slices.Equal(got, []string{webhookType, rbacType}) {
		t.Errorf("authorizers are %v when switched over", got)
	}
	if flags := sets.New(h.kubeAPIServer(t).Containers[0].Command...); flags.Has("--enable-admission-plugins=NodeRestriction") {
		t.Error("NodeRestriction is on when switched over")
	}

	h.run(t, "--enable-admission-plugins=NodeRestriction|'")
	if got := h.authorizers(t); !slices.Equal(got, []string{webhookType, nodeType, rbacType}) {
		t.Errorf("authorizers are %v on the way back", got)
	}
	if flags := sets.New(h.kubeAPIServer(t).Containers[0].Command...); !flags.Has("--enable-admission-plugins=NodeRestriction") {
		t.Error("NodeRestriction is off on the way back")
	}
}

// The folders have exactly the files that the static pod's files refer to.
func TestCommandsThatCopyFiles(t *testing.T) {
	h := newHost(t)
	h.install(t)
	for folder, want := range map[string][]string{
		"server": {"ca.crt", "client.crt", "client.key", "cluster-ca.crt", "config.yaml", "kubeconfig", "tls.crt", "tls.key"},
		"apiserver": {
			"admission.kubeconfig", "admission.yaml", "authorization.yaml", "authorize.kubeconfig", "ca.crt", "client.crt",
			"client.key",
		},
	} {
		entries, err := os.ReadDir(h.path("host/" + folder))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", folder, got, want)
		}
	}
	pod := only[*corev1.Pod](t, mustDecode(t, read(t, h.path("host/node-authorizer.yaml"))))
	if image := pod.Spec.Containers[0].Image; strings.Contains(image, "IMAGE") {
		t.Errorf("the image is %s", image)
	}
}

// Kubernetes 1.37 can also read webhooks from a file.
func TestCommandsThatMakeAWebhookOfAFile(t *testing.T) {
	h := newHost(t)
	h.install(t)
	h.run(t, ".static.k8s.io|'")
	accept := func(object runtime.Object) ([]*admissionregistrationv1.MutatingWebhookConfiguration, error) {
		return []*admissionregistrationv1.MutatingWebhookConfiguration{object.(*admissionregistrationv1.MutatingWebhookConfiguration)}, nil
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	loaded, _, err := webhookmanifest.LoadManifests(h.path("etc/kubernetes/node-authorizer/apiserver/webhooks"), decoder, accept)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) != 1 || len(loaded[0].Webhooks) != 1 {
		t.Errorf("loaded are %v", loaded)
	}
}

// The serving and client certificates for machines.
func TestCommandsThatMakeCertificatesForMachines(t *testing.T) {
	h := newHost(t)
	h.run(t, "-subj /CN=node-authorizer-bootstrap-ca")
	h.run(t, "-subj /CN=node-authorizer-client")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(read(t, h.path("pki/ca.crt"))))
	for name, c := range map[string]struct {
		host  string
		usage x509.ExtKeyUsage
	}{
		"tls": {"bootstrap.example.com", x509.ExtKeyUsageServerAuth}, "client": {"", x509.ExtKeyUsageClientAuth},
	} {
		pair, err := tls.LoadX509KeyPair(h.path("pki/"+name+".crt"), h.path("pki/"+name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots: roots, DNSName: c.host, KeyUsages: []x509.ExtKeyUsage{c.usage},
		}); err != nil || pair.Leaf.IsCA {
			t.Errorf("%s.crt: %v, authority: %v", name, err, pair.Leaf.IsCA)
		}
		if name == "client" && pair.Leaf.Subject.CommonName != v1alpha1.Defaults().Bootstrap.ClientCommonName {
			t.Errorf("the service does not know %s", pair.Leaf.Subject.CommonName)
		}
	}
}

func TestCommandsThatFillInTheBootstrapService(t *testing.T) {
	h := newHost(t)
	h.run(t, "sed -i 's|CLUSTER_NAME|")
	config, err := v1alpha1.Parse([]byte(read(t, h.path("deploy/bootstrap/config.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	if config.Bootstrap.AWS.ClusterName != "shop.example.com" {
		t.Errorf("the cluster is %s", config.Bootstrap.AWS.ClusterName)
	}
	d := only[*appsv1.DaemonSet](t, mustDecode(t, read(t, h.path("deploy/bootstrap/daemonset.yaml"))))
	if image := d.Spec.Template.Spec.Containers[0].Image; strings.Contains(image, "IMAGE") {
		t.Errorf("the image is %s", image)
	}
}
