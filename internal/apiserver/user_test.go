package apiserver

import (
	"encoding/base64"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

func TestUsersOfCredentials(t *testing.T) {
	certificate, key := newAuthority(t, "authority").leaf(t, "node-authorizer")
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
	}
	const account = "system:serviceaccount:kube-system:node-authorizer"
	for _, tc := range []struct {
		rule   string
		config rest.Config
		want   []string
	}{
		{"none", rest.Config{}, nil},
		{
			"a certificate",
			rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate, KeyData: key}},
			[]string{"node-authorizer"},
		},
		{"a token of a service account", rest.Config{BearerToken: token(`{"iss":"cluster","sub":"` + account + `"}`)}, []string{account}},
		{
			"both",
			rest.Config{
				BearerToken: token(`{"sub":"` + account + `"}`), TLSClientConfig: rest.TLSClientConfig{CertData: certificate, KeyData: key},
			},
			[]string{"node-authorizer", account},
		},
		{"a token of somebody else, whose user the API server makes", rest.Config{BearerToken: token(`{"sub":"ada"}`)}, nil},
		{"a token that is none", rest.Config{BearerToken: "a.b.c"}, nil},
		{"a token whose claims are none", rest.Config{BearerToken: token(`[]`)}, nil},
		{"a token in one part", rest.Config{BearerToken: "opaque"}, nil},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := usersOf(&tc.config); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
