package access_test

import (
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
)

// full returns a request with every field set, so that a test detects a field that a
// conversion misses.
func full(t *testing.T) access.Request {
	label, err := labels.NewRequirement("app", selection.In, []string{"web"})
	if err != nil {
		t.Fatal(err)
	}
	req := access.Request{
		User: "system:node:worker-1", UID: "7", Groups: []string{"system:nodes"}, Extra: map[string][]string{"key": {"value"}},
		Verb: "list", ResourceRequest: true, Group: "apps", Version: "v1", Resource: "deployments", Subresource: "status",
		Namespace: "shop", Name: "web",
		FieldSelector: fields.Requirements{{Field: "spec.nodeName", Operator: selection.Equals, Value: "worker-1"}},
		LabelSelector: labels.Requirements{*label},
		Path:          "/apis",
	}
	fields := reflect.ValueOf(req)
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			t.Fatalf("field %s of the test's request is not set", fields.Type().Field(i).Name)
		}
	}
	return req
}

// byValue hides the type of a record, so that its methods are used.
type byValue struct{ authorizer.AttributesRecord }

func TestAttributesAndBack(t *testing.T) {
	want := full(t)
	record := want.Attributes()
	for form, attrs := range map[string]authorizer.Attributes{
		"pointer to a record": record,
		"record":              *record,
		"another type":        byValue{*record},
	} {
		got := access.Request{User: "of an earlier request", Path: "/earlier"}
		access.FromAttributes(attrs, &got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", form, got, want)
		}
	}
}

func TestFromAttributesWithoutUser(t *testing.T) {
	got := access.Request{User: "of an earlier request", Groups: []string{"system:masters"}}
	access.FromAttributes(&authorizer.AttributesRecord{Verb: "get", Path: "/healthz"}, &got)
	if want := (access.Request{Verb: "get", Path: "/healthz"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSelectorsThatWereParsedInPartCount(t *testing.T) {
	parsed := fields.Requirements{{Field: "spec.nodeName", Operator: selection.Equals, Value: "worker-1"}}
	var got access.Request
	access.FromAttributes(authorizer.AttributesRecord{
		FieldSelectorRequirements: parsed, FieldSelectorParsingErr: errors.New("a requirement is not supported"),
	}, &got)
	if !reflect.DeepEqual(got.FieldSelector, parsed) {
		t.Errorf("got %v, want %v", got.FieldSelector, parsed)
	}
}

func TestFromAttributesDoesNotAllocate(t *testing.T) {
	record := &authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "system:node:worker-1", Groups: []string{"system:nodes"}},
		Verb: "get", Resource: "pods", ResourceRequest: true,
	}
	if allocations := testing.AllocsPerRun(100, func() {
		var req access.Request
		access.FromAttributes(record, &req)
	}); allocations != 0 {
		t.Errorf("%v allocations, want none", allocations)
	}
}
