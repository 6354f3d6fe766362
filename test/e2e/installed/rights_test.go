package installed

import (
	"fmt"
	"maps"
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
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// service is the bootstrap service with the rights of deploy/bootstrap.
type service struct {
	*server.Server
	program string
}

// startService builds the server and starts it as the service account.
func startService(t *testing.T) *service {
	t.Helper()
	dir := t.TempDir()
	s := &service{program: filepath.Join(dir, "node-authorizer")}
	if err := server.Build(t.Context(), root, s.program); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.Server, err = server.New(plane, "bootstrap", dir); err != nil {
		t.Fatal(err)
	}
	client, err := serviceConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WriteKubeconfig(plane.Server(), &clientcmdapi.AuthInfo{Token: client.BearerToken}); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteConfig(fmt.Sprintf(serviceServer, s.Kubeconfig(), s.MetricsAddress, s.Address, s.File("tls.crt"),
		s.File("tls.key"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), server.Command{Program: s.program, Ready: s.Ready}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

const serviceServer = `
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
`

// join runs the client as a machine does, and returns the kubeconfig.
func (s *service) join(t *testing.T, node, file string) string {
	t.Helper()
	path := s.File(file)
	command := exec.CommandContext(t.Context(), s.program, "client", "--authorizer=alwaysallow", "--node-name="+node,
		"--node-url=https://"+s.Address, "--kubeapi-url="+plane.Server(), "--tls-client-ca="+plane.CAFile(), "--kubeconfig="+path)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return path
}

// When a machine joins, the service uses exactly the rights that it has.
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
	// A second join, which the policy of this test allows.
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

// usedByService returns the rights that kube-apiserver checked for the server's own
// requests, in the form of grantedToService.
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
			used["list "+what] = true // for API servers without streaming lists
		}
	}
	return slices.Sorted(maps.Keys(used)), nil
}

// grantedToService returns the rights in the manifests: "get nodes", or "create secrets
// kube-system/", with the name if there is one. The right to approve for a signer is left
// out, because it is checked in addition to the right to update the approval. So is the
// right by which the policy identifies the service, because it is never used.
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

// kube-controller-manager checks these rights before it approves. Neither a bootstrap
// token nor a node may have its own request approved.
func TestOnlyTheServiceApproves(t *testing.T) {
	machine := rest.ImpersonationConfig{
		UserName: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", tokenGroup, "system:authenticated"},
	}
	node := rest.ImpersonationConfig{UserName: "system:node:worker-1", Groups: []string{"system:nodes", "system:authenticated"}}
	for _, c := range []struct {
		who         rest.ImpersonationConfig
		subresource string
		want        bool
	}{
		{machine, "", true}, // a machine may create requests
		{machine, "nodeclient", false},
		{machine, "selfnodeclient", false},
		{node, "nodeclient", false},
		{node, "selfnodeclient", false},
		{node, "selfnodeserver", true}, // checked by the approver
	} {
		if got := mayCreateRequests(t, c.who, c.subresource); got != c.want {
			t.Errorf("%s may create certificatesigningrequests/%s: %v", c.who.UserName, c.subresource, got)
		}
	}
}
