package review

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/request"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func readBoth(*noderestriction.Request) (object, oldObject bool) { return true, true }

const (
	aPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","uid":"1"},` +
		`"spec":{"nodeName":"worker-1","containers":[{"name":"a","resources":{"limits":{"cpu":"1500m"}}}]}}`
	anOther = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","labels":{"a":"b"}},` +
		`"spec":{"nodeName":"worker-2","containers":null}}`
)

// podStatus returns a review as kube-apiserver sends it.
func podStatus(object, oldObject string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"subResource":"status",` +
		`"requestKind":{"group":"","version":"v0","kind":"Other"},"requestResource":{"group":"g","version":"v0",` +
		`"resource":"others"},"requestSubResource":"scale",` +
		`"name":"web","namespace":"shop","operation":"UPDATE",` +
		`"userInfo":{"username":"system:node:worker-1","uid":"7","groups":["system:nodes","system:authenticated"],` +
		`"extra":{"a":["b","c"]}},` +
		`"object":` + object + `,"oldObject":` + oldObject +
		`,"dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}}`
}

func TestAdmissionRequest(t *testing.T) {
	r, err := DecodeAdmission([]byte(podStatus(aPod, anOther)), readBoth)
	if err != nil {
		t.Fatal(err)
	}
	if r.UID() != "705ab4f5-6393-11e8-b7cc-42010a800002" {
		t.Errorf("uid %q", r.UID())
	}
	got := *r.Request()
	object, oldObject := got.Object.(*corev1.Pod), got.OldObject.(*corev1.Pod)
	if object.Spec.NodeName != "worker-1" || object.Name != "web" {
		t.Errorf("object %+v", object)
	}
	if oldObject.Spec.NodeName != "worker-2" || oldObject.Labels["a"] != "b" {
		t.Errorf("old object %+v", oldObject)
	}
	got.Object, got.OldObject = nil, nil
	// The converted request is used, not the original one.
	if want := (noderestriction.Request{
		User: "system:node:worker-1", UID: "7", Groups: []string{"system:nodes", "system:authenticated"},
		Extra:     map[string][]string{"a": {"b", "c"}},
		Operation: noderestriction.Update, Version: "v1", Resource: "pods", Subresource: "status", Namespace: "shop", Name: "web",
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// TestReviewOfAnAPIServer decodes what kube-apiserver sends if a client writes a version
// that a webhook with matchPolicy Equivalent does not list: everything is converted to the
// version that the webhook lists.
func TestReviewOfAnAPIServer(t *testing.T) {
	slice := func(node string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"},
			ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.ResourceSliceSpec{NodeName: &node},
		}
	}
	asked := admission.NewAttributesRecord(slice("worker-1"), slice("worker-2"),
		schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1beta1", Kind: "ResourceSlice"}, "", "gpu",
		schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1beta1", Resource: "resourceslices"}, "",
		admission.Update, &metav1.UpdateOptions{}, false,
		&user.DefaultInfo{Name: "system:node:worker-1", UID: "7", Groups: []string{"system:nodes"}, Extra: map[string][]string{"a": {"b"}}})
	sent := request.CreateV1AdmissionReview("u", &admission.VersionedAttributes{
		Attributes: asked, VersionedObject: admission.NewLazyObject(slice("worker-1")),
		VersionedOldObject: admission.NewLazyObject(slice("worker-2")),
	}, &generic.WebhookInvocation{
		Resource: resourcev1.SchemeGroupVersion.WithResource("resourceslices"),
		Kind:     resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"),
	})
	sent.TypeMeta = metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"} // by the client's encoder
	document, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	r, err := DecodeAdmission(document, readBoth)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&noderestriction.Request{
		User: "system:node:worker-1", UID: "7", Groups: []string{"system:nodes"}, Extra: map[string][]string{"a": {"b"}},
		Operation: noderestriction.Update, Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices", Name: "gpu",
		Object: slice("worker-1"), OldObject: slice("worker-2"),
	}); r.UID() != "u" || !equality.Semantic.DeepEqual(r.Request(), want) {
		t.Errorf("\n got %+v\nwant %+v", r.Request(), want)
	}
}

func TestOnlyRequestedObjectsAreDecoded(t *testing.T) {
	broken := `{"kind":"Node","apiVersion":"v9","spec":[1]}`
	asked := noderestriction.Request{}
	r, err := DecodeAdmission([]byte(podStatus(aPod, broken)), func(req *noderestriction.Request) (object, oldObject bool) {
		asked = *req
		return true, false
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Resource != "pods" || asked.Operation != noderestriction.Update || asked.User != "system:node:worker-1" {
		t.Errorf("asked about %+v", asked)
	}
	if req := r.Request(); req.Object == nil || req.OldObject != nil {
		t.Errorf("object %v, old object %v", req.Object, req.OldObject)
	}
	if r, err = DecodeAdmission([]byte(podStatus("null", aPod)), readBoth); err != nil {
		t.Fatal(err)
	}
	if req := r.Request(); req.Object != nil || req.OldObject == nil {
		t.Errorf("object %v, old object %v", req.Object, req.OldObject)
	}
}

func TestAdmissionReviewsThatCannotBeRead(t *testing.T) {
	good := podStatus(aPod, anOther)
	change := func(old, changed string) string {
		if strings.Count(good, old) == 0 {
			t.Fatalf("no %s in the review", old)
		}
		return strings.Replace(good, old, changed, 1)
	}
	for _, tc := range []struct{ rule, document, want string }{
		{"nothing", "", "not valid JSON"},
		{"no object", `"x"`, "want an object, got a string"},
		{"truncated", good[:len(good)-2], "not valid JSON: text ends in the middle of an object"},
		{"truncated within an object", good[:700], "not valid JSON: text ends in the middle of an object"},
		{"two documents", good + good, "not valid JSON"},
		{
			"another kind", accessV1,
			`kind "SubjectAccessReview" of apiVersion "authorization.k8s.io/v1": want AdmissionReview of admission.k8s.io/v1`,
		},
		{
			"an old version", change("admission.k8s.io/v1", "admission.k8s.io/v1beta1"),
			`kind "AdmissionReview" of apiVersion "admission.k8s.io/v1beta1": want AdmissionReview of admission.k8s.io/v1`,
		},
		{
			"an answer", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1","allowed":true}}`,
			"request: Required value",
		},
		{"no uid", change(`"uid":"705ab4f5-6393-11e8-b7cc-42010a800002"`, `"uid":""`), "request.uid: Required value"},
		{
			"no kind of the object", change(`"kind":{"group":"","version":"v1","kind":"Pod"}`, `"kind":{}`),
			"request.kind.kind: Required value",
		},
		{
			"no resource", change(`"resource":{"group":"","version":"v1","resource":"pods"}`, `"resource":null`),
			"request.resource.resource: Required value",
		},
		{"no operation", change(`"operation":"UPDATE"`, `"x":1`), `request.operation: Unsupported value: ""`},
		{
			"an unknown operation", change(`"UPDATE"`, `"update"`),
			`request.operation: Unsupported value: "update": supported values: "CREATE", "UPDATE", "DELETE", "CONNECT"`,
		},
		{"no user", change(`"userInfo":{`, `"userInfo":{},"x":{`), "request.userInfo.username: Required value"},
		{"a wrong type", change(`"subResource":"status"`, `"subResource":1`), "request.subResource: want a string, got a number"},
		{
			"an object of another kind than the request says", change(aPod, `{"kind":"Node","apiVersion":"v1"}`),
			`request.object: kind "Node" of apiVersion "v1": want Pod of v1`,
		},
		{
			"an object of another version", change(aPod, `{"kind":"Pod","apiVersion":"v2"}`),
			`request.object: kind "Pod" of apiVersion "v2": want Pod of v1`,
		},
		{
			"an old object of another kind", change(anOther, `{"kind":"Eviction","apiVersion":"policy/v1"}`),
			`request.oldObject: kind "Eviction" of apiVersion "policy/v1": want Pod of v1`,
		},
		{"an object without a kind", change(aPod, `{"spec":{}}`), `request.object: kind "" of apiVersion "": want Pod of v1`},
		{"an object that is a list", change(aPod, `[]`), "request.object: want an object, got a list"},
		{
			"a wrong type in an object", change(`"nodeName":"worker-1"`, `"nodeName":{}`),
			"request.object.spec.nodeName: want a string, got an object",
		},
		{
			"a wrong type in a list of an old object",
			change(`"containers":null}`, `"containers":null},"status":{"resourceClaimStatuses":[{"name":[]}]}`),
			"request.oldObject.status.resourceClaimStatuses[0].name: want a string, got a list",
		},
		{
			"an invalid quantity",
			change(
				`"resources":{"limits":{"cpu":"1500m"}}}]}`,
				`"x":1}]},"status":{"nodeAllocatableResourceClaimStatuses":[{"mapping":[{"quantity":"much"}]}]}`,
			),
			"request.object.status.nodeAllocatableResourceClaimStatuses[0].mapping[0].quantity: quantities must match",
		},
		{
			"a quantity that takes long to parse",
			change(
				`"resources":{"limits":{"cpu":"1500m"}}}]}`,
				`"x":1}]},"status":{"nodeAllocatableResourceClaimStatuses":[{"mapping":[{"quantity":"`+strings.Repeat("1", 1000)+`"}]}]}`,
			),
			"request.object.status.nodeAllocatableResourceClaimStatuses[0].mapping[0].quantity: the quantity is longer than 64 bytes",
		},
		{
			"a map that is a list", change(anOther, `{"kind":"Pod","apiVersion":"v1","metadata":{"labels":[]}}`),
			"request.oldObject.metadata.labels: want an object, got a list",
		},
		{
			"a kind that no rule reads",
			change(`"kind":{"group":"","version":"v1","kind":"Pod"}`, `"kind":{"group":"apps","version":"v1","kind":"Deployment"}`),
			`request.object: kind "Deployment" of apiVersion "apps/v1": no rule is about this kind`,
		},
		{
			"a version that no rule reads",
			change(`"kind":{"group":"","version":"v1","kind":"Pod"}`, `"kind":{"group":"policy","version":"v2","kind":"Eviction"}`),
			`request.object: kind "Eviction" of apiVersion "policy/v2": want Eviction of policy/v1 or policy/v1beta1`,
		},
		{"too large", change(`"name":"web"`, `"name":"`+strings.Repeat("x", MaxDocument)+`"`), "larger than 41943040 bytes"},
		{"too deep", change(aPod, nested(maxDepth)), "not valid JSON: exceeded max depth"},
		{"broken within an object that is not read", change(`"kind":"UpdateOptions"`, `"kind":`), "not valid JSON"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			r, err := DecodeAdmission([]byte(tc.document), readBoth)
			if err == nil {
				t.Fatalf("read as %+v", r.Request())
			}
			if !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("\n got %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestAllErrorsAreReportedAtOnce(t *testing.T) {
	_, err := DecodeAdmission([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}`), readBoth)
	for _, path := range []string{
		"request.uid", "request.kind.kind", "request.resource.resource", "request.operation", "request.userInfo.username",
	} {
		if err == nil || !strings.Contains(err.Error(), path+": ") {
			t.Errorf("nothing about %s: %v", path, err)
		}
	}
}

func TestRespond(t *testing.T) {
	r, err := DecodeAdmission([]byte(admissionOf("x")), readNothing)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		rule   string
		answer noderestriction.Answer
		want   string
	}{
		{
			"allowed",
			noderestriction.Answer{Decision: verdict.Allow, Code: "Good", Status: 200, Reason: verdict.Reason{Message: "fine"}},
			`{"uid":"u-x","allowed":true,"status":{"code":200,"message":"fine"},"auditAnnotations":{"code":"Good"}}`,
		},
		{
			"refused; the hint and the path are not for the node",
			noderestriction.Answer{
				Decision: verdict.Deny, Code: "Bad", Node: "worker-1", Rule: "nodes: labels", Status: 403, StatusReason: "Forbidden",
				Stale:  true,
				Reason: verdict.Reason{Code: "Bad", Message: `no "<b>"`, Hint: "hint"},
			},
			`{"uid":"u-x","allowed":false,"status":{"code":403,"reason":"Forbidden","message":"no \"<b>\""},` +
				`"auditAnnotations":{"code":"Bad","node":"worker-1","rule":"nodes: labels"}}`,
		},
		{
			"an error that the client retries",
			noderestriction.Answer{Decision: verdict.Deny, Code: "Late", Status: 500, Reason: verdict.Reason{Message: "later"}},
			`{"uid":"u-x","allowed":false,"status":{"code":500,"message":"later"},"auditAnnotations":{"code":"Late"}}`,
		},
		{
			"an empty answer refuses",
			noderestriction.Answer{},
			`{"uid":"u-x","allowed":false,"status":{"code":403,"reason":"Forbidden"}}`,
		},
		{
			"no opinion refuses",
			noderestriction.Answer{Decision: verdict.NoOpinion, Status: 200},
			`{"uid":"u-x","allowed":false,"status":{"code":403,"reason":"Forbidden"}}`,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			checkResponse(t, r.Respond(tc.answer), false, tc.want)
		})
	}
}

func TestRespondPatch(t *testing.T) {
	r, err := DecodeAdmission([]byte(admissionOf("x")), readNothing)
	if err != nil {
		t.Fatal(err)
	}
	checkResponse(t, r.RespondPatch(nil), true, `{"uid":"u-x","allowed":true,"status":{"code":200}}`)
	checkResponse(
		t, r.RespondPatch([]byte(`[]`)), true, `{"uid":"u-x","allowed":true,"status":{"code":200},"patch":"W10=","patchType":"JSONPatch"}`,
	)
}

// checkResponse also decodes the document as kube-apiserver does.
func checkResponse(t *testing.T, document []byte, mutating bool, want string) {
	t.Helper()
	want = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":` + want + `}`
	if string(document) != want {
		t.Errorf("\n got %s\nwant %s", document, want)
	}
	object, err := kubernetesDecodes(document)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := request.VerifyAdmissionResponse("u-x", mutating, object); err != nil {
		t.Errorf("kube-apiserver rejects the answer: %v", err)
	}
}

func FuzzDecodeAdmission(f *testing.F) {
	f.Add([]byte(podStatus(aPod, anOther)))
	f.Add([]byte(podStatus("null", aPod)))
	f.Add([]byte(admissionOf("yes")))
	f.Add([]byte(
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","kind":{"group":"policy",` +
			`"version":"v1","kind":"Eviction"},"resource":{"version":"v1","resource":"pods"},` +
			`"subResource":"eviction","operation":"CREATE","userInfo":{"groups":["g"]},` +
			`"object":{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web"}}}}`,
	))
	oddWrites(f).seed(func(document []byte) { f.Add(document) })
	f.Fuzz(func(t *testing.T, document []byte) {
		ours, err := DecodeAdmission(document, readBoth)
		if err != nil {
			return
		}
		theirs, theirErr := kubernetesDecodesRead(t, document, "response", "request.requestKind", "request.requestResource",
			"request.requestSubResource", "request.dryRun")
		if theirErr != nil {
			t.Fatalf("read as %+v, but Kubernetes says %v", ours.Request(), theirErr)
		}
		compareRequests(t, ours, theirs.(*admissionv1.AdmissionReview).Request)
		if _, err := kubernetesDecodes(ours.Respond(noderestriction.Answer{})); err != nil {
			t.Errorf("Kubernetes cannot read the answer: %v", err)
		}
	})
}

func compareRequests(t *testing.T, ours *AdmissionReview, theirs *admissionv1.AdmissionRequest) {
	t.Helper()
	got := *ours.Request()
	want := noderestriction.Request{
		User: theirs.UserInfo.Username, UID: theirs.UserInfo.UID, Groups: theirs.UserInfo.Groups, Extra: map[string][]string{},
		Operation: noderestriction.Operation(theirs.Operation),
		Group:     theirs.Resource.Group, Version: theirs.Resource.Version, Resource: theirs.Resource.Resource,
		Subresource: theirs.SubResource,
		Namespace:   theirs.Namespace, Name: theirs.Name,
	}
	for key, values := range theirs.UserInfo.Extra {
		want.Extra[key] = values
	}
	if ours.UID() != string(theirs.UID) {
		t.Errorf("uid %q, Kubernetes reads %q", ours.UID(), theirs.UID)
	}
	got.Object, got.OldObject = nil, nil
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nKubernetes reads %+v", got, want)
	}
}

// compareObjects decodes the text with the decoder of kube-apiserver, if it has
// the type.
func compareObjects(t *testing.T, got runtime.Object, text []byte) {
	t.Helper()
	if got == nil {
		if len(text) > 0 && string(text) != "null" {
			t.Errorf("no object of %s", text)
		}
		return
	}
	want, err := kubernetesDecodes(text)
	if runtime.IsNotRegisteredError(err) {
		return
	}
	if err != nil {
		t.Fatalf("%s is read as %+v, but Kubernetes says %v", text, got, err)
	}
	if node, ok := want.(*corev1.Node); ok {
		node.Status = corev1.NodeStatus{} // not decoded: no rule reads it
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%s\n got %s\nKubernetes reads %s", text, describe(got), describe(want))
	}
}

func describe(object runtime.Object) string {
	text, err := json.Marshal(object)
	return fmt.Sprintf("%T %s, %v", object, text, err)
}
