package rbac_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// A binding that does not change must allow at every moment, while others change.
func TestReadersSeeWholeStates(t *testing.T) {
	p := fill(t, rbac.NewPolicy(rbac.ComputeAggregation()),
		aggregated("all", "x"), labelled(clusterRole("part", allow("get", "pods")), "x"),
		clusterRoleBinding("steady", "all", group("dev")))

	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			for i := range 500 {
				name := fmt.Sprint(w, "-", i%7)
				p.SetClusterRole(labelled(clusterRole(name, allow("list", "pods")), "x"))
				p.SetRole(role("shop", name, allow("get", "pods")))
				p.SetRoleBinding(roleBinding("shop", name, "Role", name, user("ann"), group("dev")))
				p.SetClusterRoleBinding(clusterRoleBinding(name, name, group("dev")))
				p.DeleteRole("shop", name)
				p.DeleteRoleBinding("shop", name)
				p.DeleteClusterRoleBinding(name)
				p.DeleteClusterRole(name)
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !p.Evaluate(&getPod).Allowed {
					t.Error("the steady binding does not allow")
					return
				}
				p.Explain(&getPod)
				p.RulesFor(getPod.User, getPod.Groups, "shop")
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func TestAnswerDoesNotDependOnOrderOfInsertion(t *testing.T) {
	objects := []any{
		clusterRole("r1", allow("get", "pods"), allow("list", "pods")),
		clusterRole("r2", allow("list", "pods"), allow("get", "pods")),
		role("shop", "r1", allow("get", "pods")),
		clusterRoleBinding("gone", "missing", group("dev"), user("ann")),
		clusterRoleBinding("m", "r2", group("dev"), user("ann")),
		clusterRoleBinding("n", "r1", user("ann")),
		clusterRoleBinding("o", "r1", group("system:authenticated")),
		roleBinding("shop", "a", "Role", "r1", user("ann")),
		roleBinding("shop", "b", "Role", "missing", user("ann")),
	}
	denied := getPod
	denied.Verb = "delete"
	ask := func() []any {
		p := policy(t, objects...)
		resource, nonResource, err := p.RulesFor(getPod.User, getPod.Groups, "shop")
		return []any{
			p.Evaluate(&getPod), p.Evaluate(&denied), p.Explain(&getPod), p.Explain(&denied),
			resource, nonResource, err.Error(),
		}
	}
	want := ask()
	if got := want[0].(rbac.Decision).Grant.Binding.Name; got != "m" {
		t.Errorf("allowed by %q", got)
	}
	for range 50 {
		rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		if got := ask(); !reflect.DeepEqual(got, want) {
			t.Fatalf("order %v:\n%v\nwant\n%v", objects, got, want)
		}
	}
}

func TestAllowedAnswerAllocatesNothing(t *testing.T) {
	p := manyBindings(t)
	if n := testing.AllocsPerRun(100, func() {
		if !p.Evaluate(&getPod).Allowed {
			t.Fatal("not allowed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// manyBindings returns a policy with 10,000 bindings of other users, and two of ann.
func manyBindings(tb testing.TB) *rbac.Policy {
	tb.Helper()
	var rules []rbacv1.PolicyRule
	for i := range 50 {
		rules = append(rules, allow("get", fmt.Sprint("resource-", i)))
	}
	p := policy(tb, clusterRole("many", rules...), clusterRole("reader", allow("get", "pods")),
		clusterRoleBinding("many", "many", group("system:authenticated")),
		roleBinding("shop", "reader", "ClusterRole", "reader", user("ann")))
	for i := range 10_000 {
		fill(tb, p, roleBinding("shop", fmt.Sprint("b", i), "ClusterRole", "many", user(fmt.Sprint("u", i))))
	}
	return p
}

func BenchmarkEvaluateAmong10000Bindings(b *testing.B) {
	p := manyBindings(b)
	b.ReportAllocs()
	for b.Loop() {
		p.Evaluate(&getPod)
	}
}

func BenchmarkEvaluateUnansweredAmong10000Bindings(b *testing.B) {
	p := manyBindings(b)
	req := getPod
	req.Verb = "delete"
	b.ReportAllocs()
	for b.Loop() {
		p.Evaluate(&req)
	}
}

func BenchmarkSetRoleBinding(b *testing.B) {
	p := manyBindings(b)
	rb := roleBinding("shop", "b5000", "ClusterRole", "reader", group("system:authenticated"), user("ann"))
	for b.Loop() {
		p.SetRoleBinding(rb)
	}
}
