package fakeapiserver

import (
	"reflect"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// ledgerProblem returns why the schema of NodeAttestations refuses a change; empty if
// it does not.
func ledgerProblem(was, is Object) string {
	if phase(was) == v1alpha1.Revoked && (phase(is) != v1alpha1.Revoked || !reflect.DeepEqual(is["spec"], was["spec"])) {
		return "a machine that is revoked stays revoked"
	}
	if !mayBind(was, is) {
		return "a token that was used for a key is good for no other"
	}
	return ""
}

// mayBind reports whether a binding may change: only when the next token is used.
func mayBind(was, is Object) bool {
	old, bound := part(part(was, "status"), "binding"), part(part(is, "status"), "binding")
	if reflect.DeepEqual(old, bound) || bound == nil && phase(is) == v1alpha1.Revoked {
		return true
	}
	return bound != nil && bound["tokenID"] == part(is, "spec")["tokenID"] && (old == nil || old["tokenID"] != bound["tokenID"])
}

func phase(o Object) v1alpha1.Phase {
	phase, _ := part(o, "status")["phase"].(string)
	return v1alpha1.Phase(phase)
}
