package machines

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// TestServingCertificatesOfNodesThatNeverAttested: a node that joined in another way gets its serving
// certificate from the sources in the configuration, and none with a name or an address of others.
func TestServingCertificatesOfNodesThatNeverAttested(t *testing.T) {
	const node, own = "plain-1", "198.51.100.7"
	kubeconfig, err := blue.UserKubeconfig(node, "system:node:"+node, "system:nodes")
	orFatal(t, err)
	kubelet, err := blue.AddNode(t.Context(), node, localplane.NodeOptions{
		BootstrapKubeconfig: kubeconfig, NoWait: true, Machine: &localplane.MachineOptions{Address: "127.31.250.1"},
	})
	orFatal(t, err)
	t.Cleanup(func() { orFatal(t, kubelet.Stop()) })
	approveByHand(t, "system:node:"+node)
	orFatal(t, kubelet.WaitReady(t.Context()))
	orFatal(t, kubelet.SetAddresses(t.Context(),
		corev1.NodeAddress{Type: corev1.NodeHostName, Address: node}, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: own}))

	for _, name := range []string{node, own} {
		eventually(t, "the kubelet serves as "+name, func(context.Context) error {
			_, err := served(blue, &Machine{Node: kubelet}, name)
			return err
		})
	}

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	orFatal(t, err)
	named := func(name string) request {
		r := servingRequest(node, own)
		r.dnsNames = []string{name}
		return r
	}
	for name, r := range map[string]request{
		"another address":                 servingRequest(node, own, "198.51.100.8"),
		"an address outside the networks": servingRequest(node, "203.0.113.7"),
		"another name":                    named("plain-2"),
		"a name of the cluster":           named("kubernetes.default.svc"),
	} {
		t.Run(name, func(t *testing.T) {
			before := leftPending(t)
			created := submit(t, config, r, newKey(t))
			eventually(t, "the request is left pending", func(context.Context) error {
				if now := leftPending(t); now != before+1 {
					return fmt.Errorf("%d requests are left, want %d", now, before+1)
				}
				return nil
			})
			now, err := blue.Client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), created.Name, metav1.GetOptions{})
			orFatal(t, err)
			if len(now.Status.Conditions) > 0 || len(now.Status.Certificate) > 0 {
				t.Errorf("it was decided: %+v", now.Status)
			}
		})
	}
}

// leftPending returns how many requests for serving certificates no source vouched for.
func leftPending(t *testing.T) int {
	t.Helper()
	all := 0
	for _, replica := range blue.Replicas {
		text, err := replica.Metrics(t.Context())
		orFatal(t, err)
		prefix := fmt.Sprintf(`node_authorizer_certificate_requests_total{code=%q,kind="serving",outcome="left"} `, approve.NamesNotVouched)
		for line := range strings.Lines(text) {
			var count int
			if value, found := strings.CutPrefix(line, prefix); found {
				_, err := fmt.Sscan(value, &count)
				orFatal(t, err)
			}
			all += count
		}
	}
	return all
}

// approveByHand approves the next request of a user for a client certificate, as a person does.
func approveByHand(t *testing.T, user string) {
	t.Helper()
	requests := blue.Client.CertificatesV1().CertificateSigningRequests()
	eventually(t, user+" asks for a client certificate", func(ctx context.Context) error {
		list, err := requests.List(ctx, metav1.ListOptions{
			FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientKubeletSignerName,
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			csr := &list.Items[i]
			if csr.Spec.Username != user || len(csr.Status.Conditions) > 0 {
				continue
			}
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByHand"},
			}
			_, err := requests.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
			return err
		}
		return errors.New("it has not asked")
	})
}
