package machines

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/node-authorizer/node-authorizer/internal/join/clusterapi"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeprovider"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// capiNamespace has the Machines of Cluster API.
const capiNamespace = "fleet"

// TestMachinesOfClusterAPI: a machine joins if, and as long as, Cluster API has a Machine for it.
func TestMachinesOfClusterAPI(t *testing.T) {
	machines := installClusterAPI(t)
	self, replicas := programs(t, "  clusterAPI: {namespaces: ["+capiNamespace+"], clusterName: "+Name+"}\n")
	i := &identityTokens{replicas: replicas}
	ask := func(replica *Replica, name string) Answer {
		challenge, key := i.challenge(t), hashOf(t, newKey(t))
		evidence, err := json.Marshal(fakeprovider.New(name, challenge, key))
		orFatal(t, err)
		body, err := json.Marshal(map[string]any{"challenge": challenge, "publicKey": key, "evidence": json.RawMessage(evidence)})
		orFatal(t, err)
		answer, err := server.Post(t.Context(), i.client(t), "https://"+replica.Address+"/authorize/"+name, "application/json", body)
		orFatal(t, err)
		return Answer(answer)
	}
	refusedSoon := func(name string, want verdict.Code) {
		t.Helper()
		for _, replica := range replicas {
			eventually(t, name+" is refused with "+string(want), func(context.Context) error {
				if reason := ask(replica, name).parse(t).Status.Reason; !strings.HasPrefix(reason, string(want)+":") {
					return errors.New(reason)
				}
				return nil
			})
		}
	}

	t.Run("without a Machine", func(t *testing.T) {
		for _, replica := range replicas {
			refused(t, ask(replica, "capi-none"), http.StatusForbidden, clusterapi.MachineNotFound)
		}
	})
	t.Run("with the provider ID of another machine", func(t *testing.T) {
		machines.create(t, "other", "capi-other", nil)
		refused(t, ask(replicas[0], "capi-none"), http.StatusForbidden, clusterapi.MachineNotFound)
	})
	t.Run("with a Machine that gets its provider ID while the client waits", func(t *testing.T) {
		m := machines.create(t, "joins", "", nil)
		joined := make(chan error, 1)
		go func() { joined <- joinWithProgram(t, self, replicas[0], "capi-joins") }()
		eventually(t, "the client was refused", func(context.Context) error {
			log, err := replicas[0].Log()
			if err == nil && !strings.Contains(log, fakeprovider.ProviderID("capi-joins")) {
				err = errors.New("the log does not say so")
			}
			return err
		})
		orFatal(t, unstructured.SetNestedField(m.Object, fakeprovider.ProviderID("capi-joins"), "spec", "providerID"))
		_, err := machines.Update(t.Context(), m, metav1.UpdateOptions{})
		orFatal(t, err)
		orFatal(t, <-joined)
		entry, err := blue.Ledger.Get(t.Context(), "fake-capi-joins")
		orFatal(t, err)
		if entry.Spec.NodeName != "capi-joins" {
			t.Errorf("%+v", entry.Spec)
		}
	})
	t.Run("with a Machine that is being deleted, and is gone", func(t *testing.T) {
		m := machines.create(t, "deleted", "capi-deleted", nil)
		m.SetFinalizers([]string{"machine.cluster.x-k8s.io/drain"})
		m, err := machines.Update(t.Context(), m, metav1.UpdateOptions{})
		orFatal(t, err)
		orFatal(t, machines.Delete(t.Context(), m.GetName(), metav1.DeleteOptions{}))
		refusedSoon("capi-deleted", clusterapi.MachineDeleting)
		m, err = machines.Get(t.Context(), m.GetName(), metav1.GetOptions{})
		orFatal(t, err)
		m.SetFinalizers(nil)
		_, err = machines.Update(t.Context(), m, metav1.UpdateOptions{})
		orFatal(t, err)
		refusedSoon("capi-deleted", clusterapi.MachineNotFound)
	})
	t.Run("with a Machine that has another node", func(t *testing.T) {
		machines.create(t, "node", "capi-node", map[string]any{"nodeRef": map[string]any{"name": "capi-before"}})
		refusedSoon("capi-node", clusterapi.NodeMismatch)
	})
	t.Run("with a Machine that has other addresses", func(t *testing.T) {
		machines.create(t, "address", "capi-address", map[string]any{
			"addresses": []any{map[string]any{"type": "InternalIP", "address": "10.0.0.8"}},
		})
		refusedSoon("capi-address", clusterapi.AddressMismatch)
	})
	t.Run("with two Machines", func(t *testing.T) {
		machines.create(t, "twice-1", "capi-twice", nil)
		machines.create(t, "twice-2", "capi-twice", nil)
		refusedSoon("capi-twice", clusterapi.MachineAmbiguous)
	})
}

// capiMachines are the Machines of Cluster API in one namespace.
type capiMachines struct{ dynamic.ResourceInterface }

// installClusterAPI installs a custom resource with the fields of Cluster API, and the rights of deploy/bootstrap.
func installClusterAPI(t *testing.T) *capiMachines {
	t.Helper()
	for _, path := range []string{
		filepath.Join("testdata", "clusterapi.yaml"), filepath.Join(blue.deploy(), "cluster-api", "rights.yaml"),
	} {
		objects, err := manifests.Read(path)
		orFatal(t, err)
		for _, o := range objects {
			if strings.HasPrefix(o.GetKind(), "Role") {
				o.SetNamespace(capiNamespace)
			}
		}
		orFatal(t, manifests.Apply(t.Context(), blue.AdminConfig(), objects, func(*unstructured.Unstructured) {}))
	}
	client, err := dynamic.NewForConfig(blue.AdminConfig())
	orFatal(t, err)
	resource := schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta1", Resource: "machines"}
	machines := &capiMachines{client.Resource(resource).Namespace(capiNamespace)}
	eventually(t, "the resource is served", func(ctx context.Context) error {
		_, err := machines.List(ctx, metav1.ListOptions{})
		return err
	})
	return machines
}

// create writes a Machine of the cluster, with the provider ID of a machine if it has one, and a status.
func (c *capiMachines) create(t *testing.T, name, machine string, status map[string]any) *unstructured.Unstructured {
	t.Helper()
	spec := map[string]any{"clusterName": Name}
	if machine != "" {
		spec["providerID"] = fakeprovider.ProviderID(machine)
	}
	m, err := c.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
	orFatal(t, err)
	if status == nil {
		return m
	}
	m.Object["status"] = status
	m, err = c.UpdateStatus(t.Context(), m, metav1.UpdateOptions{})
	orFatal(t, err)
	return m
}
