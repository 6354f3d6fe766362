package v1alpha1

import (
	"reflect"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/crdtest"
)

func TestManifestsAreOfTheResources(t *testing.T) {
	for file, want := range map[string]crdtest.Names{
		"nodescopes.yaml":  {Kind: NodeScopeKind, ListKind: NodeScopeListKind, Resource: NodeScopeResource},
		"quarantines.yaml": {Kind: QuarantineKind, ListKind: QuarantineListKind, Resource: QuarantineResource},
	} {
		t.Run(file, func(t *testing.T) {
			want.Group, want.Version = Group, Version
			crdtest.Read(t, file).CheckNames(t, want)
		})
	}
}

// TestSchemasAreThoseOfTheTypes compares names, types and required fields. Everything has a bound.
func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	for file, of := range map[string]reflect.Type{
		"nodescopes.yaml": reflect.TypeFor[NodeScope](), "quarantines.yaml": reflect.TypeFor[Quarantine](),
	} {
		t.Run(file, func(t *testing.T) { crdtest.Read(t, file).CheckTypes(t, of) })
	}
}

func TestColumnsFitOnOneLine(t *testing.T) {
	crdtest.Read(t, "nodescopes.yaml").CheckColumns(t, []string{"Mode", "Accounts", "Accepted", "Age"}, []string{"Reason", "Message"})
	crdtest.Read(t, "quarantines.yaml").CheckColumns(t, []string{"Node", "Credential", "Until", "Accepted", "Age"},
		[]string{"Reason", "Message"})
}

func TestShortNames(t *testing.T) {
	for file, want := range map[string]string{"nodescopes.yaml": "nscope", "quarantines.yaml": "quar"} {
		if got := crdtest.Read(t, file).Spec.Names.ShortNames; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: short names are %v, want %s", file, got, want)
		}
	}
}

// TestOmittedEffectsDeny: the default of an omitted effect is Deny.
func TestOmittedEffectsDeny(t *testing.T) {
	spec := crdtest.Read(t, "nodescopes.yaml").Schema().At(t, "spec")
	for _, field := range []string{"tokensWithoutNode", "otherwise"} {
		effect := spec.At(t, field)
		if effect.Default != string(Deny) || !slices.Equal(effect.Enum, []string{string(Allow), string(Deny)}) {
			t.Errorf("%s is one of %v, and %v by default", field, effect.Enum, effect.Default)
		}
	}
	mode := spec.At(t, "mode")
	if mode.Default != nil || !slices.Equal(mode.Enum, []string{string(Observe), string(Enforce)}) {
		t.Errorf("mode is one of %v, and %v by default", mode.Enum, mode.Default)
	}
}

// TestMaximumSizes: a server keeps every object in memory, and there may be thousands.
func TestMaximumSizes(t *testing.T) {
	for _, file := range []string{"nodescopes.yaml", "quarantines.yaml"} {
		checkSizes(t, file+" spec", crdtest.Read(t, file).Schema().At(t, "spec"))
	}
}

func checkSizes(t *testing.T, path string, p crdtest.Property) {
	t.Helper()
	longest := 253
	if path == "quarantines.yaml spec.reason" {
		longest = 1024
	}
	if p.MaxLength > longest || p.MaxItems > 64 {
		t.Errorf("%s may have %d characters or %d elements", path, p.MaxLength, p.MaxItems)
	}
	if p.Items != nil {
		checkSizes(t, path+"[]", *p.Items)
	}
	for name, inner := range p.Properties {
		checkSizes(t, path+"."+name, inner)
	}
}

func TestDeepCopiesShareNothing(t *testing.T) {
	crdtest.CheckDeepCopy(t, &NodeScopeList{})
	crdtest.CheckDeepCopy(t, &QuarantineList{})
}

func TestDeepCopyOfNil(t *testing.T) {
	if (*NodeScope)(nil).DeepCopy() != nil || (*Quarantine)(nil).DeepCopy() != nil {
		t.Error("a copy of nothing is something")
	}
}
