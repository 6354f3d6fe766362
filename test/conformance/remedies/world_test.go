// Package remedies tests the remedies of refusals: what a remedy changes is changed in the state
// or the request, with a library for JSON patches, and the request is evaluated again.
package remedies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// header marks the objects after it as a whole cluster.
const header = `{"apiVersion":"snapshot.node-authorizer.io/v1alpha1","kind":"Snapshot","cluster":true,"rbacReadable":true,"objects":{}}`

// world is a cluster: objects in JSON, and the feature gates of its API server.
type world struct {
	objects  map[verdict.Object][]byte
	order    []verdict.Object
	features kubeversion.Features
}

func newWorld(features kubeversion.Features) *world {
	return &world{objects: map[verdict.Object][]byte{}, features: features}
}

func (w *world) set(o verdict.Object, text []byte) {
	if _, known := w.objects[o]; !known {
		w.order = append(w.order, o)
	}
	w.objects[o] = text
}

// add adds an object with its kind, which typed objects do not name.
func (w *world) add(t *testing.T, apiVersion, kind string, object metav1.Object) {
	t.Helper()
	text := marshal(t, object)
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	fields["apiVersion"], fields["kind"] = apiVersion, kind
	w.set(verdict.Object{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}, marshal(t, fields))
}

func addAll[T metav1.Object](t *testing.T, w *world, apiVersion, kind string, objects []T) {
	t.Helper()
	for _, o := range objects {
		w.add(t, apiVersion, kind, o)
	}
}

func (w *world) addPolicy(t *testing.T, p *generate.Policy) {
	t.Helper()
	version := rbacv1.SchemeGroupVersion.String()
	addAll(t, w, version, "Role", p.Roles)
	addAll(t, w, version, "RoleBinding", p.RoleBindings)
	addAll(t, w, version, "ClusterRole", p.ClusterRoles)
	addAll(t, w, version, "ClusterRoleBinding", p.ClusterRoleBindings)
}

func (w *world) clone() *world {
	c := newWorld(w.features)
	for _, o := range w.order {
		c.set(o, w.objects[o])
	}
	return c
}

// load evaluates as the product does: system:masters, the Node authorizer, RBAC, NodeRestriction.
func (w *world) load(t *testing.T) *evaluate.Evaluator {
	t.Helper()
	text := bytes.NewBufferString(header + "\n")
	for _, o := range w.order {
		text.WriteString("---\n")
		text.Write(w.objects[o])
		text.WriteByte('\n')
	}
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: text})
	if err != nil {
		t.Fatal(err)
	}
	e, err := evaluate.New(t.Context(), state, evaluate.Options{Features: w.features})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// request is a request, and the objects of a write.
type request struct {
	access access.Request
	write  *evaluate.Write
}

// apply makes the changes of a remedy, and reports whether the world is another one.
func apply(t *testing.T, w *world, r request, changes []verdict.Change) (*world, request, bool, error) {
	t.Helper()
	changed, other := w.clone(), false
	attributes := r.attributes(t)
	var object, old []byte
	if r.write != nil && r.write.Object != nil {
		object = marshal(t, r.write.Object)
	}
	if r.write != nil && r.write.OldObject != nil {
		old = marshal(t, r.write.OldObject)
	}
	for _, c := range changes {
		var err error
		switch {
		case c.Of == verdict.OfFeatureGate:
			other = true
			changed.features, err = changed.features.With(kubeversion.Gate(c.Object.Name), string(c.Value) == "true")
		case c.Of == verdict.OfObject:
			other = true
			err = changed.change(c)
			if err == nil && c.Object.Kind == "Binding" && old != nil && isPod(r.write, c.Object) {
				old, err = patched(old, verdict.Change{Op: verdict.Add, Path: "/spec/nodeName", Value: nodeOf(c)})
			}
		case bytes.HasPrefix([]byte(c.Path), []byte(verdict.RequestPath+"/")):
			attributes, err = patched(attributes, c)
		default:
			object, err = patched(object, c)
		}
		if err != nil {
			return nil, r, other, fmt.Errorf("%s %s %s: %w", c.Of, c.Op, c.Path, err)
		}
	}
	next, err := r.with(t, attributes, object, old)
	return changed, next, other, err
}

func isPod(w *evaluate.Write, o verdict.Object) bool {
	old, ok := w.OldObject.(*corev1.Pod)
	return ok && old.Namespace == o.Namespace && old.Name == o.Name
}

// nodeOf returns the node of a Binding.
func nodeOf(c verdict.Change) json.RawMessage {
	var binding corev1.Binding
	if json.Unmarshal(c.Value, &binding) != nil {
		return nil
	}
	node, _ := json.Marshal(binding.Target.Name)
	return node
}

// change changes an object as an API server does.
func (w *world) change(c verdict.Change) error {
	if c.Object.Kind == "Binding" {
		pod := verdict.Object{Kind: "Pod", Namespace: c.Object.Namespace, Name: c.Object.Name}
		var stored corev1.Pod
		if err := json.Unmarshal(w.objects[pod], &stored); err != nil || stored.Spec.NodeName != "" {
			return fmt.Errorf("the pod cannot be bound: it is on node %q (%w)", stored.Spec.NodeName, err)
		}
		text, err := patched(w.objects[pod], verdict.Change{Op: verdict.Add, Path: "/spec/nodeName", Value: nodeOf(c)})
		w.set(pod, text)
		return err
	}
	stored, exists := w.objects[c.Object]
	switch {
	case c.Path == "" && c.Op == verdict.Add:
		w.set(c.Object, c.Value)
		return nil
	case !exists:
		return fmt.Errorf("%s does not exist", c.Object)
	case c.Path == "" && c.Op == verdict.Remove:
		delete(w.objects, c.Object)
		w.order = slices.DeleteFunc(w.order, func(o verdict.Object) bool { return o == c.Object })
		return nil
	}
	text, err := patched(stored, c)
	w.set(c.Object, text)
	return err
}

func patched(text []byte, c verdict.Change) ([]byte, error) {
	operation, err := json.Marshal([]struct {
		Op    verdict.Op      `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value,omitempty"`
	}{{c.Op, c.Path, c.Value}})
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(operation)
	if err != nil {
		return nil, err
	}
	return patch.Apply(text)
}

// attributes are the attributes of a request that a remedy may change.
func (r request) attributes(t *testing.T) []byte {
	t.Helper()
	inner := map[string]any{"user": r.access.User, "groups": append([]string{}, r.access.Groups...)}
	for name, value := range map[string]string{"namespace": r.access.Namespace, "name": r.access.Name} {
		if value != "" {
			inner[name] = value
		}
	}
	if len(r.access.FieldSelector) > 0 {
		inner["fieldSelector"] = "replaced if it is changed"
	}
	return marshal(t, map[string]any{"request": inner})
}

// with returns the request after changes of its attributes and objects.
func (r request) with(t *testing.T, attributes, object, old []byte) (request, error) {
	t.Helper()
	var text struct {
		Request struct {
			User, Namespace, Name, FieldSelector string
			Groups                               []string
		}
	}
	if err := json.Unmarshal(attributes, &text); err != nil {
		return r, err
	}
	a := text.Request
	r.access.User, r.access.Groups, r.access.Namespace, r.access.Name = a.User, a.Groups, a.Namespace, a.Name
	if a.FieldSelector != "" && a.FieldSelector != "replaced if it is changed" {
		selector, err := fields.ParseSelector(a.FieldSelector)
		if err != nil {
			return r, err
		}
		r.access.FieldSelector = selector.Requirements()
	}
	if r.write == nil {
		return r, nil
	}
	write := *r.write
	write.User, write.Groups, write.Namespace, write.Name = a.User, a.Groups, a.Namespace, a.Name
	var err error
	if write.Object, err = decodedAs(write.Object, object); err != nil {
		return r, err
	}
	write.OldObject, err = decodedAs(write.OldObject, old)
	r.write = &write
	return r, err
}

// decodedAs decodes an object of the same type as another one.
func decodedAs(like runtime.Object, text []byte) (runtime.Object, error) {
	if like == nil {
		return nil, nil
	}
	object := reflect.New(reflect.TypeOf(like).Elem()).Interface().(runtime.Object)
	return object, json.Unmarshal(text, object)
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
