package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// written creates an entry of a machine that does not exist.
func written(t *testing.T, id string) *v1alpha1.NodeAttestation {
	t.Helper()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	entry, err := blue.Ledger.Create(t.Context(), &v1alpha1.NodeAttestation{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.EntryName("test", id)},
		Spec: v1alpha1.NodeAttestationSpec{
			Provider: "test", InstanceID: id, NodeName: id +
				".example", Names: []string{id + ".example"}, Addresses: []string{"192.0.2.1", "2001:db8::1"},
			Account: "111122223333", Region: "eu-central-1", Zone: "eu-central-1a", RemoteAddress: "192.0.2.1",
			EvidenceDigest: "sha256:" + strings.Repeat("0f", 32), EvidenceTime: &now, AttestedTime: now, TokenID: "abc123",
			TokenExpiration: now,
		},
		Status: v1alpha1.NodeAttestationStatus{Phase: v1alpha1.Registered},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blue.Ledger.Delete(context.Background(), entry.Name, nil); err != nil {
			t.Error(err)
		}
	})
	return entry
}

// current reads an entry.
func current(t *testing.T, entry *v1alpha1.NodeAttestation) *v1alpha1.NodeAttestation {
	t.Helper()
	entry, err := blue.Ledger.Get(t.Context(), entry.Name)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// A client that creates an entry cannot set the state of its token.
func TestEntryReadsAsIssuedTheMomentItIsCreated(t *testing.T) {
	entry := written(t, "ledger-1")
	if entry.Status.Phase != v1alpha1.Issued || entry.Phase() != v1alpha1.Issued {
		t.Errorf("status is %+v", entry.Status)
	}
}

func TestLedgerRefuses(t *testing.T) {
	entry := written(t, "ledger-2")
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.NodeAttestation)
		want   string
	}{
		{"another provider", func(a *v1alpha1.NodeAttestation) { a.Spec.Provider = "other" }, "one machine for good"},
		{"another machine", func(a *v1alpha1.NodeAttestation) { a.Spec.InstanceID = "ledger-3" }, "one machine for good"},
		{"an invalid node name", func(a *v1alpha1.NodeAttestation) { a.Spec.NodeName = "Worker 1" }, "spec.nodeName"},
		{"an invalid token id", func(a *v1alpha1.NodeAttestation) { a.Spec.TokenID = "ABC123" }, "spec.tokenID"},
		{"an invalid digest", func(a *v1alpha1.NodeAttestation) { a.Spec.EvidenceDigest = "sha1:00" }, "spec.evidenceDigest"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			changed := current(t, entry)
			tc.change(changed)
			if _, err := blue.Ledger.Update(t.Context(), changed); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one about %q", err, tc.want)
			}
		})
	}
	misnamed := entry.DeepCopy()
	misnamed.ObjectMeta = metav1.ObjectMeta{Name: "test-another"}
	if _, err := blue.Ledger.Create(t.Context(), misnamed); !apierrors.IsInvalid(err) {
		t.Errorf("error is %v: an entry has the name of another machine", err)
	}
}

func TestRevocationIsForGood(t *testing.T) {
	entry := written(t, "ledger-4")
	entry.Status.Phase = v1alpha1.Revoked
	if _, err := blue.Ledger.UpdateStatus(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	const final = "a machine that is revoked"
	for _, phase := range []v1alpha1.Phase{"", v1alpha1.Issued, v1alpha1.Registered} {
		back := current(t, entry)
		back.Status.Phase = phase
		if _, err := blue.Ledger.UpdateStatus(t.Context(), back); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), final) {
			t.Errorf("phase %q: error is %v", phase, err)
		}
	}
	token := current(t, entry)
	token.Spec.TokenID = "def456"
	if _, err := blue.Ledger.Update(t.Context(), token); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), final) {
		t.Errorf("a new token: error is %v", err)
	}
}

// TestLedgerReadsLikeAStory checks the columns of kubectl.
func TestLedgerReadsLikeAStory(t *testing.T) {
	entry := written(t, "ledger-5")
	var table metav1.Table
	text, err := blue.Client.CoreV1().RESTClient().Get().AbsPath("/apis", v1alpha1.Group, v1alpha1.Version, v1alpha1.Resource, entry.Name).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").Do(t.Context()).Raw()
	if err == nil {
		err = json.Unmarshal(text, &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	var columns, cells []string
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 && column.Name != "Age" {
			columns, cells = append(columns, column.Name), append(cells, fmt.Sprint(table.Rows[0].Cells[i]))
		}
	}
	if want := []string{"Name", "Node", "Phase", "Reason"}; !slices.Equal(columns, want) {
		t.Errorf("columns are %v, want %v", columns, want)
	}
	if want := []string{"test-ledger-5", "ledger-5.example", "Issued", "<nil>"}; !slices.Equal(cells, want) {
		t.Errorf("cells are %v, want %v", cells, want)
	}
}

func TestShortNameIsNobodyElses(t *testing.T) {
	lists, err := blue.Client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var holders []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if slices.Contains(resource.ShortNames, "na") || resource.Name == "na" {
				holders = append(holders, resource.Name)
			}
		}
	}
	if !slices.Equal(holders, []string{v1alpha1.Resource}) {
		t.Errorf("na is short for %v", holders)
	}
}
