package source

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefusals(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := errors.New(`pods is forbidden: User "jane" cannot list resource "pods"`)
	for _, tc := range []struct{ rule, reason, want string }{
		{
			"a list that is not allowed", missingReason("list", pods, forbidden),
			`not allowed to list them (pods is forbidden: User "jane" cannot list resource "pods")`,
		},
		{"a watch, which commands do not need", missingReason("watch", pods, forbidden), ""},
		{"a version that is not supported", "the server serves pods only in version v9", ""},
		{"another text of a snapshot", "not allowed to list: who knows", ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := (Missing{Reason: tc.reason}).Refusal(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
