package localplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestMachine starts a node that manages its certificates like a machine's kubelet. They
// are valid for 40 seconds, and start five minutes before they are issued, so they are
// renewed repeatedly.
func TestMachine(t *testing.T) {
	plane := startPlane(t, Options{
		VerifyKubelets: true,
		ExtraArgs:      map[Component][]string{ControllerManager: {"--cluster-signing-duration=40s"}},
	})
	approving, stop := context.WithCancel(t.Context())
	approved := make(chan error, 1)
	go func() { approved <- approveServing(approving, plane.client) }()
	t.Cleanup(func() {
		stop()
		if err := <-approved; err != nil {
			t.Error(err)
		}
	})

	const address = "127.8.0.1"
	node := addNode(t, plane, "machine-1", NodeOptions{Machine: &MachineOptions{Address: address}})
	if _, err := dial(t, plane, node); err == nil {
		t.Error("it serves before it has addresses")
	}
	err := node.SetAddresses(t.Context(), corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	if err != nil {
		t.Fatal(err)
	}
	object, err := plane.client.CoreV1().Nodes().Get(t.Context(), "machine-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, taint := range object.Spec.Taints {
		if taint.Key == uninitialized {
			t.Errorf("it has the taint %s", taint.Key)
		}
	}
	var first *x509.Certificate
	eventually(t, "it serves with a certificate of the cluster's", func(context.Context) error {
		var err error
		first, err = dial(t, plane, node)
		return err
	})
	t.Run("kube-apiserver reads logs from it", func(t *testing.T) { readLog(t, plane, node) })
	t.Run("its certificates are renewed", func(t *testing.T) {
		var client *x509.Certificate
		eventually(t, "a client certificate", func(context.Context) (err error) {
			client, err = clientCertificate(node) // while the kubelet replaces the link to it, there is no file
			return err
		})
		eventually(t, "another serving certificate", func(context.Context) error {
			now, err := dial(t, plane, node)
			if err == nil && now.Equal(first) {
				err = errors.New("it is the first one")
			}
			return err
		})
		eventually(t, "another client certificate", func(context.Context) error {
			now, err := clientCertificate(node)
			if err == nil && now.Equal(client) {
				err = errors.New("it is the first one")
			}
			return err
		})
	})
}

// readLog reads the log of a pod through kube-apiserver and the kubelet. The kubelet
// answers that there is none, because the container runtime is fake.
func readLog(t *testing.T, plane *Plane, node *Node) {
	pods := plane.client.CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "clock"},
		Spec: corev1.PodSpec{
			NodeName:   node.Name(),
			Containers: []corev1.Container{{Name: "clock", Image: "registry.example.com/clock:1.0"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod runs", func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "clock", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	text, err := pods.GetLogs("clock", &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(text), "log file") {
		t.Errorf("kube-apiserver gets %q (%v)", text, err)
	}
}

// dial connects to the kubelet's port and returns its certificate, which must be signed
// by the cluster's authority and valid for the address.
func dial(t *testing.T, plane *Plane, node *Node) (*x509.Certificate, error) {
	t.Helper()
	authority, err := os.ReadFile(plane.CAFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	connection, err := tls.Dial("tcp", node.ServingAddress(), &tls.Config{RootCAs: roots})
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0], nil
}

func clientCertificate(node *Node) (*x509.Certificate, error) {
	config, err := node.Config()
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
	if err != nil {
		return nil, err
	}
	return pair.Leaf, nil
}

// approveServing approves every request for a serving certificate until the
// context ends.
func approveServing(ctx context.Context, client kubernetes.Interface) error {
	requests := client.CertificatesV1().CertificateSigningRequests()
	err := poll(ctx, func(ctx context.Context) error {
		list, err := requests.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, request := range list.Items {
			if request.Spec.SignerName != certificatesv1.KubeletServingSignerName || len(request.Status.Conditions) > 0 {
				continue
			}
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
			}}
			if _, err := requests.UpdateApproval(ctx, request.Name, &request, metav1.UpdateOptions{}); err != nil &&
				!apierrors.IsConflict(err) {
				return final{err}
			}
		}
		return errors.New("waiting for more requests")
	})
	if ctx.Err() != nil || strings.Contains(err.Error(), context.Canceled.Error()) {
		return nil
	}
	return err
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := withStartTimeout(t.Context())
	defer cancel()
	if err := poll(ctx, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
