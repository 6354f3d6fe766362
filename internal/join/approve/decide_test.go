package approve_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

func TestRequestsOfOthersAreNotDecided(t *testing.T) {
	type spec = certificatesv1.CertificateSigningRequestSpec
	for _, tc := range []struct {
		rule   string
		change func(*spec)
	}{
		{"another signer of Kubernetes", func(s *spec) { s.SignerName = certificatesv1.KubeAPIServerClientSignerName }},
		{"another signer", func(s *spec) { s.SignerName = "example.com/signer" }},
		{"a token of another service", func(s *spec) {
			s.Username = "system:bootstrap:aaaaaa"
			s.Groups = []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"}
		}},
		{"a user of our group who is not a token", func(s *spec) { s.Username, s.Groups = "eve", []string{v1alpha1.TokenGroup} }},
		{"a token with an invalid id", func(s *spec) { s.Username, s.Groups = "system:bootstrap:AAAAAA", []string{v1alpha1.TokenGroup} }},
		{"a token with a longer id", func(s *spec) { s.Username, s.Groups = "system:bootstrap:aaaaaaa", []string{v1alpha1.TokenGroup} }},
		{"a node's name without its group", func(s *spec) { s.Username, s.Groups = "system:node:worker-1", []string{"system:masters"} }},
		{"a node's group without its name", func(s *spec) { s.Username, s.Groups = "worker-1", []string{"system:nodes"} }},
	} {
		for kind, question := range wellFormed(t) {
			t.Run(kind+"/"+tc.rule, func(t *testing.T) {
				q := question(t)
				tc.change(&q.Request.Spec)
				if answer := approve.Decide(q); answer.Outcome != approve.Leave || answer.Code != approve.NotOurs {
					t.Errorf("%+v", answer)
				}
			})
		}
	}
}

// Writing an answer to such a request may be impossible.
func TestRequestsWithLongNamesAreNotDecided(t *testing.T) {
	for kind, question := range wellFormed(t) {
		q := question(t)
		q.Request.Name = strings.Repeat("n", 253)
		wants(t, approve.Decide(q), "")
		q.Request.Name += "n"
		if answer := approve.Decide(q); answer.Outcome != approve.Leave || answer.Code != approve.NotOurs {
			t.Errorf("%s: %+v", kind, answer)
		}
	}
}

func TestDecidedRequestsAreNotDecidedAgain(t *testing.T) {
	for kind, question := range wellFormed(t) {
		q := question(t)
		for _, condition := range []certificatesv1.RequestConditionType{
			certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed,
		} {
			q.Request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: condition, Status: corev1.ConditionTrue},
			}
			if answer := approve.Decide(q); answer.Outcome != approve.Leave || answer.Code != approve.AlreadyDecided {
				t.Errorf("%s that is %s: %+v", kind, condition, answer)
			}
		}
		q.Request.Status.Conditions, q.Request.Status.Certificate = nil, []byte("x")
		if answer := approve.Decide(q); answer.Outcome != approve.Leave || answer.Code != approve.AlreadyDecided {
			t.Errorf("%s with a certificate: %+v", kind, answer)
		}
	}
}

func TestANodeWithoutANameIsDenied(t *testing.T) {
	q := renewalQuestion(t)
	q.Request.Spec.Username = "system:node:"
	q.Request.Spec.Request = encoded(t, theKey(t), template("system:node:"))
	wants(t, approve.Decide(q), approve.WrongSubject)
}

func TestTheZeroAnswerDoesNothing(t *testing.T) {
	var answer approve.Answer
	if answer.Outcome != approve.Leave || answer.Kind != approve.Other {
		t.Errorf("%+v", answer)
	}
}

// TestRules lists the checks of each kind in order. UPDATE_GOLDEN=1 rewrites the list.
func TestRules(t *testing.T) {
	var b strings.Builder
	for _, kind := range []approve.Kind{approve.Client, approve.Renewal, approve.Serving} {
		fmt.Fprintf(&b, "%s\n", kind)
		for _, r := range approve.Rules(kind) {
			needs := "request"
			if r.Facts {
				needs = "facts"
			}
			fmt.Fprintf(&b, "  %-7s  %-25s  %s\n", needs, r.Code, r.Text)
		}
	}
	golden := filepath.Join("testdata", "rules.golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v; got\n%swant\n%s", err, b.String(), want)
	}
}

// TestOddRequestsAreDecided: the approver decides about each object that an API server could send.
func TestOddRequestsAreDecided(t *testing.T) {
	for kind, question := range wellFormed(t) {
		q := question(t)
		base, err := json.Marshal(q.Request)
		if err != nil {
			t.Fatal(err)
		}
		approved := 0
		for name, document := range oddjson.Documents(string(base), oddjson.Places(certificatesv1.CertificateSigningRequest{})) {
			q.Request = &certificatesv1.CertificateSigningRequest{}
			if json.Unmarshal(document, q.Request) != nil {
				continue
			}
			answer := approve.Decide(q)
			if ahead, decided := approve.Ahead(q.Request); decided && ahead != withoutNode(answer, ahead) {
				t.Errorf("%s, %s: Ahead answers %+v, Decide %+v", kind, name, ahead, answer)
			}
			if answer.Outcome == approve.Approve {
				approved++
				checkApproved(t, q.Request.Spec.Request, answer.Kind)
			}
		}
		if approved == 0 {
			t.Errorf("%s: no request is approved", kind)
		}
	}
}

// FuzzRequest uses any text as a request of any kind. An approved request has only allowed
// content, as crypto/x509 parses it.
func FuzzRequest(f *testing.F) {
	f.Add(encoded(f, theKey(f), template("system:node:worker-1")))
	f.Add(encoded(f, theKey(f), servingTemplate("worker-1", "10.0.0.7")))
	f.Add(encoded(f, theKey(f), servingTemplate("kubernetes.default")))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, question := range []func(testing.TB) *approve.Question{clientQuestion, renewalQuestion, servingQuestion} {
			q := question(t)
			q.Request.Spec.Request = text
			answer := approve.Decide(q)
			ahead, decided := approve.Ahead(q.Request)
			if decided && ahead != withoutNode(answer, ahead) {
				t.Errorf("Ahead answers %+v, Decide %+v", ahead, answer)
			}
			if answer.Outcome != approve.Approve {
				continue
			}
			checkApproved(t, text, answer.Kind)
		}
	})
}

// withoutNode makes answers comparable: Ahead does not know the node of a token.
func withoutNode(answer, ahead approve.Answer) approve.Answer {
	answer.Node = ahead.Node
	return answer
}
