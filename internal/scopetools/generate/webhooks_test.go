package generate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

const serverUser = "system:serviceaccount:node-authorizer:node-authorizer"

func scope(name string, subjects ...v1alpha1.Subject) *v1alpha1.NodeScope {
	return &v1alpha1.NodeScope{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeScopeSpec{Subjects: subjects, Mode: v1alpha1.Enforce},
	}
}

func options(t *testing.T, quarantines bool, scopes ...*v1alpha1.NodeScope) *generate.Options {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "authorize.kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: a,
contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a}],
clusters: [{name: a, cluster: {server: "https://127.0.0.1:10270/authorize"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return &generate.Options{
		Scopes: scopes, Quarantines: quarantines, ServerUsers: []string{serverUser}, FailurePolicy: generate.Deny,
		Minor: kubeversion.Latest, Kubeconfig: kubeconfig, URL: "https://127.0.0.1:10270/admit",
	}
}

// configuration writes an AuthorizationConfiguration and loads it as the API server does.
func configuration(t *testing.T, o *generate.Options) string {
	t.Helper()
	text, err := generate.Authorization(o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authorization.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := chain.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(loaded.Names()); got != "[node-authorizer-containment Node RBAC]" {
		t.Errorf("the order of authorizers is %s", got)
	}
	return text
}

// sender says of a user whether its requests are sent.
type sender func(name string, groups []string, extra map[string][]string) bool

func authorizationSender(t *testing.T, o *generate.Options) sender {
	t.Helper()
	decoded, err := load.LoadFromData([]byte(configuration(t, o)))
	if err != nil {
		t.Fatal(err)
	}
	matcher, errs := validation.ValidateAndCompileMatchConditions(
		authorizationcel.NewDefaultCompiler(), decoded.Authorizers[0].Webhook.MatchConditions,
	)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return func(name string, groups []string, extra map[string][]string) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: name, Groups: groups, Extra: map[string]authorizationv1.ExtraValue{},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Name: "a"},
		}}
		for key, values := range extra {
			review.Spec.Extra[key] = values
		}
		sent, err := matcher.Eval(t.Context(), review)
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
}

func admissionSender(t *testing.T, o *generate.Options) sender {
	t.Helper()
	text, err := generate.Admission(o)
	if err != nil {
		t.Fatal(err)
	}
	var webhooks registrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(strings.Replace(text, "caBundle: CA_BUNDLE", "caBundle: Q0E=", 1)), &webhooks); err != nil {
		t.Fatal(err)
	}
	webhook := &webhooks.Webhooks[0]
	if len(webhook.MatchConditions) > 64 {
		t.Fatalf("%d match conditions", len(webhook.MatchConditions))
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	var accessors []plugincel.ExpressionAccessor
	for i := range webhook.MatchConditions {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&webhook.MatchConditions[i]))
	}
	compiled := compiler.CompileCondition(accessors, plugincel.OptionalVariableDeclarations{HasAuthorizer: true},
		environment.NewExpressions)
	if errs := compiled.CompilationErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	matcher := matchconditions.NewMatcher(compiled, webhook.FailurePolicy, "webhook", "validating", webhook.Name)
	return func(name string, groups []string, extra map[string][]string) bool {
		resource := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
		attributes := admission.NewAttributesRecord(&corev1.Node{}, &corev1.Node{}, schema.GroupVersionKind{
			Version: "v1",
			Kind:    "Node",
		}, "", "a",
			resource, "", admission.Update, nil, false, &user.DefaultInfo{Name: name, Groups: groups, Extra: extra})
		result := matcher.Match(t.Context(), &admission.VersionedAttributes{Attributes: attributes}, nil, nil)
		if result.Error != nil {
			t.Fatal(result.Error)
		}
		return result.Matches
	}
}

func TestOnlyTheAccountsConcernedAreSent(t *testing.T) {
	scopes := []*v1alpha1.NodeScope{
		scope("cilium", v1alpha1.Subject{Namespace: "kube-system", Name: "cilium"}), scope("storage",
			v1alpha1.Subject{Namespace: "storage"}),
	}
	onNode := map[string][]string{"authentication.kubernetes.io/node-name": {"a"}}
	unbound := map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=1"}}
	nodes := []string{"system:nodes", "system:authenticated"}
	for _, tc := range []struct {
		rule       string
		user       string
		groups     []string
		extra      map[string][]string
		scoped     bool
		quarantine bool
	}{
		{"the account of a scope", "system:serviceaccount:kube-system:cilium", nil, onNode, true, true},
		{"without a node", "system:serviceaccount:kube-system:cilium", nil, unbound, true, true},
		{"without extra values", "system:serviceaccount:kube-system:cilium", nil, nil, true, true},
		{"another account of the namespace", "system:serviceaccount:kube-system:coredns", nil, unbound, false, false},
		{"another account on a node", "system:serviceaccount:kube-system:coredns", nil, onNode, false, true},
		{"any account of a namespace", "system:serviceaccount:storage:csi", nil, nil, true, true},
		{"a namespace that begins alike", "system:serviceaccount:storage-2:csi", nil, nil, false, false},
		{"a node", "system:node:a", nodes, nil, false, true},
		{"a person", "ada", nil, nil, false, false},
		{"a person with colons", "system:serviceaccount", nil, nil, false, false},
		{"the server", serverUser, nil, onNode, false, false},
	} {
		for name, send := range map[string]func(*testing.T, *generate.Options) sender{
			"authorization": authorizationSender, "admission": admissionSender,
		} {
			if got := send(t, options(t, false, scopes...))(tc.user, tc.groups, tc.extra); got != tc.scoped {
				t.Errorf("%s, %s: sent %v", name, tc.rule, got)
			}
			if got := send(t, options(t, true, scopes...))(tc.user, tc.groups, tc.extra); got != tc.quarantine {
				t.Errorf("%s with quarantines, %s: sent %v", name, tc.rule, got)
			}
		}
	}
}

// TestTheServerItselfIsNeverSent: not even if a scope names it.
func TestTheServerItselfIsNeverSent(t *testing.T) {
	o := options(t, true, scope("all", v1alpha1.Subject{Namespace: "node-authorizer"}))
	for name, send := range map[string]sender{"authorization": authorizationSender(t, o), "admission": admissionSender(t, o)} {
		if send(serverUser, nil, nil) || !send(serverUser+"-2", nil, nil) {
			t.Errorf("%s: the server is sent, or another account is not", name)
		}
	}
}

// TestLimitsWithAThousandScopes: the written conditions compile and are evaluated within the API server's
// limits, however long the names are.
func TestLimitsWithAThousandScopes(t *testing.T) {
	for _, tc := range []struct {
		rule            string
		namespace, name string // formats
		want            generate.Selection
	}{
		{"short names", "team-%d", "agent", generate.ByAccount},
		{"long names of accounts", "team-%d", strings.Repeat("n", 200), generate.ByNamespace},
		{"long names of both", strings.Repeat("s", 59) + "%d", strings.Repeat("n", 200), generate.AllAccounts},
	} {
		var scopes []*v1alpha1.NodeScope
		for i := range 1000 {
			scopes = append(scopes, scope(fmt.Sprintf("s%d", i), v1alpha1.Subject{Namespace: fmt.Sprintf(tc.namespace, i), Name: tc.name}))
		}
		for _, quarantines := range []bool{false, true} {
			o := options(t, quarantines, scopes...)
			if got := o.Selection(); got != tc.want {
				t.Errorf("%s: selects by %s, want %s", tc.rule, got, tc.want)
			}
			for _, send := range []sender{authorizationSender(t, o), admissionSender(t, o)} {
				last := scopes[999].Spec.Subjects[0]
				if !send("system:serviceaccount:"+last.Namespace+":"+last.Name, nil, nil) || send("ada", nil, nil) {
					t.Errorf("%s: the last account is not sent, or a person is", tc.rule)
				}
			}
		}
	}
}

func TestCachesAndVersions(t *testing.T) {
	for _, tc := range []struct {
		minor kubeversion.Minor
		has   []string
	}{
		{37, []string{"apiserver.config.k8s.io/v1\n", "cacheAuthorizedRequests: false", "cacheUnauthorizedRequests: false"}},
		{34, []string{"apiserver.config.k8s.io/v1\n", "cacheUnauthorizedRequests: false"}},
		{33, []string{"apiserver.config.k8s.io/v1\n", "authorizedTTL: 1ms", "unauthorizedTTL: 1ms"}},
		{0, []string{"apiserver.config.k8s.io/v1\n", "authorizedTTL: 1ms", "unauthorizedTTL: 1ms"}},
		{31, []string{"apiserver.config.k8s.io/v1beta1\n", "authorizedTTL: 1ms", "unauthorizedTTL: 1ms"}},
	} {
		o := options(t, true)
		o.Minor = tc.minor
		text := configuration(t, o)
		for _, want := range tc.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", tc.minor, want, text)
			}
		}
		if tc.minor < 34 && strings.Contains(text, "cacheAuthorizedRequests") {
			t.Errorf("%s does not know cacheAuthorizedRequests", tc.minor)
		}
	}
}

func TestFailurePolicies(t *testing.T) {
	for policy, want := range map[generate.FailurePolicy][2]string{
		generate.Deny: {"failurePolicy: Deny", "failurePolicy: Fail"}, generate.NoOpinion: {
			"failurePolicy: NoOpinion",
			"failurePolicy: Ignore",
		},
	} {
		o := options(t, true)
		o.FailurePolicy = policy
		authorization := configuration(t, o)
		admission, err := generate.Admission(o)
		if err != nil || !strings.Contains(authorization, want[0]) || !strings.Contains(admission, want[1]) {
			t.Errorf("%s: %v\n%s\n%s", policy, err, authorization, admission)
		}
	}
}

func TestTheDefaultFailurePolicyRefusesAsSoonAsSomethingDoes(t *testing.T) {
	with := func(mode v1alpha1.Mode) *v1alpha1.NodeScope {
		s := scope("agent", v1alpha1.Subject{Namespace: "kube-system", Name: "agent"})
		s.Spec.Mode = mode
		return s
	}
	for _, tc := range []struct {
		rule        string
		quarantines bool
		scopes      []*v1alpha1.NodeScope
		want        generate.FailurePolicy
	}{
		{"all observe", false, []*v1alpha1.NodeScope{with(v1alpha1.Observe), with(v1alpha1.Observe)}, generate.NoOpinion},
		{"one enforces", false, []*v1alpha1.NodeScope{with(v1alpha1.Observe), with(v1alpha1.Enforce)}, generate.Deny},
		{"an unknown mode", false, []*v1alpha1.NodeScope{with("")}, generate.Deny},
		{"all observe, with quarantines", true, []*v1alpha1.NodeScope{with(v1alpha1.Observe)}, generate.Deny},
		{"only quarantines", true, nil, generate.Deny},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := options(t, tc.quarantines, tc.scopes...).DefaultFailurePolicy(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestNothingToSend(t *testing.T) {
	o := options(t, false)
	if _, err := generate.Authorization(o); !errors.Is(err, generate.ErrNothingToSend) {
		t.Errorf("got %v", err)
	}
	if _, err := generate.Admission(o); !errors.Is(err, generate.ErrNothingToSend) {
		t.Errorf("got %v", err)
	}
}

// TestNamesCannotLeaveTheirLiteral: a name in a manifest is not checked by an API server.
func TestNamesCannotLeaveTheirLiteral(t *testing.T) {
	hostile := "a'] || true || user in ['\\\n\u2028"
	send := authorizationSender(t, options(t, false, scope("s", v1alpha1.Subject{Namespace: "n", Name: hostile})))
	if !send("system:serviceaccount:n:"+hostile, nil, nil) || send("ada", nil, nil) {
		t.Error("the name was not taken as text")
	}
}

func BenchmarkMatchConditions(b *testing.B) {
	var scopes []*v1alpha1.NodeScope
	for i := range 1000 {
		scopes = append(scopes, scope(fmt.Sprintf("s%d", i), v1alpha1.Subject{Namespace: fmt.Sprintf("team-%d", i), Name: "agent"}))
	}
	o := &generate.Options{Scopes: scopes, FailurePolicy: generate.Deny, Minor: kubeversion.Latest, Kubeconfig: "/etc/k"}
	text, err := generate.Authorization(o)
	if err != nil {
		b.Fatal(err)
	}
	decoded, err := load.LoadFromData([]byte(text))
	if err != nil {
		b.Fatal(err)
	}
	matcher, _ := validation.ValidateAndCompileMatchConditions(authorizationcel.NewDefaultCompiler(),
		decoded.Authorizers[0].Webhook.MatchConditions)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:x:y"}}
	for b.Loop() {
		if sent, err := matcher.Eval(b.Context(), review); sent || err != nil {
			b.Fatal(sent, err)
		}
	}
}
