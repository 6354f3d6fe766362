package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

const atOnce = 20

// TestTwentyMachinesBootAtOnce shows the purpose of the service: machines without any
// credential become nodes, each under its own name. Nothing of one machine is valid for
// another.
func TestTwentyMachinesBootAtOnce(t *testing.T) {
	before := len(blue.Replicas[0].APIProxy.Passed()) + len(blue.Replicas[1].APIProxy.Passed())
	var machines []*Machine
	for i := range atOnce {
		machines = append(machines, launch(t, blue, numbered(i+1)))
	}
	var booting errgroup.Group
	for _, machine := range machines {
		booting.Go(func() error { return machine.Boot(t.Context()) })
	}
	orFatal(t, booting.Wait())
	t.Cleanup(func() { stopKubelets(t, machines) })

	t.Run("each is registered under its own name", func(t *testing.T) { eachHasItsNode(t, machines) })
	t.Run("each asked for a client certificate and a serving certificate, which were approved and issued", func(t *testing.T) {
		eachHasItsCertificates(t, machines)
	})
	t.Run("each serves its port under its attested address and name", func(t *testing.T) {
		for _, machine := range machines {
			for _, name := range []string{machine.Address.String(), machine.NodeName()} {
				eventually(t, machine.NodeName()+" serves as "+name, func(context.Context) error {
					_, err := served(blue, machine, name)
					return err
				})
			}
		}
	})
	t.Run("kube-apiserver reads logs from a kubelet whose certificate it checks", func(t *testing.T) { readLog(t, machines[0]) })
	t.Run("a machine that boots again has nothing to do", func(t *testing.T) {
		outcome, err := machines[0].Client(t.Context())
		orFatal(t, err)
		if outcome.Status != 0 || !strings.Contains(outcome.Output, "exists: nothing to do") {
			t.Errorf("the client ended with status %d: %s", outcome.Status, outcome.Output)
		}
		orFatal(t, machines[0].Node.Restart(t.Context()))
	})
	t.Run("each join wrote four times", func(t *testing.T) { joinsWroteFourTimes(t, before) })
	t.Run("the ledger shows the machines", func(t *testing.T) { printsLedger(t) })
	t.Run("the twenty-first replays the evidence of another from its own address", func(t *testing.T) {
		last := launch(t, blue)
		replayed := evidence(t, machines[3])
		for _, replica := range blue.Replicas {
			refused(t, ask(t, last, replica, machines[3].NodeName(), replayed), http.StatusForbidden, aws.WrongSourceAddress)
			refused(t, ask(t, last, replica, last.NodeName(), replayed), http.StatusForbidden, aws.WrongSourceAddress)
		}
		nothingWritten(t, blue, last)
	})
}

// numbered gives a machine a fixed id and address.
func numbered(n int) func(*fakeaws.Instance) {
	return func(instance *fakeaws.Instance) {
		instance.ID = fmt.Sprintf("i-0b00700000000%04x", n)
		instance.Interfaces[0].Private[0] = netip.AddrFrom4([4]byte{127, 31, 100, byte(n)})
	}
}

// eachHasItsNode compares the ledger, the nodes and the cloud.
func eachHasItsNode(t *testing.T, machines []*Machine) {
	nodes, err := blue.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	orFatal(t, err)
	uids := map[string]string{}
	for _, node := range nodes.Items {
		uids[node.Name] = string(node.UID)
		if !isReady(&node) {
			t.Errorf("node %s is not ready", node.Name)
		}
	}
	for _, machine := range machines {
		entry := inPhase(t, blue, machine, v1alpha1.Registered)
		if entry.Spec.NodeName != machine.NodeName() || !slices.Contains(entry.Spec.Addresses, machine.Address.String()) {
			t.Errorf("machine %s at %s has the entry %+v", machine.Instance.ID, machine.Address, entry.Spec)
		}
		if uid := uids[machine.NodeName()]; uid == "" || entry.Status.NodeUID != uid {
			t.Errorf("%s: the ledger says that its node is %q; it is %q", machine.NodeName(), entry.Status.NodeUID, uid)
		}
		if ids := tokensOf(t, blue, machine); !slices.Equal(ids, []string{entry.Spec.TokenID}) && len(ids) != 0 {
			t.Errorf("%s has the tokens %v, the ledger says %s", machine.NodeName(), ids, entry.Spec.TokenID)
		}
	}
}

// eachHasItsCertificates checks the requests of kubelets. A token was used once.
func eachHasItsCertificates(t *testing.T, machines []*Machine) {
	for _, machine := range machines {
		entry, err := blue.Entry(t.Context(), machine)
		orFatal(t, err)
		node := "system:node:" + machine.NodeName()
		for _, want := range []struct {
			signer, requester, reason string
		}{
			{
				certificatesv1.KubeAPIServerClientKubeletSignerName, "system:bootstrap:" + entry.Spec.TokenID,
				string(approve.ClientCertificateApproved),
			},
			{certificatesv1.KubeletServingSignerName, node, string(approve.ServingCertificateApproved)},
		} {
			eventually(t, machine.NodeName()+" has a certificate of "+want.signer, func(ctx context.Context) error {
				requests, err := blue.Client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{
					FieldSelector: "spec.signerName=" + want.signer,
				})
				if err != nil {
					return err
				}
				var reasons []string
				for _, request := range requests.Items {
					if request.Spec.Username != want.requester {
						continue
					}
					if len(request.Status.Conditions) != 1 || len(request.Status.Certificate) == 0 {
						return fmt.Errorf("%s has the conditions %+v", request.Name, request.Status.Conditions)
					}
					reasons = append(reasons, request.Status.Conditions[0].Reason)
				}
				if !slices.Equal(reasons, []string{want.reason}) {
					return fmt.Errorf("%s has requests that were decided %v", want.requester, reasons)
				}
				return nil
			})
		}
	}
}

// readLog asks for the log of a pod. The kubelet answers that there is none, because the
// container runtime is fake.
func readLog(t *testing.T, machine *Machine) {
	pods := blue.Client.CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "clock"},
		Spec: corev1.PodSpec{
			NodeName:   machine.NodeName(),
			Containers: []corev1.Container{{Name: "clock", Image: "registry.example.com/clock:1.0"}},
		},
	}, metav1.CreateOptions{})
	orFatal(t, err)
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

// joinsWroteFourTimes counts the writes of the replicas since a time: for each machine an
// entry, a token, the token's binding, and an approval. The binding and the later phases are
// in the entry's status. Serving certificates are not part of the join: a kubelet requests
// another one when the addresses of its node change, and each request is approved once.
func joinsWroteFourTimes(t *testing.T, before int) {
	passed := slices.Concat(blue.Replicas[0].APIProxy.Passed(), blue.Replicas[1].APIProxy.Passed())
	counts, statuses, approved, failed := map[string]int{}, 0, map[string]int{}, map[string]int{}
	for _, request := range passed {
		path := strings.Split(strings.TrimPrefix(request.Path, "/"), "/")
		switch {
		case request.Method == http.MethodGet || strings.Contains(request.Path, "/leases"):
		case request.Status == 0 || request.Status >= http.StatusMultipleChoices: // nothing was written, or it was tried again
			failed[fmt.Sprint(request.Method, " ", request.Status)]++
		case strings.HasSuffix(request.Path, "/status"):
			statuses++
		case strings.Contains(request.Path, "/nodeattestations"):
			counts[request.Method+" entry"]++
		case strings.Contains(request.Path, "/secrets"):
			counts[request.Method+" token"]++
		case strings.HasSuffix(request.Path, "/approval"):
			approved[path[len(path)-2]]++
		case strings.HasSuffix(request.Path, "/subjectaccessreviews"):
		default:
			t.Errorf("unexpected request %s %v", request.Method, path)
		}
	}
	// Each replica may have tried to create the shared key.
	if keys := counts["POST token"] - atOnce; keys > 0 && keys <= len(blue.Replicas) {
		counts["POST token"] -= keys
	}
	if statuses < 2*atOnce {
		t.Errorf("the replicas wrote %d statuses: a binding and a phase are two for each machine", statuses)
	}
	requests, err := blue.Client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	orFatal(t, err)
	for _, csr := range requests.Items {
		isApproved := slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		})
		if n := approved[csr.Name]; n > 1 {
			t.Errorf("%d writes approve %s, %s of %s", n, csr.Name, csr.Spec.SignerName, csr.Spec.Username)
		}
		if isApproved && csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
			counts["PUT approval"]++
		}
	}
	want := map[string]int{"POST entry": atOnce, "POST token": atOnce, "PUT approval": atOnce}
	if fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("the replicas wrote %v, want %v (%d requests before, %v failed)", counts, want, before, failed)
	}
}

// printsLedger compares the output of `kubectl get nodeattestations -o wide` with a
// golden file.
func printsLedger(t *testing.T) {
	raw, err := blue.Client.CoreV1().RESTClient().Get().
		AbsPath("/apis", v1alpha1.Group, v1alpha1.Version, v1alpha1.Resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	orFatal(t, err)
	var table metav1.Table
	orFatal(t, json.Unmarshal(raw, &table))
	got := printed(table)
	golden := filepath.Join("testdata", "nodeattestations.golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		orFatal(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	orFatal(t, err)
	if got != string(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// printed returns the table as kubectl prints it. Values that vary are replaced with the
// name of their column in angle brackets.
func printed(table metav1.Table) string {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	var header []string
	for _, column := range table.ColumnDefinitions {
		header = append(header, strings.ToUpper(column.Name))
	}
	fmt.Fprintln(columns, strings.Join(header, "\t"))
	for _, row := range table.Rows {
		var cells []string
		for i, cell := range row.Cells {
			switch name := table.ColumnDefinitions[i].Name; name {
			case "Age", "Token ID", "Certificate until":
				cell = "<" + name + ">"
			}
			cells = append(cells, fmt.Sprint(cell))
		}
		if strings.HasPrefix(cells[0], "aws-i-0b007") {
			fmt.Fprintln(columns, strings.Join(cells, "\t"))
		}
	}
	columns.Flush()
	return text.String()
}
