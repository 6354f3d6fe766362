package authentication

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// The roles of the cluster's instances: three with common mistakes in their mappings, and
// one with a correct mapping.
const (
	notANode     = "not-a-node"
	everyonesKey = "everyones-key"
	masterNode   = "master-node"
	rightNode    = "right-node"
)

// mapRoles returns the text of aws-auth for all roles.
func mapRoles() string {
	entry := func(role, username string, groups ...string) string {
		return fmt.Sprintf("- rolearn: %s\n  username: %s\n  groups: [%s]\n", RoleARN(role), username, strings.Join(groups, ", "))
	}
	const node = "system:node:{{EC2PrivateDNSName}}"
	return entry(notANode, "WorkerNodeRole", "system:bootstrappers", "system:nodes") +
		entry(everyonesKey, "WorkerNodeRole", "system:masters") +
		entry(masterNode, node, "system:masters") +
		entry(rightNode, node, "system:bootstrappers", "system:nodes")
}

// TestOutcomesOfMappings starts a kubelet for each mapping, and compares whether its
// node registers and becomes Ready with what the doctor predicts for its role.
func TestOutcomesOfMappings(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if err := blue.Map(ctx, map[string]string{"mapRoles": mapRoles()}); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]*Node{}
	for _, role := range []string{notANode, everyonesKey, masterNode, rightNode} {
		node, err := blue.Boot(ctx, role)
		if err != nil {
			t.Fatal(err)
		}
		nodes[role] = node
	}
	for _, role := range []string{everyonesKey, masterNode, rightNode} {
		becomesReady(t, nodes[role])
	}
	t.Run("a node that is Ready renews its lease", func(t *testing.T) {
		keepTheirLeases(t, nodes[everyonesKey], nodes[masterNode], nodes[rightNode])
	})
	t.Run("kube-apiserver reads logs of a node with a node's user name", func(t *testing.T) {
		for _, role := range []string{masterNode, rightNode} {
			getsServingCertificate(t, nodes[role])
			readsLogs(t, nodes[role])
		}
	})
	t.Run("a member of system:masters without a node's user name gets no serving certificate", func(t *testing.T) {
		staysPending(t, nodes[everyonesKey])
		readsNoLogs(t, nodes[everyonesKey])
	})
	t.Run("a member of system:nodes without a node's user name cannot register", func(t *testing.T) {
		isRefused(t, nodes[notANode])
	})
	t.Run("the doctor predicts the outcomes", func(t *testing.T) {
		predictions := doctor(t)
		for role, want := range map[string]rolePrediction{
			notANode:     {Registers: "no", Ready: "no", Serving: "no"},
			everyonesKey: {Registers: "yes", Ready: "yes", Serving: "no", ClusterAdmin: true},
			masterNode:   {Registers: "yes", Ready: "yes", Serving: "yes", ClusterAdmin: true},
			rightNode:    {Registers: "yes", Ready: "yes", Serving: "yes", NodeIdentity: true},
		} {
			if got := predictions[RoleARN(role)]; got != want {
				t.Errorf("%s: the doctor predicts %+v, what happened is %+v", role, got, want)
			}
		}
	})
	t.Run("a node whose mapping loses the node name becomes NotReady", func(t *testing.T) {
		if err := blue.Map(ctx,
			map[string]string{
				"mapRoles": strings.ReplaceAll(mapRoles(), "system:node:{{EC2PrivateDNSName}}", "WorkerNodeRole"),
			}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is not Ready any more", func(ctx context.Context) error {
			if nodes[rightNode].IsReady(ctx) == nil {
				return errors.New("it is still Ready")
			}
			return nil
		})
		if err := blue.Map(ctx, map[string]string{"mapRoles": mapRoles()}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is Ready again", nodes[rightNode].IsReady)
	})
}

func eventually(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	if err := await.Until(t.Context(), what, condition); err != nil {
		t.Fatal(err)
	}
}

func becomesReady(t *testing.T, node *Node) {
	t.Helper()
	if err := node.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, node.Name()+" is Ready", node.IsReady)
}

// keepTheirLeases waits until each node has renewed its lease.
func keepTheirLeases(t *testing.T, nodes ...*Node) {
	t.Helper()
	first := map[string]metav1.MicroTime{}
	eventually(t, "leases are renewed", func(ctx context.Context) error {
		var errs []error
		for _, node := range nodes {
			lease, err := blue.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name(), metav1.GetOptions{})
			if err != nil || lease.Spec.RenewTime == nil {
				errs = append(errs, fmt.Errorf("%s has no lease that was renewed: %w", node.Name(), err))
				continue
			}
			seen, known := first[node.Name()]
			if !known {
				first[node.Name()], seen = *lease.Spec.RenewTime, *lease.Spec.RenewTime
			}
			if !seen.Before(lease.Spec.RenewTime) {
				errs = append(errs, fmt.Errorf("that of %s was renewed last at %s", node.Name(), seen))
			}
		}
		return errors.Join(errs...)
	})
}

// servingRequest returns the last request of a node for a serving certificate.
func servingRequest(ctx context.Context, node *Node) (*certificatesv1.CertificateSigningRequest, error) {
	all, err := blue.Client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{
		FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName,
	})
	if err != nil {
		return nil, err
	}
	for _, request := range slices.Backward(all.Items) {
		if subject, err := commonName(request.Spec.Request); err == nil && subject == "system:node:"+node.Name() {
			return &request, nil
		}
	}
	return nil, fmt.Errorf("%s has not asked for a serving certificate", node.Name())
}

func getsServingCertificate(t *testing.T, node *Node) {
	t.Helper()
	eventually(t, node.Name()+" has a serving certificate", func(ctx context.Context) error {
		request, err := servingRequest(ctx, node)
		if err == nil && len(request.Status.Certificate) == 0 {
			err = fmt.Errorf("%s is not signed: %v", request.Name, request.Status.Conditions)
		}
		return err
	})
}

// staysPending checks that a request is still pending when a later one of another node
// has its certificate.
func staysPending(t *testing.T, node *Node) {
	t.Helper()
	var request *certificatesv1.CertificateSigningRequest
	eventually(t, node.Name()+" asks for a serving certificate", func(ctx context.Context) (err error) {
		request, err = servingRequest(ctx, node)
		return err
	})
	later, err := blue.Boot(t.Context(), rightNode)
	if err != nil {
		t.Fatal(err)
	}
	becomesReady(t, later)
	getsServingCertificate(t, later)
	request, err = blue.Client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), request.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(request.Status.Conditions) > 0 || len(request.Status.Certificate) > 0 {
		t.Errorf("%s of %s has the conditions %v", request.Name, request.Spec.Username, request.Status.Conditions)
	}
	if request.Spec.Username != "WorkerNodeRole" {
		t.Errorf("%s was asked for by %s", request.Name, request.Spec.Username)
	}
}

// isRefused waits until the kubelet has tried to register, and checks that there is
// neither a node nor a lease.
func isRefused(t *testing.T, node *Node) {
	t.Helper()
	eventually(t, node.Name()+" has tried to register", func(context.Context) error {
		log, err := node.Log()
		// The kubelet may not create its Node, and logs that it may not read it either.
		refused := strings.Contains(log, "Unable to register node") &&
			strings.Contains(log, `User \"WorkerNodeRole\" cannot get resource \"nodes\"`)
		if err == nil && !refused {
			err = fmt.Errorf("its log has no refusal, and ends with %s", log[max(0, len(log)-2000):])
		}
		return err
	})
	if _, err := blue.Client.CoreV1().Nodes().Get(t.Context(), node.Name(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a node %s: %v", node.Name(), err)
	}
	if _, err := blue.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), node.Name(),
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("%s has a lease: %v", node.Name(), err)
	}
}

// readsLogs lets kube-apiserver read the log of a pod from the kubelet, whose
// certificate it checks.
func readsLogs(t *testing.T, node *Node) {
	t.Helper()
	text, err := podLog(t, node)
	if err != nil || !strings.Contains(text, "log file") {
		t.Errorf("kube-apiserver gets %q from %s (%v)", text, node.Name(), err)
	}
}

func readsNoLogs(t *testing.T, node *Node) {
	t.Helper()
	if text, err := podLog(t, node); err == nil || !strings.Contains(text, "tls: internal error") {
		t.Errorf("kube-apiserver gets %q from %s, which has no certificate (%v)", text, node.Name(), err)
	}
}

func podLog(t *testing.T, node *Node) (string, error) {
	t.Helper()
	pods := blue.Client.CoreV1().Pods(metav1.NamespaceDefault)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "logs-"},
		Spec: corev1.PodSpec{
			NodeName: node.Name(), Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app:1.0"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pod runs on "+node.Name(), func(ctx context.Context) error {
		pod, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	text, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	return string(text), err
}

// rolePrediction is the prediction of the doctor for a role.
type rolePrediction struct {
	Registers, Ready, Serving  string
	NodeIdentity, ClusterAdmin bool
}

// doctor examines the cluster.
func doctor(t *testing.T) map[string]rolePrediction {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, blue.Program, "doctor", "--kubeconfig", blue.AdminKubeconfig(), "-o", "json")
	output, err := command.Output()
	// 1 means findings, 2 that some checks could not be made. Both have a report.
	if failed := new(exec.ExitError); err != nil && (!errors.As(err, &failed) || len(output) == 0) {
		t.Fatalf("%v: %v", command, err)
	}
	type outcome struct{ Value string }
	var report struct {
		Roles []struct {
			ARN                        string
			Registers, Ready, Serving  outcome
			NodeIdentity, ClusterAdmin bool
		}
	}
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatal(err)
	}
	predictions := map[string]rolePrediction{}
	for _, role := range report.Roles {
		predictions[role.ARN] = rolePrediction{
			role.Registers.Value, role.Ready.Value, role.Serving.Value, role.NodeIdentity, role.ClusterAdmin,
		}
	}
	return predictions
}
