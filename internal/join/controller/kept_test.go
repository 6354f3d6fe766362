package controller

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
)

// Requesters may fill every field.
func TestTheKeptPartOfARequestIsLimited(t *testing.T) {
	const most = 8 << 10
	long := strings.Repeat("x", 1<<20)
	full := func(user string, groups ...string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{
				Name: "it", Annotations: map[string]string{"a": long}, Labels: map[string]string{long: "b"},
				Finalizers:      []string{long},
				OwnerReferences: []metav1.OwnerReference{{Name: long}}, GenerateName: long,
				ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(long)}},
			},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Username:   user, Groups: append(groups, long), UID: long,
				Request: bytes.Repeat([]byte("x"), 1<<20), Usages: []certificatesv1.KeyUsage{certificatesv1.KeyUsage(long)},
				Extra: map[string]certificatesv1.ExtraValue{long: {long}, "authentication.kubernetes.io/credential-id": {long}},
			},
			Status: certificatesv1.CertificateSigningRequestStatus{
				Certificate: bytes.Repeat([]byte("x"), 1<<20),
				Conditions: []certificatesv1.CertificateSigningRequestCondition{
					{
						Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
						Reason: string(approve.ClientCertificateApproved), Message: long,
					},
					{Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: long, Message: long},
				},
			},
		}
	}
	for user, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"a token":               full(v1alpha1.TokenUser("aaaaaa"), v1alpha1.TokenGroup),
		"a node":                full("system:node:worker-1", "system:nodes"),
		"a node of a long name": full("system:node:"+long, "system:nodes"),
		"another user":          full(long),
		"a request of another signer": func() *certificatesv1.CertificateSigningRequest {
			csr := full(long)
			csr.Spec.SignerName = "example.com/" + long
			return csr
		}(),
	} {
		kept, err := keep(csr)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(fmt.Sprintf("%+v %+v", kept, kept.(*request).refusal)); size > most {
			t.Errorf("of a request of %s %d bytes are kept, want at most %d", user, size, most)
		}
		if again, err := keep(kept); err != nil || again != kept {
			t.Errorf("a request of %s is transformed twice: %v", user, err)
		}
	}
}

func named(name string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Shortened names differ, and are still too long for a decision.
func TestNamesOfRequestsAreShortened(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var got []string
	for _, name := range []string{long + "1", long + "2", strings.Repeat("x", maxRequestName)} {
		kept, err := keep(named(name))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, kept.(*request).Name)
	}
	if len(got[0]) > 400 || len(got[0]) <= maxRequestName || got[0] == got[1] || len(got[1]) != len(got[0]) ||
		got[2] != strings.Repeat("x", maxRequestName) {
		t.Errorf("names of %d, %d and %d bytes", len(got[0]), len(got[1]), len(got[2]))
	}
}

func TestTheLastConditionCounts(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	csr := named("it")
	csr.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
	for i, kind := range []certificatesv1.RequestConditionType{
		certificatesv1.CertificateDenied, certificatesv1.CertificateFailed, certificatesv1.CertificateApproved,
	} {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: kind, LastUpdateTime: metav1.NewTime(at.Add(time.Duration(i) * time.Second)),
		})
	}
	kept, err := keep(csr)
	if err != nil || kept.(*request).refusal.Type != certificatesv1.CertificateFailed || kept.(*request).key != "" ||
		!kept.(*request).decided {
		t.Errorf("%+v, %v", kept, err)
	}
}
