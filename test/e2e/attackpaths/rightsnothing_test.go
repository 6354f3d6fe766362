package attackpaths

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// nothingBudget is how long the sample of rights that give nothing may take.
const nothingBudget = 12 * time.Second

// sensitive are the resources of which each right that gives nothing is in the sample before others.
var sensitive = []string{
	"secrets", "serviceaccounts", "tokenreviews", "certificatesigningrequests", "pods", "bindings", "nodes", "roles", "rolebindings",
	"clusterroles", "clusterrolebindings", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
	"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
	"persistentvolumes", "persistentvolumeclaims", "namespaces",
}

// sensitiveObjects are objects of these kinds, and others that rights are about.
var sensitiveObjects = opaque("shop", "key") + tokenSecret("shop", "token", "db") + bootstrapSecret +
	podOf("shop", "db-1", web1, "db", "  - {name: key, secret: {secretName: key}}") +
	podOf("shop", "db-2", "", "db", "  nodeSelector: {nowhere: x}") +
	roleOf("some", "shop", "user nobody", "get secrets@") + roleOf("some", "", "user nobody", "get secrets@") +
	someWebhooks("MutatingWebhookConfiguration") + someWebhooks("ValidatingWebhookConfiguration") + somePolicy +
	namespace("guarded", "") + policyFor("some", "CREATE", "pods", "false") + driverVolume + dataClaim +
	workloadOf("apps/v1", "Deployment", "shop", "web", 1) + someCronJob

// emptyRights are the rights that the API server serves and that give nothing, or something that is not followed, those to
// sensitive resources first.
func emptyRights(t *testing.T) []served {
	t.Helper()
	all, err := newest.serves(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s served) bool { return len(s.right.Gives) > 0 })
	place := func(s served) int {
		if i := slices.Index(sensitive, s.name); i >= 0 {
			return i
		}
		return len(sensitive)
	}
	slices.SortStableFunc(all, func(a, b served) int { return place(a) - place(b) })
	return all
}

// TestRightsThatGiveNothing uses each right that gives nothing, with each option: no answer has the content of a secret or
// a token, and what the account had not before is refused afterwards too.
func TestRightsThatGiveNothing(t *testing.T) {
	ctx := t.Context()
	newest.begin(t, sensitiveObjects)
	request, err := newCertificateRequest(holding{Kind: attackpaths.User, Name: "system:node:" + web1}, "some", kubeletSigner)
	if err != nil {
		t.Fatal(err)
	}
	if err := newest.admin.post(ctx, signingRequests.in(""), request.object).failure(); err != nil {
		t.Fatal(err)
	}
	found, err := newest.secretContents(ctx, func(holding) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	begin, done := time.Now(), 0
	all := emptyRights(t)
	for _, s := range all {
		if os.Getenv(rightsVariable) != "all" && time.Since(begin) > nothingBudget {
			break
		}
		done++
		t.Run(s.String(), func(t *testing.T) { s.givesNothing(t, newest, found) })
	}
	t.Logf("%d of %d rights in %s", done, len(all), time.Since(begin).Round(time.Second))
}

func (s served) givesNothing(t *testing.T, w *world, found *contents) {
	ctx := t.Context()
	in := ""
	if s.namespaced {
		in = "shop"
	}
	rule := s.verb + " " + s.name
	if s.subresource != "" {
		rule += "/" + s.subresource
	}
	role, err := decode(roleOf("right", in, "shop/web", rule+"@"+s.group))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range role {
		if err := w.admin.post(ctx, o.resource.in(o.namespace()), o.content).failure(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := w.admin.delete(context.WithoutCancel(ctx), o.path, nil).failure(); err != nil {
				t.Error(err)
			}
		}()
	}
	if err := w.settle(ctx); err != nil {
		t.Fatal(err)
	}
	e, err := w.newExecutor(ctx, accountWeb, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := rulesOf(t, e.actors[0])
	w.refuseAbsent(t, w.reach(t, accountWeb, nil, false))
	s.use(t, e, found)
	if after := rulesOf(t, e.actors[0]); after != before {
		t.Errorf("the account's rights were\n%s\nand are\n%s", before, after)
	}
	w.refuseAbsent(t, w.reach(t, accountWeb, nil, false))
}

// use sends each request that the right allows as a dry run, and those that change an object a little also in earnest.
func (s *served) use(t *testing.T, e *executor, found *contents) {
	t.Helper()
	ctx := t.Context()
	name, whole := e.anObject(ctx, s)
	var list []request
	for _, try := range []bool{true, false} {
		if try || slices.Contains([]string{"update", "patch"}, s.verb) || s.verb == "create" && s.namespaced {
			list = append(list, s.requests("shop", name, whole, try)...)
		}
	}
	for _, r := range list {
		a := r.send(ctx, e.actors[0].client)
		if err := found.found(a); err != nil {
			t.Error(err)
		}
		if a.refused() && !a.byAdmission() {
			t.Errorf("the right does not allow it: %s", a)
		}
	}
}

// anObject is an object that a right is about: one of the case in the namespace shop if there is one, else any, else none.
func (w *world) anObject(ctx context.Context, s *served) (name string, whole map[string]any) {
	all := w.list(ctx, s.resource)
	of := func(o object) bool { return !s.namespaced || o.namespace() == "shop" }
	all = slices.DeleteFunc(all, func(o object) bool { return !of(o) || o.name() == "right" })
	if len(all) == 0 {
		return "none", nil
	}
	i := max(0, slices.IndexFunc(all, func(o object) bool { return w.applied[o.path] }))
	o := all[i]
	if s.subresource != "" && w.admin.get(ctx, o.path+"/"+s.subresource).into(&whole) == nil && len(whole) > 0 {
		return o.name(), whole
	}
	return o.name(), o.content
}

// rulesOf are the rights that the API server lists for an identity.
func rulesOf(t *testing.T, a *actor) string {
	t.Helper()
	var all []authorizationv1.ResourceRule
	for _, namespace := range []string{"shop", "default", "kube-system"} {
		var review authorizationv1.SelfSubjectRulesReview
		review.Spec.Namespace = namespace
		if err := a.post(t.Context(), "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review).into(&review); err != nil {
			t.Fatal(err)
		}
		all = append(all, review.Status.ResourceRules...)
	}
	var rules []string
	for _, rule := range all {
		encoded, err := json.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, string(encoded))
	}
	slices.Sort(rules)
	encoded, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// Each verb that reads secrets is found to do so, and the verbs that do not are not.
func TestContentsAreFoundInAnswers(t *testing.T) {
	ctx, w := t.Context(), newest
	w.begin(t, opaque("shop", "key"))
	found, err := w.secretContents(ctx, func(holding) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.serves(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.name != "secrets" && s.subresource != "token" {
			continue
		}
		name := map[string]string{"secrets": "key", "serviceaccounts": "db"}[s.name]
		var whole map[string]any
		if err := w.admin.get(ctx, s.at("shop", name)).into(&whole); err != nil {
			t.Fatal(err)
		}
		read := false
		for _, r := range s.requests("shop", name, whole, s.subresource == "") {
			read = found.found(r.send(ctx, w.admin)) != nil || read
		}
		if want := s.name != "secrets" || s.verb != "create" && s.verb != "update"; read != want {
			t.Errorf("%s: found %t, want %t", &s, read, want)
		}
	}
}
