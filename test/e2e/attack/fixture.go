package attack

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

//go:embed fixture.yaml
var objects []byte

// staticPod runs on both nodes, so that each has a mirror pod: clock-web-1 and
// clock-pay-1.
const staticPod = `
apiVersion: v1
kind: Pod
metadata: {name: clock, namespace: stock}
spec:
  containers: [{name: clock, image: registry.example.com/stock/clock:1.0}]
`

// Fixture is a cluster with the objects that the requests are about.
type Fixture struct {
	admin dynamic.Interface
	uids  map[string]types.UID
}

// Prepare creates the objects in a plane with the nodes web-1 and pay-1, and waits until
// controllers and kubelets have acted on them.
func Prepare(ctx context.Context, plane *localplane.Plane) (*Fixture, error) {
	admin, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, fmt.Errorf("prepare the fixture of the attacks: %w", err)
	}
	fixture := &Fixture{admin: admin, uids: map[string]types.UID{}}
	for _, step := range []func(context.Context, *localplane.Plane) error{
		fixture.markNode, fixture.applyObjects, fixture.runStaticPods, fixture.learnUIDs, fixture.askForCertificates, fixture.settle,
	} {
		if err := step(ctx, plane); err != nil {
			return nil, fmt.Errorf("prepare the fixture of the attacks: %w", err)
		}
	}
	return fixture, nil
}

// markNode gives web-1 a label and a taint that it may not remove.
func (f *Fixture) markNode(ctx context.Context, _ *localplane.Plane) error {
	const marks = `{"metadata":{"labels":{"node-restriction.kubernetes.io/zone":"public"}},
		"spec":{"taints":[{"key":"quarantine","value":"true","effect":"PreferNoSchedule"}]}}`
	_, err := f.admin.Resource(core("nodes")).Patch(ctx, "web-1", types.MergePatchType, []byte(marks), metav1.PatchOptions{})
	return err
}

func (f *Fixture) applyObjects(ctx context.Context, plane *localplane.Plane) error {
	all, err := decode(objects)
	if err != nil {
		return err
	}
	var pods, others []*unstructured.Unstructured
	for _, object := range all {
		if object.GetKind() == "Pod" {
			pods = append(pods, object)
		} else {
			others = append(others, object)
		}
	}
	applied := func(*unstructured.Unstructured) {}
	if err := manifests.Apply(ctx, plane.AdminConfig(), others, applied); err != nil {
		return err
	}
	// Pods need the default service account, which a controller makes.
	if err := f.appear(ctx, core("serviceaccounts"), "stock", "default"); err != nil {
		return err
	}
	return manifests.Apply(ctx, plane.AdminConfig(), pods, applied)
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
}

func (f *Fixture) runStaticPods(ctx context.Context, plane *localplane.Plane) error {
	for _, node := range plane.Nodes() {
		if node.Name() != "web-1" && node.Name() != "pay-1" {
			continue
		}
		folder, err := node.StaticPods()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "clock.yaml"), []byte(staticPod), 0o600); err != nil {
			return err
		}
		if err := f.appear(ctx, core("pods"), "stock", "clock-"+node.Name()); err != nil {
			return err
		}
	}
	return nil
}

// learnUIDs records the uid of each object in UID(…) of a request.
func (f *Fixture) learnUIDs(ctx context.Context, _ *localplane.Plane) error {
	for resource, names := range map[string][]string{
		"nodes":           {"web-1", "pay-1"},
		"serviceaccounts": {"default", "own", "foreign"},
		"secrets":         {"own-secret"},
		"pods":            {"own", "own-odd", "foreign", "foreign-odd", "waiting", "clock-web-1"},
	} {
		for _, name := range names {
			object, err := f.resource(core(resource), "stock").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			f.uids[resource+"/"+name] = object.GetUID()
		}
	}
	return nil
}

// askForCertificates creates the certificate requests that other requests read.
func (f *Fixture) askForCertificates(ctx context.Context, _ *localplane.Plane) error {
	foreign := podCertificate{
		node: "pay-1", nodeUID: "UID(nodes/pay-1)", pod: "foreign-odd", podUID: "UID(pods/foreign-odd)", account: "foreign",
		accountUID: "UID(serviceaccounts/foreign)",
	}
	for name, request := range map[string]podCertificate{"own-certificate": {}, "foreign-certificate": foreign} {
		if err := f.create(ctx, schema.GroupVersionResource{
			Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests",
		},
			"stock", strings.Replace(request.String(), "name: made", "name: "+name, 1)); err != nil {
			return err
		}
	}
	return f.create(ctx, schema.GroupVersionResource{
		Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests",
	}, "",
		"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: waiting}, spec: "+
			"{signerName: stock.example.com/admins, request: CSR(admin; admins), usages: [client auth]}}")
}

func (f *Fixture) create(ctx context.Context, resource schema.GroupVersionResource, namespace, text string) error {
	body, err := f.fill(text)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(body), &object.Object); err != nil {
		return fmt.Errorf("%w, in %s", err, body)
	}
	var client dynamic.ResourceInterface = f.admin.Resource(resource)
	if namespace != "" {
		client = f.admin.Resource(resource).Namespace(namespace)
	}
	_, err = client.Create(ctx, object, metav1.CreateOptions{})
	return err
}

// settle waits until claims are bound, pods run that can run, and leases exist. A kubelet
// creates its lease some seconds after its node.
func (f *Fixture) settle(ctx context.Context, _ *localplane.Plane) error {
	for _, condition := range []struct {
		resource  schema.GroupVersionResource
		namespace string
		names     []string
		phase     string
	}{
		{core("persistentvolumeclaims"), "stock", []string{"own-claim", "foreign-claim"}, "Bound"},
		{core("pods"), "stock", []string{"own", "foreign", "clock-web-1", "clock-pay-1"}, "Running"},
		{core("configmaps"), "stock", []string{"kube-root-ca.crt"}, ""},
		{
			schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
			corev1.NamespaceNodeLease,
			[]string{"web-1", "pay-1"},
			"",
		},
		{schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}, "", []string{"web-1", "pay-1"}, ""},
	} {
		for _, name := range condition.names {
			err := f.until(ctx, condition.resource, condition.namespace, name, func(object *unstructured.Unstructured) error {
				phase, _, err := unstructured.NestedString(object.Object, "status", "phase")
				if phase != condition.phase {
					return fmt.Errorf("its phase is %q, not %q", phase, condition.phase)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Fixture) appear(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	return f.until(ctx, resource, namespace, name, func(*unstructured.Unstructured) error { return nil })
}

// until waits until an object exists and holds returns nil.
func (f *Fixture) until(ctx context.Context, resource schema.GroupVersionResource, namespace, name string,
	holds func(*unstructured.Unstructured) error,
) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var object *unstructured.Unstructured
		if object, last = f.resource(resource, namespace).Get(ctx, name, metav1.GetOptions{}); last == nil {
			last = holds(object)
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s %s: %w (the last answer: %w)", resource.Resource, name, err, last)
	}
	return nil
}

// resource returns a client for one resource. Cluster-scoped resources ignore the
// namespace.
func (f *Fixture) resource(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" || resource.Resource == "nodes" {
		return f.admin.Resource(resource)
	}
	return f.admin.Resource(resource).Namespace(namespace)
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// Sender returns a Sender with the given credentials.
func (f *Fixture) Sender(config *rest.Config, admin *rest.Config) (*Sender, error) {
	asNode, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client with the node's certificate: %w", err)
	}
	asAdmin, err := rest.HTTPClientFor(admin)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Sender{fixture: f, server: config.Host, node: asNode, admin: asAdmin}, nil
}
