package v1alpha1

import (
	"reflect"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/crdtest"
)

func TestManifestIsOfTheResource(t *testing.T) {
	crdtest.Read(t, "nodeattestations.yaml").CheckNames(t, crdtest.Names{
		Group: Group, Version: Version, Kind: Kind, ListKind: ListKind, Resource: Resource,
	})
}

// TestSchemaIsThatOfTheTypes compares names, types and required fields.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	crdtest.Read(t, "nodeattestations.yaml").CheckTypes(t, reflect.TypeFor[NodeAttestation]())
}

// TestSchemaAllowsAllCredentials: a status that the schema rejects could not be written.
func TestSchemaAllowsAllCredentials(t *testing.T) {
	schema := crdtest.Read(t, "nodeattestations.yaml").Schema()
	if got := schema.At(t, "status", "credentials").MaxItems; got != MaxCredentials {
		t.Errorf("the schema takes %d credentials, an entry may hold %d", got, MaxCredentials)
	}
}

func TestPhasesOfTheSchemaAreThoseOfTheType(t *testing.T) {
	status := crdtest.Read(t, "nodeattestations.yaml").Schema().At(t, "status")
	phase := status.At(t, "phase")
	want := []string{string(Issued), string(Certified), string(Registered), string(Revoked)}
	if !slices.Equal(phase.Enum, want) {
		t.Errorf("phases are %v, want %v", phase.Enum, want)
	}
	if !reflect.DeepEqual(status.Default, map[string]any{"phase": string(Issued)}) || phase.Default != string(Issued) {
		t.Errorf("defaults are %v and %v: an entry must have the phase Issued when it is created", status.Default, phase.Default)
	}
}

func TestColumnsFitOnOneLine(t *testing.T) {
	crdtest.Read(t, "nodeattestations.yaml").CheckColumns(t, []string{"Node", "Phase", "Reason", "Age"},
		[]string{"Provider", "Instance", "Zone", "Address", "Token ID", "Certificate until"})
}

func TestPhaseIsOfTheTokenInSpec(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		status NodeAttestationStatus
		want   Phase
	}{
		{"nothing is known yet", NodeAttestationStatus{}, Issued},
		{"only the default", NodeAttestationStatus{Phase: Issued}, Issued},
		{"of this token", NodeAttestationStatus{Phase: Registered, TokenID: "token1"}, Registered},
		{"of an earlier token", NodeAttestationStatus{Phase: Registered, TokenID: "token0"}, Issued},
		{"revoked, whatever the token", NodeAttestationStatus{Phase: Revoked, TokenID: "token0"}, Revoked},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			entry := NodeAttestation{Spec: NodeAttestationSpec{TokenID: "token1"}, Status: tc.status}
			if got := entry.Phase(); got != tc.want {
				t.Errorf("phase is %s, want %s", got, tc.want)
			}
		})
	}
}

// TestDeepCopySharesNothing fills every field and looks for shared memory.
func TestDeepCopySharesNothing(t *testing.T) { crdtest.CheckDeepCopy(t, &NodeAttestationList{}) }
