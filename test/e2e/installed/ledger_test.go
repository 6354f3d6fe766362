package installed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

var attestations = v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)

func eventually(t *testing.T, what string, condition func() (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return condition() })
	if err != nil {
		t.Fatalf("wait until %s: %v", what, err)
	}
}

func ledger(t *testing.T) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(attestations)
}

// createEntry creates the ledger entry of an attested machine. The test deletes it.
func createEntry(t *testing.T, provider, instance, node string) *unstructured.Unstructured {
	t.Helper()
	entry := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": provider + "-" + instance},
		"spec": map[string]any{
			"provider": provider, "instanceID": instance, "nodeName": node,
			"addresses": []any{"10.0.7.21"}, "names": []any{node}, "zone": "eu-west-1a",
			"evidenceDigest": "sha256:" + strings.Repeat("0", 64), "attestedTime": "2026-03-01T12:00:00Z",
			"tokenID": "abc123", "tokenExpiration": "2026-03-01T12:05:00Z",
		},
	}}
	created, err := ledger(t).Create(t.Context(), entry, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ledger(t).Delete(context.Background(), entry.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return created
}

func TestCustomResourcesAreServed(t *testing.T) {
	for _, name := range []string{
		"nodeattestations.node-authorizer.io", "machines.node-authorizer.io",
		"nodescopes.policy.node-authorizer.io", "quarantines.policy.node-authorizer.io",
	} {
		t.Run(name, func(t *testing.T) {
			got := conditionsOfDefinition(t, name)
			if got["Established"] != "True" || got["NamesAccepted"] != "True" || got["NonStructuralSchema"] == "True" {
				t.Errorf("conditions are %v", got)
			}
		})
	}
}

// conditionsOfDefinition returns the conditions of a CustomResourceDefinition by type.
func conditionsOfDefinition(t *testing.T, name string) map[string]string {
	t.Helper()
	client, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	resource, err := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, err := unstructured.NestedSlice(resource.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range conditions {
		condition := c.(map[string]any)
		got[condition["type"].(string)] = condition["status"].(string)
	}
	return got
}

// table returns the output of `kubectl get` for a resource of the cluster, with or without the
// columns of -o wide.
func table(t *testing.T, resource schema.GroupVersionResource, wide bool) string {
	t.Helper()
	client, err := rest.HTTPClientFor(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		plane.Server()+"/apis/"+resource.GroupVersion().String()+"/"+resource.Resource, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var listed metav1.Table
	if err := json.NewDecoder(response.Body).Decode(&listed); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", response.Status, err)
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 6, 4, 3, ' ', 0)
	shown := func(i int) bool { return listed.ColumnDefinitions[i].Priority == 0 || wide }
	var header []string
	for i, column := range listed.ColumnDefinitions {
		if shown(i) {
			header = append(header, strings.ToUpper(column.Name))
		}
	}
	lines := []string{strings.Join(header, "\t")}
	for _, row := range listed.Rows {
		var cells []string
		for i, cell := range row.Cells {
			if shown(i) {
				cells = append(cells, cellText(cell))
			}
		}
		lines = append(lines, strings.Join(cells, "\t"))
	}
	for _, line := range lines {
		if _, err := w.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(text.String(), "")
}

// cellText returns an empty text for a missing field, like kubectl.
func cellText(cell any) string {
	if cell == nil {
		return ""
	}
	return fmt.Sprint(cell)
}

func TestLedgerColumns(t *testing.T) {
	for _, machine := range []struct {
		instance, node string
		status         map[string]any
	}{
		{"i-0a1", "ip-10-0-7-21.eu-west-1.compute.internal", nil},
		{"i-0a2", "ip-10-0-7-22.eu-west-1.compute.internal", status(v1alpha1.Certified, certified)},
		{"i-0a3", "ip-10-0-7-23.eu-west-1.compute.internal", status(v1alpha1.Registered, certified, registered)},
		{
			"i-0a4", "ip-10-0-7-24.eu-west-1.compute.internal",
			status(v1alpha1.Issued, condition{v1alpha1.ConditionCertified, "False", "WrongNodeName"}),
		},
		{
			"i-0a5", "ip-10-0-7-25.eu-west-1.compute.internal",
			status(v1alpha1.Registered, certified, registered, condition{v1alpha1.ConditionRefused, "True", "AlreadyAttested"}),
		},
		{
			"i-0a6", "ip-10-0-7-26.eu-west-1.compute.internal",
			status(v1alpha1.Revoked, certified, registered, condition{v1alpha1.ConditionRevoked, "True", "AttestationRevoked"}),
		},
	} {
		entry := createEntry(t, "aws", machine.instance, machine.node)
		if machine.status == nil {
			continue
		}
		entry.Object["status"] = machine.status
		if _, err := ledger(t).UpdateStatus(t.Context(), entry,
			metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "testdata/get-nodeattestations.golden", table(t, attestations, false))
	golden(t, "testdata/get-nodeattestations-wide.golden", table(t, attestations, true))
}

// condition is a condition of an entry.
type condition struct{ kind, status, reason string }

var (
	certified  = condition{v1alpha1.ConditionCertified, "True", "ClientCertificateApproved"}
	registered = condition{v1alpha1.ConditionRegistered, "True", "NodeRegistered"}
)

func status(phase v1alpha1.Phase, conditions ...condition) map[string]any {
	s := map[string]any{"phase": string(phase), "tokenID": "abc123"}
	var list []any
	for _, c := range conditions {
		list = append(list, map[string]any{
			"type": c.kind, "status": c.status, "reason": c.reason, "message": "", "lastTransitionTime": "2026-03-01T12:00:04Z",
		})
		if c == certified {
			s["certificateExpiration"] = "2027-03-01T12:00:04Z"
		}
	}
	s["conditions"] = list
	return s
}

// age is the column with the age of an entry, which varies.
var age = regexp.MustCompile(`(?m)(\s)\d+s(\s|$)`)

func golden(t *testing.T, path, got string) {
	t.Helper()
	got = age.ReplaceAllString(got, "${1}0s$2")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s does not match the output:\n%s", path, got)
	}
}

// An entry never changes its machine, and a revocation cannot be undone.
func TestAPIServerValidatesTheLedger(t *testing.T) {
	entry := createEntry(t, "aws", "i-0b1", "worker-b1")
	change := func(fields ...string) error {
		changed := entry.DeepCopy()
		if err := unstructured.SetNestedField(changed.Object, fields[len(fields)-1], fields[:len(fields)-1]...); err != nil {
			t.Fatal(err)
		}
		_, err := ledger(t).Update(t.Context(), changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, fields := range [][]string{
		{"spec", "instanceID", "i-0b2"}, {"spec", "provider", "gcp"}, {"spec", "tokenID", "ABC"}, {"spec", "addresses", "x"},
	} {
		if err := change(fields...); err == nil {
			t.Errorf("%s may become %s", strings.Join(fields[:2], "."), fields[2])
		}
	}
	if err := change("spec", "tokenID", "def456"); err != nil {
		t.Errorf("a further token: %v", err)
	}
	entry = bindsOnce(t, entry)
	// A command of a version without bindings can also revoke.
	entry.Object["status"] = status(v1alpha1.Revoked, certified)
	revoked, err := ledger(t).UpdateStatus(t.Context(), entry, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entry = revoked
	if err := change("spec", "tokenID", "def456"); err == nil {
		t.Error("a revoked machine gets a further token")
	}
	back := revoked.DeepCopy()
	back.Object["status"] = status(v1alpha1.Certified, certified)
	if _, err := ledger(t).UpdateStatus(t.Context(), back, metav1.UpdateOptions{}); err == nil {
		t.Error("a revoked machine is certified again")
	}
	wrong := createEntry(t, "aws", "i-0b3", "worker-b3").DeepCopy()
	wrong.SetName("aws-i-0b4")
	wrong.SetResourceVersion("")
	if _, err := ledger(t).Create(t.Context(), wrong, metav1.CreateOptions{}); err == nil ||
		!slices.Contains(strings.Fields(err.Error()), "PROVIDER-INSTANCEID") {
		t.Errorf("an entry has another machine's name: %v", err)
	}
}

// bindsOnce binds an entry's token to a key, and checks that every other change is
// refused. It returns the entry with its next token.
func bindsOnce(t *testing.T, entry *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	bind := func(entry *unstructured.Unstructured, id, digit string) (*unstructured.Unstructured, error) {
		changed := entry.DeepCopy()
		changed.Object["status"] = status(v1alpha1.Issued)
		if id != "" {
			changed.Object["status"].(map[string]any)["binding"] = map[string]any{
				"tokenID": id, "publicKey": "sha256:" + strings.Repeat(digit, 64),
			}
		}
		return ledger(t).UpdateStatus(t.Context(), changed, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	}
	if _, err := bind(entry, "def456", "0"); err == nil {
		t.Error("a token of another entry is bound")
	}
	if _, err := bind(entry, "abc123", "x"); err == nil {
		t.Error("a token is bound to an invalid key")
	}
	bound, err := bind(entry, "abc123", "0")
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]func() (*unstructured.Unstructured, error){
		"another key":       func() (*unstructured.Unstructured, error) { return bind(bound, "abc123", "1") },
		"no key":            func() (*unstructured.Unstructured, error) { return bind(bound, "", "") },
		"a key of no token": func() (*unstructured.Unstructured, error) { return bind(bound, "def456", "1") },
	} {
		if _, err := err(); err == nil {
			t.Errorf("a used token is bound to %s", what)
		}
	}
	if err := unstructured.SetNestedField(bound.Object, "def456", "spec", "tokenID"); err != nil {
		t.Fatal(err)
	}
	if bound, err = ledger(t).Update(t.Context(), bound, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("there is no next token after a used one: %v", err)
	}
	if bound, err = bind(bound, "def456", "1"); err != nil {
		t.Fatalf("the next token cannot be used: %v", err)
	}
	if err := unstructured.SetNestedField(bound.Object, "abc123", "spec", "tokenID"); err != nil {
		t.Fatal(err)
	}
	if bound, err = ledger(t).Update(t.Context(), bound, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return bound
}
