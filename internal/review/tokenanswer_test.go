package review

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/iam"
)

// The output equals that of an encoder, for any strings.
func TestAnswersAreEncodedLikeEncodingJSON(t *testing.T) {
	type user struct {
		Username string              `json:"username"`
		UID      string              `json:"uid,omitempty"`
		Groups   []string            `json:"groups,omitempty"`
		Extra    map[string][]string `json:"extra,omitempty"`
	}
	type status struct {
		Authenticated bool     `json:"authenticated"`
		User          *user    `json:"user,omitempty"`
		Audiences     []string `json:"audiences,omitempty"`
		Error         string   `json:"error,omitempty"`
	}
	type answer struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Status     status `json:"status"`
	}
	check := func(got []byte, want status) {
		t.Helper()
		text, err := json.Marshal(answer{tokenReviewKind, tokenReviewBeta, want}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(text) {
			t.Errorf("\n got %s\nwant %s", got, text)
		}
	}
	r := &TokenReview{apiVersion: tokenReviewBeta}
	texts := []string{
		`"`, `\`, `","x":"`, "\x00\x1f\x7f\n\r\t", "<&>", "\u2028\u2029", "ä€😀", "a\xffb", "\xed\xa0\x80",
		strings.Repeat("x", 2*typicalAnswer), "",
	}
	for _, text := range texts {
		name := "ann" + text
		for _, u := range []user{
			{Username: name},
			{Username: name, UID: text, Groups: []string{text}},
			{
				Username: name, UID: text, Groups: []string{text, "b", text},
				Extra: map[string][]string{"b": nil, "a" + text: {text, "c"}, "c": {}},
			},
		} {
			for _, audiences := range [][]string{nil, {}, {text}, {"a", text}} {
				check(r.Answer(Authentication{
					User: &iam.User{Username: u.Username, UID: u.UID, Groups: u.Groups, Extra: u.Extra}, Audiences: audiences,
				}),
					status{Authenticated: true, User: &u, Audiences: audiences})
			}
		}
		check(r.Answer(Authentication{Refusal: iam.Refuse("NotMapped", "%s", text)}), status{Error: "NotMapped: " + text})
	}
}
