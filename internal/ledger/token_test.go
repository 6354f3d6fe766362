package ledger_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/ledger"
)

func secret(t *testing.T) *corev1.Secret {
	t.Helper()
	e := entry("i-1", "worker-1")
	e.UID = "uid-1"
	e.Spec.TokenExpiration = metav1.NewTime(time.Date(2026, 11, 20, 13, 5, 0, 0, time.FixedZone("CET", 3600)))
	return ledger.NewTokenSecret(e, "0123456789abcdef")
}

func TestTokenIsReadAsItWasWritten(t *testing.T) {
	written := secret(t)
	metav1.SetMetaDataAnnotation(&written.ObjectMeta, ledger.PublicKeyAnnotation, "sha256:00")
	token, err := ledger.ParseToken(written)
	if err != nil {
		t.Fatal(err)
	}
	if token.Value() != "abc123.0123456789abcdef" || token.Entry != "test-i-1" || token.EntryUID != "uid-1" || token.PublicKey != "sha256:00" ||
		!token.Expiration.Equal(time.Date(2026, 11, 20, 12, 5, 0, 0, time.UTC)) {
		t.Errorf("token is %s of %s (%s) until %s, key %s", token, token.Entry, token.EntryUID, token.Expiration, token.PublicKey)
	}
}

func TestSecretsThatAreNoTokensOfTheLedger(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*corev1.Secret)
	}{
		{"of another type", func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }},
		{"under another name", func(s *corev1.Secret) { s.Name = "bootstrap-token-abc124" }},
		{"without an id", func(s *corev1.Secret) { delete(s.Data, "token-id") }},
		{"with an id that is none", func(s *corev1.Secret) { s.Data["token-id"] = []byte("ABC123"); s.Name = "bootstrap-token-ABC123" }},
		{"without a secret", func(s *corev1.Secret) { delete(s.Data, "token-secret") }},
		{"with a short secret", func(s *corev1.Secret) { s.Data["token-secret"] = []byte("0123456789abcde") }},
		{"for another group", func(s *corev1.Secret) { s.Data["auth-extra-groups"] = []byte("system:bootstrappers:kubeadm") }},
		{"for one group more", func(s *corev1.Secret) {
			s.Data["auth-extra-groups"] = []byte(ledger.TokenGroup + ",system:bootstrappers:kubeadm")
		}},
		{"without an end", func(s *corev1.Secret) { delete(s.Data, "expiration") }},
		{"with an end that cannot be read", func(s *corev1.Secret) { s.Data["expiration"] = []byte("tomorrow") }},
		{"without an owner", func(s *corev1.Secret) { s.OwnerReferences = nil }},
		{"of another owner", func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "Node" }},
		{"of an owner that does not control it", func(s *corev1.Secret) { s.OwnerReferences[0].Controller = nil }},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := secret(t)
			tc.change(s)
			token, err := ledger.ParseToken(s)
			if err == nil || token != nil {
				t.Fatalf("it is read as %v", token)
			}
			if strings.Contains(err.Error(), "0123456789abcde") {
				t.Errorf("the error holds the token: %v", err)
			}
		})
	}
}
