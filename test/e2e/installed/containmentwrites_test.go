package installed

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// createContained creates an object. The test deletes it.
func createContained(t *testing.T, resource schema.GroupVersionResource, name, spec string) *unstructured.Unstructured {
	t.Helper()
	created, err := containment(t, resource).Create(t.Context(), withSpec(t, resource, name, spec), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := containment(t, resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return created
}

func TestQuarantineStaysThatOfItsNodeOrCredential(t *testing.T) {
	const (
		token, fixed = "credential: JTI=7f7c1f5e-7f5e-4a43-9c67-0d33a5c5c4a1", "cannot be changed: make another quarantine"
		otherToken   = "credential: JTI=7f7c1f5e-7f5e-4a43-9c67-0d33a5c5c4a2"
	)
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"another node":         {"node: worker-1", "node: worker-2", []string{"spec.node"}},
		"another credential":   {token, otherToken, []string{"spec.credential"}},
		"a node's credential":  {"node: worker-1", token, []string{"spec.node", "spec.credential"}},
		"a credential's node":  {token, "node: worker-1", []string{"spec.node", "spec.credential"}},
		"another reason":       {"node: worker-1", "node: worker-1\nreason: why", nil},
		"a longer time":        {token, token + "\nexpirationTime: '2030-01-01T00:00:00Z'", nil},
		"an exception as well": {"node: worker-1", "node: worker-1\nallow: [{verbs: [get], nonResourceURLs: [/a]}]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := createContained(t, quarantines, "changed", c.before)
			object.Object["spec"] = withSpec(t, quarantines, "changed", c.after).Object["spec"]
			_, err := containment(t, quarantines).Update(t.Context(), object, metav1.UpdateOptions{})
			if c.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			got := problems(err)
			if len(got) != len(c.want) {
				t.Fatalf("the mistakes are %q", got)
			}
			for i, field := range c.want {
				if !strings.HasPrefix(got[i], field+": ") || !strings.HasSuffix(got[i], fixed) {
					t.Errorf("the mistakes are %q, want one of %s", got, field)
				}
			}
		})
	}
}

// accepted is a status with the condition Accepted.
func accepted(status, reason, message string) map[string]any {
	return map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{
		"type": policyv1alpha1.ConditionAccepted, "status": status, "reason": reason, "message": message,
		"observedGeneration": int64(1), "lastTransitionTime": "2026-03-01T12:00:04Z",
	}}}
}

func TestContainmentColumns(t *testing.T) {
	for _, c := range []struct {
		resource   schema.GroupVersionResource
		name, spec string
		status     map[string]any
	}{
		{scopes, "agent", agent, accepted("True", "Accepted", "")},
		{scopes, "monitoring", "subjects: [{namespace: monitoring}, {namespace: logging, name: fluent-bit}]\nmode: Observe", nil},
		{scopes, "newer", agent, accepted("False", "InvalidScope", "spec.anywhere[0].verbs: unknown")},
		{
			quarantines, "worker-1", "node: worker-1\nreason: a key was copied\nexpirationTime: '2030-01-01T00:00:00Z'",
			accepted("True", "Accepted", ""),
		},
		{quarantines, "worker-2", "node: worker-2", accepted("False", "TooManyNodes", "one node of 9 can be quarantined")},
		{quarantines, "token", "credential: JTI=7f7c1f5e-7f5e-4a43-9c67-0d33a5c5c4a1", nil},
	} {
		object := createContained(t, c.resource, c.name, c.spec)
		if c.status == nil {
			continue
		}
		object.Object["status"] = c.status
		if _, err := containment(t, c.resource).UpdateStatus(t.Context(), object,
			metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatal(err)
		}
	}
	for name, resource := range map[string]schema.GroupVersionResource{"get-nodescopes": scopes, "get-quarantines": quarantines} {
		golden(t, "testdata/"+name+".golden", table(t, resource, false))
		golden(t, "testdata/"+name+"-wide.golden", table(t, resource, true))
	}
}

// TestServerWritesOnlyTheStatus: whoever takes over a server can end no quarantine and change no scope.
func TestServerWritesOnlyTheStatus(t *testing.T) {
	config := rest.CopyConfig(plane.AdminConfig())
	config.Impersonate.UserName = "node-authorizer"
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for resource, spec := range map[schema.GroupVersionResource]string{scopes: agent, quarantines: "node: worker-1"} {
		t.Run(resource.Resource, func(t *testing.T) {
			object := createContained(t, resource, "written", spec)
			server := client.Resource(resource)
			ctx, dry := t.Context(), []string{metav1.DryRunAll}
			if _, err := server.List(ctx, metav1.ListOptions{}); err != nil {
				t.Error(err)
			}
			object.Object["status"] = accepted("True", "Accepted", "")
			changed := map[schema.GroupVersionResource]string{scopes: "mode", quarantines: "node"}[resource]
			object.Object["spec"].(map[string]any)[changed] = "another"
			written, err := server.UpdateStatus(ctx, object, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := unstructured.NestedString(written.Object, "spec", changed); err != nil || got == "another" {
				t.Error("the spec can be changed through the status")
			}
			_, err = server.Update(ctx, written, metav1.UpdateOptions{DryRun: dry})
			for verb, err := range map[string]error{
				"update": err,
				"delete": server.Delete(ctx, "written", metav1.DeleteOptions{DryRun: dry}),
				"create": func() error {
					_, err := server.Create(ctx, withSpec(t, resource, "created", spec), metav1.CreateOptions{DryRun: dry})
					return err
				}(),
			} {
				if !apierrors.IsForbidden(err) {
					t.Errorf("%s: %v", verb, err)
				}
			}
		})
	}
}
