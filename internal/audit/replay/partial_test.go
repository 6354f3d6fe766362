package replay

import (
	"reflect"
	"testing"
)

// TestEachInputOfAPartialReportCounts: a report is not overwritten by one with another input, whichever it is.
func TestEachInputOfAPartialReportCounts(t *testing.T) {
	report := func() *Partial {
		return &Partial{Share: &Share{}, Files: []PartialFile{{Name: "audit.log", Size: 1, Begins: "first"}}}
	}
	if differ := report().InputsDiffer(report()); differ != "" {
		t.Errorf("the same inputs differ in %s", differ)
	}
	notRead := report()
	notRead.Files[0].Begins = ""
	if differ := report().InputsDiffer(notRead); differ != "" {
		t.Errorf("files that were not read yet differ in %s", differ)
	}
	for name, of := range map[string]func(p *Partial) reflect.Value{
		"evaluation": func(p *Partial) reflect.Value { return reflect.ValueOf(&p.Evaluation).Elem() },
		"share":      func(p *Partial) reflect.Value { return reflect.ValueOf(p.Share).Elem() },
		"files[0]":   func(p *Partial) reflect.Value { return reflect.ValueOf(&p.Files[0]).Elem() },
	} {
		for i := range of(report()).NumField() {
			other := report()
			switch field := of(other).Field(i); field.Kind() {
			case reflect.String:
				field.SetString("other")
			case reflect.Bool:
				field.SetBool(true)
			default:
				field.SetInt(7)
			}
			if report().InputsDiffer(other) == "" {
				t.Errorf("%s: another %s is no difference", name, of(other).Type().Field(i).Name)
			}
		}
	}
	chosen := report()
	chosen.Share = nil
	if report().InputsDiffer(chosen) == "" || chosen.InputsDiffer(report()) == "" {
		t.Error("files that the user chose are no difference")
	}
}
