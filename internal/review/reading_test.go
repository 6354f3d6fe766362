package review

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	json2 "github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/node-authorizer/node-authorizer/internal/extendedtoleration"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

const theNode = "worker-1"

// workerState is the state of a cluster with one node and one pod on it.
type workerState struct{}

func (workerState) Pod(_, name string) (*corev1.Pod, bool) {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}, Spec: corev1.PodSpec{NodeName: theNode}}, name == "web"
}

func (workerState) Node(name string) (*corev1.Node, bool) {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}, name == theNode
}

func (workerState) ServiceAccount(string, string) (*corev1.ServiceAccount, bool) { return nil, false }

func (workerState) PersistentVolume(string) (*corev1.PersistentVolume, bool) { return nil, false }

func (workerState) CSIDriver(string) (*storagev1.CSIDriver, bool) { return nil, false }

func (workerState) PersistentVolumeClaim(string, string) (*corev1.PersistentVolumeClaim, bool) {
	return nil, false
}

// written is a kind of write that NodeRestriction examines.
type written struct {
	kind                  schema.GroupVersionKind
	resource, subresource string
	operation             noderestriction.Operation
}

func restrictedWrites() []written {
	v := func(group, version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	return []written{
		{v("", "v1", "Pod"), "pods", "", noderestriction.Create},
		{v("", "v1", "Pod"), "pods", "status", noderestriction.Update},
		{v("", "v1", "Node"), "nodes", "", noderestriction.Create},
		{v("", "v1", "Node"), "nodes", "", noderestriction.Update},
		{v("", "v1", "Node"), "nodes", "status", noderestriction.Update},
		{v("", "v1", "PersistentVolumeClaim"), "persistentvolumeclaims", "status", noderestriction.Update},
		{v("policy", "v1", "Eviction"), "pods", "eviction", noderestriction.Create},
		{v("policy", "v1beta1", "Eviction"), "pods", "eviction", noderestriction.Create},
		{v("authentication.k8s.io", "v1", "TokenRequest"), "serviceaccounts", "token", noderestriction.Create},
		{v("certificates.k8s.io", "v1", "CertificateSigningRequest"), "certificatesigningrequests", "", noderestriction.Create},
		{v("certificates.k8s.io", "v1", "PodCertificateRequest"), "podcertificaterequests", "", noderestriction.Create},
		{v("certificates.k8s.io", "v1beta1", "PodCertificateRequest"), "podcertificaterequests", "", noderestriction.Create},
		{v("coordination.k8s.io", "v1", "Lease"), "leases", "", noderestriction.Create},
		{v("resource.k8s.io", "v1", "ResourceSlice"), "resourceslices", "", noderestriction.Create},
		{v("resource.k8s.io", "v1", "ResourceSlice"), "resourceslices", "", noderestriction.Delete},
		{v("resource.k8s.io", "v1beta2", "ResourceSlice"), "resourceslices", "", noderestriction.Create},
		{v("resource.k8s.io", "v1beta1", "ResourceSlice"), "resourceslices", "", noderestriction.Create},
		{v("storage.k8s.io", "v1", "CSINode"), "csinodes", "", noderestriction.Create},
		{v("storage.k8s.io", "v1", "CSINode"), "csinodes", "status", noderestriction.Update},
	}
}

func (w *written) review(object, oldObject string) string {
	name := theNode
	if w.resource == "pods" {
		name = "web"
	}
	namespace := "shop"
	if w.resource == "leases" {
		namespace = "kube-node-lease"
	}
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",`+
		`"request":{"uid":"1","kind":{"group":%q,"version":%q,"kind":%q},`+
		`"resource":{"group":%q,"version":%q,"resource":%q},"subResource":%q,"name":%q,"namespace":%q,"operation":%q,`+
		`"userInfo":{"username":"system:node:`+theNode+`","groups":["system:nodes"]},"object":%s,"oldObject":%s}}`,
		w.kind.Group, w.kind.Version, w.kind.Kind, w.kind.Group, w.kind.Version, w.resource,
		w.subresource, name, namespace, w.operation, object, oldObject)
}

func restrictions() map[kubeversion.Minor]*noderestriction.Restriction {
	all := map[kubeversion.Minor]*noderestriction.Restriction{}
	for _, minor := range []kubeversion.Minor{30, 32, 33, kubeversion.Latest} {
		all[minor] = noderestriction.New(workerState{}, nil, kubeversion.For(minor))
	}
	return all
}

// compareDecisions evaluates a document with reduced objects and with complete objects. If
// the complete objects can be decoded, the reduced ones must be too, with the same decision.
func compareDecisions(t *testing.T, document []byte, all map[kubeversion.Minor]*noderestriction.Restriction) {
	t.Helper()
	for minor, r := range all {
		in, whole, err := decodeRequest(document)
		if err != nil {
			return
		}
		object, oldObject := r.Reads(&whole.request)
		if object && in.Object != (part{}) {
			if whole.request.Object, err = DecodeObject(in.Object.of(document), schema.GroupVersionKind(in.Kind)); err != nil {
				return
			}
		}
		if oldObject && in.OldObject != (part{}) {
			if whole.request.OldObject, err = DecodeObject(in.OldObject.of(document), schema.GroupVersionKind(in.Kind)); err != nil {
				return
			}
		}
		read, err := DecodeAdmission(document, r.Reads)
		if err != nil {
			t.Errorf("decoded whole but not as it is read: %v\n%s", err, document)
			return
		}
		want, got := r.Decide(t.Context(), &whole.request), r.Decide(t.Context(), &read.request)
		if !reflect.DeepEqual(plain(got), plain(want)) {
			t.Errorf("Kubernetes %d:\n got %+v\nwant %+v\n%s", minor, got, want, document)
		}
	}
}

// plain returns an answer without its error.
func plain(a noderestriction.Answer) noderestriction.Answer {
	a.Err = nil
	return a
}

// TestReadDecidesAsWhole: random objects, and pairs of objects that differ in one random
// place, get the same decision as completely decoded objects.
func TestReadDecidesAsWhole(t *testing.T) {
	const objects = 40
	all := restrictions()
	random := rand.New(rand.NewSource(1))
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	for _, w := range restrictedWrites() {
		t.Run(fmt.Sprintf("%s %s/%s %s", w.operation, w.resource, w.subresource, w.kind.Version), func(t *testing.T) {
			for range objects {
				object, err := scheme.Scheme.New(w.kind)
				if err != nil {
					t.Fatal(err)
				}
				fill.Fill(object)
				belongToNode(object, random)
				object.GetObjectKind().SetGroupVersionKind(w.kind)
				text, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				changed := alter(t, text, random)
				compareDecisions(t, []byte(w.review(string(text), string(text))), all)
				compareDecisions(t, []byte(w.review(changed, string(text))), all)
				compareDecisions(t, []byte(w.review(string(text), changed)), all)
				compareDecisions(t, []byte(w.review("null", string(text))), all)
				compareDecisions(t, []byte(w.review(string(text), "null")), all)
			}
		})
	}
}

// belongToNode lets some objects pass the checks that come first.
func belongToNode(object runtime.Object, random *rand.Rand) {
	yes := true
	switch o := object.(type) {
	case *corev1.Pod:
		o.Spec.NodeName = theNode
		o.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "1", "other": "2"}
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: theNode, UID: "1", Controller: &yes}}
		o.Spec = mirrorSpec(random)
	case *corev1.Node:
		o.Name = theNode
	case *storagev1.CSINode:
		o.Name = theNode
	}
}

// mirrorSpec refers to other objects in a few of the ways in which pods can.
func mirrorSpec(random *rand.Rand) corev1.PodSpec {
	some := func() string { return []string{"", "", "a", "b"}[random.Intn(4)] }
	ref := func() corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: some()} }
	spec := corev1.PodSpec{NodeName: theNode}
	if random.Intn(8) == 0 {
		spec.ServiceAccountName, spec.DeprecatedServiceAccount = some(), some()
		spec.ImagePullSecrets = []corev1.LocalObjectReference{ref(), ref()}
		spec.ResourceClaims = make([]corev1.PodResourceClaim, random.Intn(3))
	}
	containers := func() []corev1.Container {
		var all []corev1.Container
		for i := range random.Intn(3) {
			c := corev1.Container{Name: fmt.Sprintf("c%d", i)}
			for range random.Intn(3) * random.Intn(2) {
				c.Env = append(c.Env, corev1.EnvVar{}, corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{}})
				if random.Intn(3) == 0 {
					c.Env = append(c.Env, corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{
						ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref()},
						SecretKeyRef:    &corev1.SecretKeySelector{LocalObjectReference: ref()},
					}})
					c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{
						ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref()},
						SecretRef:    &corev1.SecretEnvSource{LocalObjectReference: ref()},
					})
				}
			}
			all = append(all, c)
		}
		return all
	}
	spec.InitContainers, spec.Containers = containers(), containers()
	for _, c := range containers() {
		spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom},
		})
	}
	for i := range random.Intn(4) {
		v := corev1.Volume{Name: fmt.Sprintf("v%d", i)}
		setSome(reflect.ValueOf(&v.VolumeSource).Elem(), random, some)
		spec.Volumes = append(spec.Volumes, v)
	}
	return spec
}

// setSome sets one or two of the pointers of a struct, and in what they point to,
// names and references.
func setSome(kinds reflect.Value, random *rand.Rand, name func() string) {
	for range 1 + random.Intn(5)/4 {
		kind := kinds.Field(random.Intn(kinds.NumField()))
		kind.Set(reflect.New(kind.Type().Elem()))
		of := kind.Elem()
		for i := range of.NumField() {
			field := of.Field(i)
			switch at := field.Addr().Interface().(type) {
			case *corev1.LocalObjectReference:
				at.Name = name()
			case **corev1.LocalObjectReference:
				*at = &corev1.LocalObjectReference{Name: name()}
			case *[]corev1.VolumeProjection:
				for range random.Intn(3) {
					var source corev1.VolumeProjection
					if random.Intn(4) > 0 {
						setSome(reflect.ValueOf(&source).Elem(), random, name)
					}
					*at = append(*at, source)
				}
			case *string:
				*at = name()
			}
		}
	}
}

// alter changes one random place of an object.
func alter(t *testing.T, text []byte, random *rand.Rand) string {
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	var places []func()
	visit(tree, func(change func()) { places = append(places, change) }, random)
	places[random.Intn(len(places))]()
	changed, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}

func visit(node any, add func(func()), random *rand.Rand) {
	switch n := node.(type) {
	case map[string]any:
		for key, child := range n {
			if key == "kind" || key == "apiVersion" {
				continue
			}
			add(func() { delete(n, key) })
			if text, ok := child.(string); ok {
				add(func() { n[key] = text + "1" })
			}
			visit(child, add, random)
		}
	case []any:
		if len(n) > 1 {
			add(func() { n[0], n[len(n)-1] = n[len(n)-1], n[0] })
		}
		for _, child := range n {
			visit(child, add, random)
		}
	}
}

// FuzzReadDecidesAsWhole is the same for any document.
func FuzzReadDecidesAsWhole(f *testing.F) {
	pod := `{"kind":"Pod","apiVersion":"v1",` +
		`"metadata":{"name":"web","labels":{"a":"b"},"annotations":{"kubernetes.io/config.mirror":"1"},` +
		`"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"worker-1","uid":"1","controller":true}]},` +
		`"spec":{"nodeName":"worker-1","containers":[{"name":"a","env":[{"name":"b","valueFrom":{"secretKeyRef":{"name":""}}}]}],` +
		`"volumes":[{"name":"a","emptyDir":{}},{"name":"b","projected":{"sources":[{"downwardAPI":{}}]}}]},` +
		`"status":{"resourceClaimStatuses":[{"name":"a"}],` +
		`"nodeAllocatableResourceClaimStatuses":[{"mapping":[{"name":"a","quantity":"1"}]}]}}`
	for _, w := range restrictedWrites() {
		object := pod
		if w.kind.Kind != "Pod" {
			object = fmt.Sprintf(
				`{"kind":%q,"apiVersion":%q,"metadata":{"name":"worker-1","labels":{"a":"b"}},`+
					`"spec":{"nodeName":"worker-1","taints":[{"key":"a"}]}}`,
				w.kind.Kind, w.kind.GroupVersion(),
			)
		}
		f.Add([]byte(w.review(object, strings.Replace(object, `"b"`, `"c"`, 1))))
		f.Add([]byte(w.review(object, object)))
	}
	oddWrites(f).seed(func(document []byte) { f.Add(document) })
	all := restrictions()
	f.Fuzz(func(t *testing.T, document []byte) {
		compareDecisions(t, document, all)
	})
}

// TestTolerationsAreThoseOfTheWholePod: the reduced pod gets the same tolerations as the
// whole pod.
func TestTolerationsAreThoseOfTheWholePod(t *testing.T) {
	w := written{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", "", noderestriction.Create}
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	random := rand.New(rand.NewSource(1))
	for range 200 {
		pod := &corev1.Pod{}
		fill.Fill(pod)
		pod.SetGroupVersionKind(w.kind)
		pod.Spec.Tolerations = someTolerations(random)
		for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range containers {
				containers[i].Resources.Requests = corev1.ResourceList{}
				for range random.Intn(3) {
					containers[i].Resources.Requests[corev1.ResourceName(resourceNamed(random))] = apiresource.MustParse("1")
				}
			}
		}
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		read, err := DecodeTolerations([]byte(w.review(string(text), "null")))
		if err != nil {
			t.Fatal(err)
		}
		want, changed := extendedtoleration.Tolerations(pod)
		patch := read.Patch()
		if changed != (len(patch) > 0) {
			t.Fatalf("patch %s, want a change: %v", patch, changed)
		}
		whole := &TolerationReview{pod: read.pod, text: read.text}
		var got []corev1.Toleration
		if err := json.Unmarshal(whole.list(read.pod.Spec.Tolerations.Changes()), &got); err != nil {
			t.Fatal(err)
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("\n got %v\nwant %v", got, want)
		}
	}
}

// TestListsAreRead says of each list and each map in the types that documents are decoded into: either a reading says
// how it is decoded, or its entries are small. And no reading refuses an object that an API server writes.
func TestListsAreRead(t *testing.T) {
	for kind, newObject := range kinds {
		target := reflect.TypeOf(newObject().target())
		if kind.Kind == "Pod" {
			checkLists(t, kind.String(), target, append(podReadings(), append(readings(), mirrorPodReadings()...)...))
			checkLists(t, kind.String()+" status", target, append(podReadings(), append(readings(), podStatusReadings()...)...))
			continue
		}
		checkLists(t, kind.String(), target, append(readings(), otherReadings()...))
	}
	checkLists(t, "access review", reflect.TypeFor[accessSpec](), accessReadings())
	checkLists(t, "access review of v1beta1", reflect.TypeFor[betaAccessSpec](), accessReadings())
	checkLists(t, "admission review", reflect.TypeFor[admissionReview](), nil)
}

func checkLists(t *testing.T, of string, top reflect.Type, all []reading) {
	t.Helper()
	const (
		entry  = len(`{},`)
		member = len(`"a":{},`)
	)
	how := map[reflect.Type]*json2.Unmarshalers{}
	for _, r := range all {
		how[r.of] = r.by
	}
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type, string)
	check = func(at reflect.Type, path string) {
		if seen[at] {
			return
		}
		seen[at] = true
		by := how[at]
		if by != nil && json2.Unmarshal([]byte("0"), reflect.New(at).Interface(), optionsOf(checked(), all)) == nil {
			return // skipped
		}
		small := uintptr(entry)
		switch at.Kind() {
		case reflect.Slice:
			if by != nil {
				entries := reflect.MakeSlice(at, 5000, 5000)
				text, err := json.Marshal(entries.Interface())
				if err == nil {
					err = json2.Unmarshal(text, reflect.New(at).Interface(), optionsOf(checked(), all))
				}
				if err != nil {
					t.Errorf("%s: %s: the API server's form is refused: %v", of, path, err)
				}
			}
		case reflect.Map:
			small = uintptr(member)
		case reflect.Pointer:
			check(at.Elem(), path)
			return
		case reflect.Struct:
			if by != nil || reflect.PointerTo(at).Implements(reflect.TypeFor[json.Unmarshaler]()) {
				return
			}
			for i := range at.NumField() {
				check(at.Field(i).Type, path+"."+at.Field(i).Name)
			}
			return
		default:
			return
		}
		if by == nil && at.Elem().Size() > maxExpansion*small {
			t.Errorf("%s: %s: no reading says how a %s is decoded, whose entries take %d bytes", of, path, at, at.Elem().Size())
		}
		check(at.Elem(), path+"[]")
	}
	check(top, "")
}

func TestListsOfEmptyEntriesAreRefused(t *testing.T) {
	w := written{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, "nodes", "", noderestriction.Update}
	node := func(n int) string {
		return `{"kind":"Node","apiVersion":"v1","spec":{"taints":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]}}`
	}
	for n, want := range map[int]string{
		1000: "<nil>",
		5000: "request.object.spec.taints: the entries of the list take more than 8 times the memory of their text: leave empty ones out",
	} {
		if _, err := DecodeAdmission([]byte(w.review(node(n), node(1))), readBoth); fmt.Sprint(err) != want {
			t.Errorf("%d empty entries: %v, want %s", n, err, want)
		}
	}
}

func resourceNamed(random *rand.Rand) string {
	return []string{"cpu", "example.com/a", "example.com/b", "example.com/c", "kubernetes.io/d"}[random.Intn(5)]
}

func someTolerations(random *rand.Rand) []corev1.Toleration {
	var all []corev1.Toleration
	for range random.Intn(6) {
		toleration := corev1.Toleration{Key: resourceNamed(random), Operator: corev1.TolerationOpExists}
		if random.Intn(3) > 0 {
			toleration.Effect = corev1.TaintEffectNoSchedule
		}
		if seconds := int64(5); random.Intn(3) == 0 {
			toleration.TolerationSeconds = &seconds
		}
		all = append(all, toleration)
	}
	return all
}

// A patch with too many steps replaces the list.
func TestLargePatchesHaveOneStep(t *testing.T) {
	var requests []string
	for i := range maxSteps + 1 {
		requests = append(requests, fmt.Sprintf(`"example.com/r%d":"1"`, i))
	}
	w := written{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", "", noderestriction.Create}
	read, err := DecodeTolerations([]byte(w.review(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"resources":{"requests":{`+
		strings.Join(requests, ",")+`}}}],"tolerations":[{"key":"a","new":"field"}, {"key":"b"}]}}`, "null")))
	if err != nil {
		t.Fatal(err)
	}
	patch := string(read.Patch())
	const want = `[{"op":"add","path":"/spec/tolerations","value":[{"key":"a","new":"field"},{"key":"b"},{"key":"example.com/r0"`
	if !strings.HasPrefix(patch, want) ||
		strings.Count(patch, `"op"`) != 1 || strings.Count(patch, "example.com/") != maxSteps+1 {
		t.Errorf("got %s", patch)
	}
}
