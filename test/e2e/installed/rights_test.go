package installed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/served"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// service is the bootstrap service with the rights that deploy/bootstrap gives.
type service struct {
	program, address, metrics, dir string
}

// startService builds the server and starts it as the service account.
func startService(t *testing.T) *service {
	t.Helper()
	s := &service{dir: t.TempDir(), address: takeAddress(t), metrics: takeAddress(t)}
	s.program = filepath.Join(s.dir, "node-authorizer")
	if err := served.Build(t.Context(), root, s.program); err != nil {
		t.Fatal(err)
	}
	certificate, key, err := plane.ServingCertificate("bootstrap", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	config, err := serviceConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := plane.TokenKubeconfig(account, config.BearerToken)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
cluster: {kubeconfig: %s}
webhook: {address: ""}
metrics: {address: %s}
bootstrap:
  address: %s
  certificateFile: %s
  keyFile: %s
  attestor: alwaysallow
  acceptAlwaysAllow: true
  reattestation: Always
approver: {enabled: true}
`, kubeconfig, s.metrics, s.address, certificate, key)
	path := filepath.Join(s.dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := plane.AddProgram(t.Context(), "bootstrap", localplane.ProgramOptions{
		Path: s.program, Args: []string{"server", "--config=" + path}, Ready: s.ready,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := program.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func takeAddress(t *testing.T) string {
	t.Helper()
	port, err := plane.TakePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func (s *service) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.metrics+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// join runs the client as a machine does, and returns the kubeconfig.
func (s *service) join(t *testing.T, node, file string) string {
	t.Helper()
	path := filepath.Join(s.dir, file)
	command := exec.CommandContext(t.Context(), s.program, "client", "--authorizer=alwaysallow", "--node-name="+node,
		"--node-url=https://"+s.address, "--kubeapi-url="+plane.Server(), "--tls-client-ca="+plane.CAFile(), "--kubeconfig="+path)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return path
}

// A machine joins, and everything that the service does for it, it may do; and
// it may do nothing that it does not do.
func TestRightsAreThoseThatTheServiceUses(t *testing.T) {
	s := startService(t)
	const name = "joiner-1"
	node, err := plane.AddNode(t.Context(), name, localplane.NodeOptions{
		BootstrapKubeconfig: s.join(t, name, "bootstrap-kubeconfig"),
		Machine:             &localplane.MachineOptions{Address: "127.0.0.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := node.SetAddresses(t.Context(), corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	waitForPhase(t, "alwaysallow-"+name, v1alpha1.Registered)
	_, admin := clients(t)
	eventually(t, "the serving certificate is approved", func() (bool, error) {
		requests, err := admin.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range requests.Items {
			request := &requests.Items[i]
			if request.Spec.Username == "system:node:"+name && len(request.Status.Certificate) > 0 {
				return true, nil
			}
		}
		return false, nil
	})
	// Once more, which the policy of this test allows.
	s.join(t, name, "second-kubeconfig")

	var used []string
	want := grantedToService(t)
	eventually(t, "the leader has renewed its lease", func() (bool, error) {
		var err error
		used, err = usedByService()
		return slices.Contains(used, "update leases.coordination.k8s.io kube-system/node-authorizer-approver"), err
	})
	if !slices.Equal(used, want) {
		t.Errorf("used are\n%s\ngranted are\n%s", strings.Join(used, "\n"), strings.Join(want, "\n"))
	}
}

func waitForPhase(t *testing.T, entry string, phase v1alpha1.Phase) {
	t.Helper()
	eventually(t, entry+" is "+string(phase), func() (bool, error) {
		object, err := ledger(t).Get(t.Context(), entry, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		got, _, err := unstructured.NestedString(object.Object, "status", "phase")
		return got == string(phase), err
	})
}

// usedByService are the rights that kube-apiserver checked for the server's own
// requests, as grantedToService has them.
func usedByService() ([]string, error) {
	events, err := audited.Events(0)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for i := range events {
		e := &events[i]
		if e.User.Username != accountUser || !strings.HasPrefix(e.UserAgent, "node-authorizer/") || e.ObjectRef == nil {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		if e.ObjectRef.APIGroup != "" {
			resource += "." + e.ObjectRef.APIGroup
		}
		right := e.Verb + " " + resource
		if e.ObjectRef.Namespace != "" {
			right += " " + e.ObjectRef.Namespace + "/"
			if e.Verb != "create" {
				right += e.ObjectRef.Name
			}
		}
		used[right] = true
		if what, watched := strings.CutPrefix(right, "watch "); watched {
			used["list "+what] = true // where an API server cannot stream what there is
		}
	}
	return slices.Sorted(maps.Keys(used)), nil
}

// grantedToService are the rights in the manifests: "get nodes", or
// "create secrets kube-system/", with the name where there is one. The right to approve for a signer is left out: it is
// checked in addition to that of updating the approval. So is the one by which the
// policy knows the service, which nobody uses.
func grantedToService(t *testing.T) []string {
	t.Helper()
	objects, err := manifests.Read(filepath.Join(manifestDir, "cluster/role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for _, o := range objects {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			granted = append(granted, rightsOf(&rule, role.Namespace)...)
		}
	}
	slices.Sort(granted)
	return slices.Compact(granted) // the service and the approver share some
}

func rightsOf(rule *rbacv1.PolicyRule, namespace string) (rights []string) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if resource == "signers" || resource == "bootstraptokens" {
				continue
			}
			if group != "" {
				resource += "." + group
			}
			for _, verb := range rule.Verbs {
				for _, name := range names {
					right := verb + " " + resource
					if namespace != "" {
						right += " " + namespace + "/" + name
					}
					rights = append(rights, right)
				}
			}
		}
	}
	return rights
}

// What kube-controller-manager asks before it approves: nobody here lets a token
// of ours, or a node, approve itself.
func TestNobodyElseApproves(t *testing.T) {
	machine := rest.ImpersonationConfig{UserName: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", tokenGroup, "system:authenticated"}}
	node := rest.ImpersonationConfig{UserName: "system:node:worker-1", Groups: []string{"system:nodes", "system:authenticated"}}
	for _, c := range []struct {
		who         rest.ImpersonationConfig
		subresource string
		want        bool
	}{
		{machine, "", true}, // it may ask
		{machine, "nodeclient", false},
		{machine, "selfnodeclient", false},
		{node, "nodeclient", false},
		{node, "selfnodeclient", false},
		{node, "selfnodeserver", true}, // the approver asks
	} {
		if got := mayCreateRequests(t, c.who, c.subresource); got != c.want {
			t.Errorf("%s may create certificatesigningrequests/%s: %v", c.who.UserName, c.subresource, got)
		}
	}
}
