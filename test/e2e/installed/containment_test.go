package installed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

var (
	scopes      = policyv1alpha1.GroupVersion().WithResource(policyv1alpha1.NodeScopeResource)
	quarantines = policyv1alpha1.GroupVersion().WithResource(policyv1alpha1.QuarantineResource)
)

var kindOf = map[schema.GroupVersionResource]string{scopes: policyv1alpha1.NodeScopeKind, quarantines: policyv1alpha1.QuarantineKind}

// containment returns the objects of a resource, with all rights.
func containment(t *testing.T, resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(resource)
}

// withSpec returns an object with a spec in YAML.
func withSpec(t *testing.T, resource schema.GroupVersionResource, name, spec string) *unstructured.Unstructured {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": kindOf[resource],
		"metadata": map[string]any{"name": name}, "spec": fields,
	}}
}

// tryCreate creates an object as a dry run.
func tryCreate(t *testing.T, resource schema.GroupVersionResource, spec string) (*unstructured.Unstructured, error) {
	t.Helper()
	return containment(t, resource).Create(t.Context(), withSpec(t, resource, "tried", spec), metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
}

// problems returns "FIELD: MESSAGE" for each mistake that the API server found.
func problems(err error) []string {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return []string{fmt.Sprint(err)}
	}
	var all []string
	for _, cause := range status.Status().Details.Causes {
		all = append(all, cause.Field+": "+cause.Message)
	}
	return all
}

const agent = "subjects: [{namespace: kube-system, name: agent}]\nmode: Enforce\n"

func TestAPIServerAccepts(t *testing.T) {
	const certificate = "X509SHA256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		resource schema.GroupVersionResource
		spec     string
	}{
		"a scope without rules": {scopes, agent},
		"all accounts of a namespace": {
			scopes, "subjects: [{namespace: kube-system}, {namespace: kube-system, name: agent.v2}]\nmode: Observe\n",
		},
		"every field": {scopes, agent + `
tokensWithoutNode: Allow
otherwise: Allow
asNode: true
namedAsNode:
- {apiGroups: [cilium.io], resources: [ciliumnodes, ciliumnodes/status], verbs: ["*"], namespaces: [kube-system]}
- {apiGroups: ["", "*"], resources: ["*", "*/status"], verbs: [get, "impersonate-on:user-info:list"]}
selectsNode:
- {apiGroups: [""], resources: [pods], verbs: [list, watch, deletecollection], field: spec.nodeName}
podsOnNode:
- {resources: [pods, pods/status, "pods/*"], verbs: [get, create]}
- {apiGroups: ["", cilium.io], resources: [ciliumendpoints, ciliumendpoints/status, "pods/*"], verbs: ["*"], namespaces: [shop]}
anywhere:
- {apiGroups: [""], resources: [services], verbs: [get], resourceNames: ["system:a b", "*"], namespaces: [default]}
- {nonResourceURLs: ["*", /metrics, /healthz/*], verbs: [get]}
`},
		"metrics and users as resources": {scopes, agent + `
anywhere:
- {apiGroups: [custom.metrics.k8s.io], resources: [pods/http_requests], verbs: [get]}
- {apiGroups: [""], resources: [users], verbs: [impersonate], resourceNames: ["https://issuer.example.com/#jane"]}
`},
		"the quarantine of a node":    {quarantines, "node: ip-10-0-0-1.eu-west-1.compute.internal"},
		"that of a certificate":       {quarantines, "credential: " + certificate},
		"that of a token":             {quarantines, "credential: JTI=7f7c1f5e-7f5e-4a43-9c67-0d33a5c5c4a1"},
		"an empty list of exceptions": {quarantines, "node: worker-1\nallow: []"},
		"exceptions": {quarantines, `
node: worker-1
reason: "kubelet's key was copied: ticket 1234"
expirationTime: "2030-01-01T00:00:00Z"
allow:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update], namespaces: [kube-node-lease]}
- {nonResourceURLs: [/healthz], verbs: [get], serviceAccounts: [{namespace: monitoring}]}
`},
	} {
		t.Run(name, func(t *testing.T) {
			created, err := tryCreate(t, c.resource, c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if errs := validated(t, created); len(errs) > 0 {
				t.Errorf("the servers refuse it: %v", errs)
			}
		})
	}
}

// validated returns the mistakes that the servers find in an object.
func validated(t *testing.T, object *unstructured.Unstructured) field.ErrorList {
	t.Helper()
	if object.GetKind() == policyv1alpha1.NodeScopeKind {
		return nodescope.Validate(decoded[policyv1alpha1.NodeScope](t, object))
	}
	return quarantine.Validate(decoded[policyv1alpha1.Quarantine](t, object))
}

func decoded[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatal(err)
	}
	return into
}

func TestAPIServerRefuses(t *testing.T) {
	const (
		verbs   = "only list, watch and deletecollection have a field selector: name one of these"
		pods    = "without apiGroups, want pods, a subresource such as pods/status, or pods/*"
		single  = "want a resource or a subresource, or pods/*"
		either  = "a rule has either apiGroups and resources, or nonResourceURLs"
		path    = "a path begins with / or is *"
		star    = "* stands for the rest of a path, and only at its end"
		subject = "a quarantine is of either a node or a credential"
		form    = "want X509SHA256= and the 64 hexadecimal digits of a certificate, or JTI= and the UUID of a token, in lower case"
	)
	selects := func(verbs string) string {
		return agent + "selectsNode: [{apiGroups: [''], resources: [pods], field: spec.nodeName, verbs: [" + verbs + "]}]"
	}
	onNode := func(resource string) string {
		return agent + "podsOnNode: [{resources: [" + resource + "], verbs: [get]}]"
	}
	named := func(resources string) string {
		return agent + "podsOnNode: [{apiGroups: [x.org], resources: [" + resources + "], verbs: [get]}]"
	}
	anywhere := func(rule string) string { return agent + "anywhere: [{verbs: [get], " + rule + "}]" }
	allow := func(rule string) string { return "node: worker-1\nallow: [{verbs: [get], " + rule + "}]" }
	for name, c := range map[string]struct {
		resource   schema.GroupVersionResource
		spec, want string
	}{
		"no subjects":            {scopes, "subjects: []\nmode: Enforce", "spec.subjects: "},
		"no mode":                {scopes, "subjects: [{namespace: a}]", "spec.mode: Required"},
		"another mode":           {scopes, "subjects: [{namespace: a}]\nmode: Audit", `spec.mode: Unsupported value: "Audit"`},
		"a user as subject":      {scopes, "subjects: [{namespace: a, name: 'system:x'}]\nmode: Enforce", "spec.subjects[0].name: "},
		"another effect":         {scopes, agent + "otherwise: Refuse", `spec.otherwise: Unsupported value: "Refuse"`},
		"get with a selector":    {scopes, selects("list, get"), "spec.selectsNode[0].verbs[1]: " + verbs},
		"any verb with selector": {scopes, selects("'*'"), "spec.selectsNode[0].verbs[0]: " + verbs},
		"no verb":                {scopes, selects(""), "spec.selectsNode[0].verbs: "},
		"a verb twice":           {scopes, selects("list, list"), "spec.selectsNode[0].verbs[1]: Duplicate"},
		"no field": {
			scopes, strings.Replace(selects("list"), "field: spec.nodeName, ", "", 1), "spec.selectsNode[0].field: Required",
		},
		"a selector as field": {
			scopes, strings.Replace(selects("list"), "spec.nodeName", "spec.nodeName=a", 1), "spec.selectsNode[0].field: ",
		},
		"nodes as pods":          {scopes, onNode("nodes"), "spec.podsOnNode[0].resources: " + pods},
		"nodes beside pods":      {scopes, onNode("pods, nodes"), "spec.podsOnNode[0].resources: " + pods},
		"every resource as pods": {scopes, onNode("podtemplates, '*/status'"), "spec.podsOnNode[0].resources[1]: "},
		"every resource named like a pod": {
			scopes, named("things, '*'"), "spec.podsOnNode[0].resources[1]: ",
		},
		"every subresource named like a pod": {
			scopes, named("pods/*, things/*"), "spec.podsOnNode[0].resources[1]: " + single,
		},
		"every group of what is named like a pod": {
			scopes, strings.Replace(named("things"), "[x.org]", "['*']", 1), "spec.podsOnNode[0].apiGroups[0]: ",
		},
		"no group of what is named like a pod": {
			scopes, strings.Replace(named("things"), "[x.org]", "[]", 1), "spec.podsOnNode[0].apiGroups: ",
		},
		"pods of another group":        {scopes, onNode("podsandmore"), "spec.podsOnNode[0].resources: " + pods},
		"a subresource without a name": {scopes, onNode("pods/"), "spec.podsOnNode[0].resources[0]: "},
		"a verb in upper case": {
			scopes, agent + "podsOnNode: [{resources: [pods], verbs: [GET]}]", "spec.podsOnNode[0].verbs[0]: ",
		},
		"every subresource of a resource": {
			scopes, agent + "namedAsNode: [{apiGroups: [''], resources: ['nodes/*'], verbs: [get]}]", "spec.namedAsNode[0].resources[0]: ",
		},
		"a group with a version": {
			scopes, agent + "namedAsNode: [{apiGroups: [apps/v1], resources: [a], verbs: [get]}]", "spec.namedAsNode[0].apiGroups[0]: ",
		},
		"resources without a group": {scopes, anywhere("resources: [a]"), "spec.anywhere[0].apiGroups: required with resources"},
		"a group without resources": {scopes, anywhere("apiGroups: [a]"), "spec.anywhere[0].resources: required with apiGroups"},
		"neither":                   {scopes, anywhere("namespaces: [a]"), "spec.anywhere[0]: " + either},
		"both": {
			scopes, anywhere("apiGroups: [a], resources: [a], nonResourceURLs: [/a]"), "spec.anywhere[0]: " + either,
		},
		"names of paths": {
			scopes, anywhere("resourceNames: [a], nonResourceURLs: [/a]"), "spec.anywhere[0].resourceNames: paths have no names",
		},
		"namespaces of paths": {
			scopes, anywhere("namespaces: [a], nonResourceURLs: [/a]"), "spec.anywhere[0].namespaces: paths have no namespaces",
		},
		"a path without a slash": {scopes, anywhere("nonResourceURLs: [/a, b]"), "spec.anywhere[0].nonResourceURLs[1]: " + path},
		"a star in a path":       {scopes, anywhere("nonResourceURLs: [/a/*/b]"), "spec.anywhere[0].nonResourceURLs[0]: " + star},
		"two stars":              {scopes, anywhere("nonResourceURLs: [/a/**]"), "spec.anywhere[0].nonResourceURLs[0]: " + star},
		"a path with a space":    {scopes, anywhere("nonResourceURLs: ['/a b']"), "spec.anywhere[0].nonResourceURLs[0]: "},
		"a long name": {
			scopes, anywhere("apiGroups: [''], resources: [" + strings.Repeat("a", 254) + "]"), "spec.anywhere[0].resources[0]: Too long",
		},
		"too many rules": {
			scopes, agent + "anywhere: [" + strings.Repeat("{verbs: [get], nonResourceURLs: [/a]},", 65) + "]", "spec.anywhere: Too many",
		},
		"neither node nor credential": {quarantines, "reason: why", "spec: " + subject},
		"a node and a credential":     {quarantines, "node: a\ncredential: JTI=7f7c1f5e-7f5e-4a43-9c67-0d33a5c5c4a1", "spec: " + subject},
		"an empty node":               {quarantines, "node: ''", "spec.node: "},
		"a node's user":               {quarantines, "node: 'system:node:a'", "spec.node: "},
		"a fingerprint alone":         {quarantines, "credential: " + strings.Repeat("a", 64), "spec.credential: " + form},
		"a short fingerprint":         {quarantines, "credential: X509SHA256=00", "spec.credential: " + form},
		"a fingerprint in upper case": {quarantines, "credential: X509SHA256=" + strings.Repeat("A", 64), "spec.credential: " + form},
		"a token's name":              {quarantines, "credential: JTI=agent", "spec.credential: " + form},
		"text after a credential": {
			quarantines, "credential: JTI=7f7c1f5e-7f5e-4a43-9c67-0d33a5c5c4a10", "spec.credential: " + form,
		},
		"a long reason": {quarantines, "node: a\nreason: " + strings.Repeat("a", 1025), "spec.reason: Too long"},
		"a duration":    {quarantines, "node: a\nexpirationTime: 2h", "spec.expirationTime: "},
		"an exception for resources without a group": {
			quarantines, allow("resources: [a]"), "spec.allow[0].apiGroups: required with resources",
		},
		"an exception for a group": {
			quarantines, allow("apiGroups: [a]"), "spec.allow[0].resources: required with apiGroups",
		},
		"an exception for both": {
			quarantines, allow("apiGroups: [a], resources: [a], nonResourceURLs: [/a]"), "spec.allow[0]: " + either,
		},
		"an exception for everything": {quarantines, "node: a\nallow: [{verbs: ['*']}]", "spec.allow[0]: " + either},
		"an exception for half a path": {
			quarantines, allow("nonResourceURLs: [healthz]"), "spec.allow[0].nonResourceURLs[0]: " + path,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryCreate(t, c.resource, c.spec)
			field, message, _ := strings.Cut(c.want, ": ")
			if got := problems(err); !slices.ContainsFunc(got, func(p string) bool {
				return strings.HasPrefix(p, field+": ") && strings.Contains(p, message)
			}) {
				t.Errorf("the mistakes are\n%s\nwant\n%s", strings.Join(got, "\n"), c.want)
			}
		})
	}
}

// TestUnknownFieldsAreRefused: a rule that is misspelt would otherwise be dropped.
func TestUnknownFieldsAreRefused(t *testing.T) {
	_, err := tryCreate(t, scopes, agent+"namedAsNodes: []")
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.namedAsNodes"`) {
		t.Errorf("got %v", err)
	}
}

func TestScopesDenyByDefault(t *testing.T) {
	created, err := tryCreate(t, scopes, agent)
	if err != nil {
		t.Fatal(err)
	}
	scope := decoded[policyv1alpha1.NodeScope](t, created)
	if scope.Spec.TokensWithoutNode != policyv1alpha1.Deny || scope.Spec.Otherwise != policyv1alpha1.Deny {
		t.Errorf("the spec is %+v", scope.Spec)
	}
}
