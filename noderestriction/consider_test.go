package noderestriction_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// withSlices also has resource slices: "own" of worker-1, "other" of worker-2.
type withSlices struct{ *cluster }

func (withSlices) ResourceSliceNode(name string) (node string, ok bool) {
	node, ok = map[string]string{"own": "worker-1", "other": "worker-2"}[name]
	return node, ok
}

// TestConsider decides each write of worker-1 without the object: of its own objects,
// of objects of another node, and of an unnamed object.
func TestConsider(t *testing.T) {
	r := noderestriction.New(withSlices{shop()}, nil, kubeversion.For(kubeversion.Latest))
	names := map[string][]string{
		"pods": {"web", "db", "none"}, "nodes": {"worker-1", "worker-2"}, "leases": {"worker-1", "worker-2"},
		"csinodes": {"worker-1", "worker-2"}, "resourceslices": {"own", "other", "none"}, "serviceaccounts": {"web"},
		"persistentvolumeclaims": {"data"},
	}
	var text strings.Builder
	for _, req := range written() {
		switch req.Resource {
		case "nodes", "csinodes", "resourceslices", "certificatesigningrequests":
		case "leases":
			req.Namespace = "kube-node-lease"
		default:
			req.Namespace = "shop"
		}
		for _, o := range []noderestriction.Operation{noderestriction.Create, noderestriction.Update, noderestriction.Delete} {
			for _, name := range append(slices.Clone(names[req.Resource]), "") {
				req.Operation, req.Name = o, name
				open := noderestriction.Open{Object: true, OldObject: true, Name: name == ""}
				answer, conditions := r.Consider(t.Context(), from("worker-1", req), open)
				if may := r.MayAllow(t.Context(), from("worker-1", req), open); may != (answer.Decision == verdict.Allow) {
					t.Errorf("%s %s %q: MayAllow is %t, and Consider decides %s", o, req.Resource, name, may, answer.Decision)
				}
				what := strings.TrimSuffix(req.Resource+"/"+req.Subresource, "/")
				fmt.Fprintf(&text, "%s %s %q: %s %s\n", o, what, name, answer.Decision, answer.Code)
				for _, c := range conditions {
					fmt.Fprintf(&text, "  %s (%s)\n", c.Requires, strings.Join(c.Of, ", "))
				}
			}
		}
	}
	compareGolden(t, "considered.golden", text.String())
}

// TestOwnNameIsTheOnlyOneThatPasses compares Condition.OwnName with decisions: if it
// is true, another name is refused and the node's own is not; otherwise no refusal is
// due to the name alone.
func TestOwnNameIsTheOnlyOneThatPasses(t *testing.T) {
	r := noderestriction.New(withSlices{shop()}, nil, kubeversion.For(kubeversion.Latest))
	marked := 0
	for _, req := range written() {
		if req.Resource == "leases" {
			req.Namespace = "kube-node-lease"
		}
		for _, o := range []noderestriction.Operation{noderestriction.Create, noderestriction.Update, noderestriction.Delete} {
			req.Operation, req.Name = o, ""
			open := noderestriction.Open{Object: true, OldObject: true, Name: true}
			_, conditions := r.Consider(t.Context(), from("worker-1", req), open)
			only := slices.ContainsFunc(conditions, func(c noderestriction.Condition) bool { return c.OwnName })
			open.Name = false
			req.Name = "worker-2"
			other, _ := r.Consider(t.Context(), from("worker-1", req), open)
			req.Name = "worker-1"
			own, left := r.Consider(t.Context(), from("worker-1", req), open)
			code := other.Code
			forName := code == noderestriction.WritesOtherNode || code == noderestriction.NotOwnLease ||
				code == noderestriction.NotOwnCSINode
			if only {
				marked++
			}
			if only && (other.Decision != verdict.Deny || own.Decision != verdict.Allow) ||
				only != (forName && own.Decision == verdict.Allow) {
				t.Errorf("%s %s/%s: marked %v, another name gets %s, the node's own %s", o, req.Resource, req.Subresource, only,
					code, own.Code)
			}
			if slices.ContainsFunc(left, func(c noderestriction.Condition) bool { return c.OwnName }) {
				t.Errorf("%s %s/%s: the name is given, and remains a condition: %v", o, req.Resource, req.Subresource, left)
			}
		}
	}
	if marked == 0 {
		t.Error("no condition is marked")
	}
}

func TestConsiderWithoutWhatIsOpen(t *testing.T) {
	everything := noderestriction.Open{Object: true, OldObject: true, Name: true, Namespace: true}
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	for _, tc := range []struct {
		rule       string
		request    *noderestriction.Request
		open       noderestriction.Open
		code       verdict.Code
		conditions int
	}{
		{
			"a user that is not a node is not restricted",
			&noderestriction.Request{User: "ada", Operation: noderestriction.Delete, Resource: "pods"}, everything,
			noderestriction.NotANode, 0,
		},
		{
			"a resource without rules is not restricted",
			from("worker-1", noderestriction.Request{Operation: noderestriction.Create, Resource: "events"}), everything,
			noderestriction.NotRestricted, 0,
		},
		{
			"a node without a name is refused",
			from("", noderestriction.Request{Operation: noderestriction.Create, Resource: "pods"}), everything,
			noderestriction.UnnamedNode, 0,
		},
		{
			"a lease in another namespace is refused, for any name",
			from("worker-1", noderestriction.Request{
				Operation: noderestriction.Create, Group: "coordination.k8s.io", Resource: "leases", Namespace: "shop",
			}),
			noderestriction.Open{Object: true, Name: true},
			noderestriction.NotLeaseNamespace, 0,
		},
		{
			"a lease with another name is refused, in any namespace",
			from("worker-1", noderestriction.Request{
				Operation: noderestriction.Create, Group: "coordination.k8s.io", Resource: "leases", Name: "worker-2",
			}),
			noderestriction.Open{Object: true, Namespace: true},
			noderestriction.NotOwnLease, 0,
		},
		{
			"a pod in an open namespace is not looked up",
			from("worker-1", noderestriction.Request{Operation: noderestriction.Delete, Resource: "pods", Name: "db"}),
			noderestriction.Open{Namespace: true},
			noderestriction.RestrictionsMet, 2,
		},
		{
			"if the state has no slices, the slice decides",
			from("worker-1", noderestriction.Request{
				Operation: noderestriction.Delete, Group: "resource.k8s.io", Resource: "resourceslices", Name: "own",
			}),
			noderestriction.Open{OldObject: true},
			noderestriction.RestrictionsMet, 1,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			answer, conditions := r.Consider(t.Context(), tc.request, tc.open)
			if answer.Code != tc.code || len(conditions) != tc.conditions {
				t.Errorf("got %s with %v, want %s with %d conditions", answer.Code, conditions, tc.code, tc.conditions)
			}
			checkAnswer(t, answer)
		})
	}
}

// checkConsidered leaves out each combination of parts of a request: the answer
// then agrees with the decision about the whole request.
func checkConsidered(t *testing.T, r *noderestriction.Restriction, req *noderestriction.Request, whole noderestriction.Answer) {
	t.Helper()
	for bits := range 16 {
		open := noderestriction.Open{Object: bits&1 != 0, OldObject: bits&2 != 0, Name: bits&4 != 0, Namespace: bits&8 != 0}
		if open.Object && !open.Name && nameOfWritten(req) != req.Name || open.OldObject && !stored(req) {
			continue // the known parts of the request contradict the open ones
		}
		bare := *req
		if open.Object {
			bare.Object = nil
		}
		if open.OldObject {
			bare.OldObject = nil
		}
		if open.Name {
			bare.Name = ""
		}
		if open.Namespace {
			bare.Namespace = ""
		}
		got, conditions := r.Consider(t.Context(), &bare, open)
		checkAnswer(t, got)
		depends := slices.ContainsFunc(conditions, func(c noderestriction.Condition) bool {
			return strings.HasSuffix(whole.Rule, ": "+c.Requires)
		})
		switch {
		case got.Decision == verdict.Deny && whole.Decision != verdict.Deny:
			t.Errorf("%+v: refused with %s, but allowed with everything given", open, got.Code)
		case whole.Code == noderestriction.UnexpectedObject && (open.Object || open.OldObject):
			// The open object is one of the resource's kind.
		case got.Decision == verdict.Allow && whole.Decision == verdict.Deny && !depends:
			t.Errorf("%+v: allowed on the conditions %v, but refused with %s by %q with everything given", open, conditions,
				whole.Code, whole.Rule)
		case bits == 0 && (got.Code != whole.Code || got.Rule != whole.Rule || len(conditions) > 0):
			t.Errorf("with everything given: %s (%s) with %v, want %s (%s)", got.Code, got.Rule, conditions, whole.Code, whole.Rule)
		}
	}
}

// nameOfWritten is the name of the object that is written, which API servers compare
// with the name in the request.
func nameOfWritten(req *noderestriction.Request) string {
	if req.Operation != noderestriction.Create || req.Object == nil || reflect.ValueOf(req.Object).IsNil() {
		return req.Name
	}
	o, err := meta.Accessor(req.Object)
	if err != nil {
		return req.Name
	}
	return o.GetName()
}

// stored reports whether the old object of a request can be an object of [shop]: a test
// with an old object that does not exist contradicts the state.
func stored(req *noderestriction.Request) bool {
	old, ok := req.OldObject.(*corev1.Pod)
	if !ok || old == nil {
		return req.Resource != "pods" || req.Subresource != "status"
	}
	known, ok := shop().Pod(req.Namespace, req.Name)
	return ok && known.Spec.NodeName == old.Spec.NodeName
}
