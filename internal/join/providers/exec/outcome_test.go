package exec

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// answered is the outcome of what a program wrote, for a request with a public key.
func (a *Attestor) answered(out []byte) (*attest.Identity, error) {
	var answer v1alpha1.AttestResponse
	if err := a.runner.decode(out, &answer, v1alpha1.AttestResponseKind); err != nil {
		return nil, err
	}
	return a.outcome(&answer, &sealed{NodeName: "worker-1"}, &v1alpha1.AttestRequest{PublicKey: key, Evidence: []byte("{}")})
}

const head = `{"apiVersion":"node-authorizer.io/v1alpha1","kind":"AttestResponse",`

// TestAnswersOfPrograms: "" is an identity, a code a refusal, and everything else no decision.
func TestAnswersOfPrograms(t *testing.T) {
	a, _ := newAttestor(t, program(t))
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	const machine = `"instanceID":"m-1","nodeName":"worker-1"`
	many := strings.Repeat(`"a",`, maxNames) + `"a"`
	for text, want := range map[string]string{
		head + `"identity":{` + machine + `}}`:                                                                     "",
		head + `"identity":{` + machine + `,"publicKey":"` + key + `"}}`:                                           "",
		head + `"identity":{` + machine + `,"addresses":["::ffff:10.0.0.7","fd00::7"],"names":["a.example.com"]}}`: "",
		head + `"identity":{` + machine + `,"issued":"2026-01-02T03:04:05Z","singleUse":true,"evidenceID":"1"}}`:   "",
		head + `"identity":{` + machine + `,"account":"acct:7/shop","region":"eu-west","zone":"1"}}`:               "",
		head + `"identity":null,"refusal":{"code":"WrongTenant","message":"m"}}`:                                   "WrongTenant: m",
		head + `"refusal":{"code":"EvidenceMalformed","message":"m","malformed":true}}`:                            "EvidenceMalformed: m",
		head + `"challenge":{"document":{"nonce":"n"},"state":[1]}}`:                                               "answer a challenge",
		head + `"identity":{"instanceID":"m-1","nodeName":"kubernetes.default"}}`:                                  "ReservedName",
		head + `"identity":{"instanceID":"m-1","nodeName":"10.0.0.7"}}`:                                            "ReservedName",
		head + `"identity":{` + machine + `,"names":["worker-1","kubernetes.default.svc"]}}`:                       "ReservedName",
		head + `"refusal":{"code":"Allow","message":"m"},"identity":{` + machine + `}}`:                            "has 2 of identity",
		strings.TrimSuffix(head, ",") + `}`:                                                                        "has 0 of identity",
		head + `"refusal":{"code":"not CamelCase","message":"m"}}`:                                                 "refusal.code",
		head + `"refusal":{"code":"","message":"m"}}`:                                                              "refusal.code",
		head + `"challenge":{"state":1}}`:                                                                          "document is missing",
		head + `"challenge":{"document":1,"state":"` + strings.Repeat("a", maxState) + `"}}`:                       "has 8194 bytes",
		head + `"identity":{"nodeName":"worker-1"}}`:                                                               "identity.instanceID",
		head + `"identity":{"instanceID":"m_1","nodeName":"worker-1"}}`:                                            "identity.instanceID",
		head + `"identity":{"instanceID":"-1","nodeName":"worker-1"}}`:                                             "identity.instanceID",
		head + `"identity":{"instanceID":"` + strings.Repeat("a", 250) + `","nodeName":"worker-1"}}`:               "identity.instanceID",
		head + `"identity":{"instanceID":"m-1","nodeName":"Worker"}}`:                                              "the name \"Worker\"",
		head + `"identity":{"instanceID":"m-1"}}`:                                                                  "the name \"\"",
		head + `"identity":{` + machine + `,"names":["*.example.com"]}}`:                                           "the name \"*.example",
		head + `"identity":{` + machine + `,"names":[` + many + `]}}`:                                              "33 names",
		head + `"identity":{` + machine + `,"addresses":["127.0.0.1"]}}`:                                           "127.0.0.1",
		head + `"identity":{` + machine + `,"addresses":["fd00::1%eth0"]}}`:                                        "%eth0",
		head + `"identity":{` + machine + `,"addresses":["10.0.0.0/8"]}}`:                                          "10.0.0.0/8",
		head + `"identity":{` + machine + `,"zone":"a b"}}`:                                                        "identity.zone",
		head + `"identity":{` + machine + `,"publicKey":"` + otherKey + `"}}`:                                      "identity.publicKey",
		head + `"identity":{` + machine + `,"singleUse":true,"evidenceID":"1"}}`:                                   "singleUse",
		head + `"identity":{` + machine + `,"singleUse":true,"issued":"2026-01-02T03:04:05Z"}}`:                    "singleUse",
		head + `"identity":{` + machine + `,"issued":"` + future + `"}}`:                                           "in the future",
		head + `"identity":{` + machine + `,"issued":"yesterday"}}`:                                                "identity.issued",
		head + `"identity":{` + machine + `,"admin":true}}`:                                                        "identity.admin",
		head + `"identity":{` + machine + `,"nodeName":"worker-2"}}`:                                               "given twice",
		head + `"Identity":{` + machine + `}}`:                                                                     `"Identity"`,
		`{"apiVersion":"node-authorizer.io/v1beta1","kind":"AttestResponse","identity":{` + machine + `}}`:         "v1beta1",
		`{"apiVersion":"node-authorizer.io/v1alpha1","kind":"AttestRequest","identity":{` + machine + `}}`:         "AttestRequest",
		`{"identity":{` + machine + `}}`:                                                                           "it is",
		"":                                                                                                         "there is no text",
		head + `"identity":{` + machine + `}} ok`:                                                                  "not valid JSON",
	} {
		id, err := a.answered([]byte(text))
		switch {
		case (want == "") != (id != nil), want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s\n%v, want %q", text, err, want)
		case err != nil && !strings.Contains(want, ": m") && want != "ReservedName" && want != "answer a challenge":
			undecided(t, id, err, want)
		}
	}
}

func TestRoundsAreBounded(t *testing.T) {
	a, _ := newAttestor(t, program(t))
	answer := &v1alpha1.AttestResponse{Challenge: &v1alpha1.AttestChallenge{Document: []byte("1")}}
	_, err := a.outcome(answer, &sealed{Rounds: MaxRounds - 1}, &v1alpha1.AttestRequest{})
	undecided(t, nil, err, "more than 4 rounds")
}

// TestCopiesOfEvidenceAreOne: a copy in another layout, or with a part that nobody verified, has the same digest.
func TestCopiesOfEvidenceAreOne(t *testing.T) {
	a, _ := newAttestor(t, program(t))
	digest := func(evidenceID, evidence string) [32]byte {
		id, err := a.outcome(&v1alpha1.AttestResponse{Identity: &v1alpha1.AttestedIdentity{
			InstanceID: "m-1", NodeName: "worker-1", EvidenceID: evidenceID,
		}}, &sealed{}, &v1alpha1.AttestRequest{Evidence: []byte(evidence)})
		if err != nil {
			t.Fatal(err)
		}
		return id.Digest
	}
	if digest("", `{"a": 1}`) != digest("", "{\"a\":1}\n") || digest("", `{"a":1}`) == digest("", `{"a":2}`) ||
		digest("7", `{"a":1}`) != digest("7", `{"a":2}`) || digest("7", "{}") == digest("8", "{}") {
		t.Error("the digests do not tell copies from other evidence")
	}
}

// FuzzAnswer: what a program writes is an identity with all checks, a refusal with a code, or no decision.
func FuzzAnswer(f *testing.F) {
	a, _ := newAttestor(f, program(f))
	base := head + `"identity":{"instanceID":"m-1","nodeName":"worker-1","names":["a"],"addresses":["10.0.0.7"]}}`
	for odd := range oddjson.Seeds(base, oddjson.Places(v1alpha1.AttestResponse{})) {
		f.Add(odd)
	}
	f.Add([]byte(head + `"refusal":{"code":"WrongTenant","message":"m"}}`))
	f.Add([]byte(head + `"challenge":{"document":1}}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		id, err := a.answered(out)
		var refusal *attest.Refusal
		switch {
		case (id == nil) == (err == nil):
			t.Fatalf("%v, %v", id, err)
		case errors.As(err, &refusal) && !codeForm.MatchString(string(refusal.Code)):
			t.Fatal(refusal)
		case id == nil:
			return
		}
		for _, name := range append([]string{id.InstanceID, id.NodeName}, id.Names...) {
			if len(validation.IsDNS1123Subdomain(name)) > 0 {
				t.Errorf("the name %q", name)
			}
		}
		if id.PublicKey != "" && id.PublicKey != key || len(id.Addresses) > maxNames {
			t.Errorf("%+v", id)
		}
	})
}

// FuzzBody: no request of a machine ends the attestor, and none is an identity without a challenge.
func FuzzBody(f *testing.F) {
	a, c := newAttestor(f, Program{Command: []string{"/does/not/exist"}, Timeout: time.Second, MaxConcurrent: 1})
	text, err := c.Seal("fake", []byte(`{"nodeName":"worker-1"}`))
	if err != nil {
		f.Fatal(err)
	}
	base := `{"challenge":"` + c.Challenge() + `","publicKey":"` + key + `","evidence":{"a":[1]}}`
	for odd := range oddjson.Seeds(base, oddjson.Places(body{})) {
		f.Add(odd)
	}
	f.Add([]byte(`{"state":"` + text + `","evidence":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if id, err := a.Attest(context.Background(), request(text)); id != nil || err == nil {
			t.Errorf("%+v", id)
		}
	})
}
