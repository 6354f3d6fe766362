package v1alpha1

import (
	"regexp"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/crdtest"
)

func TestUsersOfTokens(t *testing.T) {
	for user, want := range map[string]string{
		TokenUser("abc123"): "abc123", "system:bootstrap:abc123": "abc123", "system:bootstrap:ABC123": "", "system:bootstrap:abc1234": "",
		"system:bootstrap:ab:123": "", "system:bootstrap:": "", "abc123": "", "system:node:abc123": "",
	} {
		id, ok := TokenIDOf(user)
		if ok != (want != "") || ok && id != want {
			t.Errorf("%s has token %q, %v", user, id, ok)
		}
	}
}

func TestTokenIDsAreThoseOfTheSchema(t *testing.T) {
	pattern := regexp.MustCompile(crdtest.Read(t, "nodeattestations.yaml").Schema().At(t, "spec", "tokenID").Pattern)
	for _, id := range []string{"abc123", "000000", "zzzzzz", "", "abc12", "abc1234", "abc-12", "ABC123", "abc12\n", "äbc12"} {
		if got, want := IsTokenID(id), pattern.MatchString(id); got != want {
			t.Errorf("%q: %v, by the schema %v", id, got, want)
		}
	}
}
