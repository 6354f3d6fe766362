package noderestriction_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// written has resources that the rules know, and some that they do not know.
func written() []noderestriction.Request {
	return []noderestriction.Request{
		{Resource: "pods"},
		{Resource: "pods", Subresource: "status"},
		{Resource: "pods", Subresource: "eviction"},
		{Resource: "pods", Subresource: "binding"},
		{Resource: "nodes"},
		{Resource: "nodes", Subresource: "status"},
		{Resource: "persistentvolumeclaims"},
		{Resource: "persistentvolumeclaims", Subresource: "status"},
		{Resource: "serviceaccounts"},
		{Resource: "serviceaccounts", Subresource: "token"},
		{Group: "certificates.k8s.io", Resource: "podcertificaterequests"},
		{Group: "certificates.k8s.io", Resource: "podcertificaterequests", Subresource: "status"},
		{Group: "coordination.k8s.io", Resource: "leases"},
		{Group: "storage.k8s.io", Resource: "csinodes"},
		{Group: "storage.k8s.io", Resource: "csinodes", Subresource: "status"},
		{Group: "resource.k8s.io", Resource: "resourceslices"},
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"},
		{Resource: "secrets"},
	}
}

// TestChecks shows every check of the oldest and the newest minor.
func TestChecks(t *testing.T) {
	for _, minor := range []kubeversion.Minor{kubeversion.Oldest, kubeversion.Latest} {
		r := noderestriction.New(shop(), nil, kubeversion.For(minor))
		var text strings.Builder
		for _, req := range written() {
			for _, o := range []noderestriction.Operation{
				noderestriction.Create, noderestriction.Update, noderestriction.Delete, noderestriction.Connect,
			} {
				req.Operation = o
				fmt.Fprintf(&text, "%s %s %s/%s\n", o, req.Group, req.Resource, req.Subresource)
				for _, line := range r.Checks(from("worker-1", req)) {
					fmt.Fprintf(&text, "  %s\n", line)
				}
			}
		}
		compareGolden(t, "checks-"+minor.String()+".golden", text.String())
	}
}

func TestChecksOfUsersThatAreNotRestricted(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	req := &noderestriction.Request{User: "ada", Operation: noderestriction.Create, Resource: "pods"}
	if got := r.Checks(req); got != nil {
		t.Errorf("people are put to %q", got)
	}
}

// compareGolden compares with a file under testdata, which it writes when
// UPDATE_GOLDEN is set.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading what is wanted (UPDATE_GOLDEN=1 writes it): %v", err)
	}
	if got != string(want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", path, got, want)
	}
}
