package v1alpha1

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/crdtest"
)

func TestSchemaOfMachines(t *testing.T) {
	d := crdtest.Read(t, "machines.yaml")
	d.CheckNames(t, crdtest.Names{
		Group: Group, Version: Version, Kind: MachineKind, ListKind: MachineListKind, Resource: MachineResource,
	})
	d.CheckTypes(t, reflect.TypeFor[Machine]())
	d.CheckColumns(t, []string{"Node", "Approval", "Expires", "Age"}, []string{"EK", "Subject", "Address", "Requested", "From"})
	approval := d.Schema().At(t, "spec", "approval")
	if !slices.Equal(approval.Enum, []string{string(Pending), string(Approved)}) || approval.Default != string(Approved) {
		t.Errorf("approvals are %v, by default %v", approval.Enum, approval.Default)
	}
	crdtest.CheckDeepCopy(t, &MachineList{})
}

func TestOnlyApprovedMachinesAreRegistrations(t *testing.T) {
	for approval, want := range map[Approval]bool{"": true, Approved: true, Pending: false, "approved": false} {
		if got := (&Machine{Spec: MachineSpec{Approval: approval}}).IsApproved(); got != want {
			t.Errorf("approval %q: %v", approval, got)
		}
	}
}

func TestFormOfPublicKeysInTheSchema(t *testing.T) {
	form := regexp.MustCompile(crdtest.Read(t, "machines.yaml").Schema().At(t, "spec", "publicKeys").Items.Pattern)
	const block = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\nGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	for text, want := range map[string]bool{
		block: true, strings.TrimSpace(block): true,
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA": true, "ssh-rsa AAAAB3Nza== root@worker-1 of rack 7\n": true,
		"ecdsa-sha2-nistp521 AAAA": true, "sha256:" + strings.Repeat("0f", 32): true, "sha256:0f": false,
		"": false, "ssh-dss AAAA": false, "command=\"sh\" ssh-rsa AAAA": false,
		"ssh-rsa AAAA\nssh-rsa AAAA": false, block + block: false, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n": false,
	} {
		if form.MatchString(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
