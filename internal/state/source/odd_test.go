package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// oddObjects are objects of each kind in each version, and the header of a snapshot, with all places that are read.
func oddObjects() map[string][]oddjson.Place {
	all := map[string][]oddjson.Place{
		fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"objects":{}}`, snapshotGroup, snapshotVersion, snapshotKind): oddjson.Places(
			SnapshotHeader{}),
	}
	for k := range kindCount {
		info := k.describe()
		for _, version := range info.versions {
			version := schema.GroupVersion{Group: info.group, Version: version}
			all[fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":"b"}}`, version, info.name)] = keptPlaces(k)
		}
	}
	return all
}

// keptPlaces are the places of a kind's objects that lead to kept fields, and the places near the root.
func keptPlaces(k kind) []oddjson.Place {
	kept, err := os.ReadFile("testdata/kept_inventory.golden")
	if err != nil {
		panic(err)
	}
	steps := map[string]string{oddjson.Entry: "[]", "a": "{}"}
	return slices.DeleteFunc(oddjson.Places(k.describe().empty()), func(p oddjson.Place) bool {
		path := ""
		for _, step := range p {
			path += cmp.Or(steps[step], "."+step)
		}
		line := k.String() + " " + strings.TrimPrefix(strings.TrimPrefix(path, ".metadata"), ".")
		return len(p) > 2 && !bytes.Contains(kept, []byte(line))
	})
}

// Any object is read, or the error names its file.
func TestOddObjectsAreReadOrAnError(t *testing.T) {
	for base, places := range oddObjects() {
		t.Run(base, func(t *testing.T) {
			read, errs := 0, 0
			for name, document := range oddjson.Documents(base, places) {
				s, err := takeAll(t, document)
				input := new(manifest.Error)
				switch {
				case err == nil:
					read++
					answers(s)
				case errors.As(err, &input) && input.File == "stdin":
					errs++
				default:
					t.Errorf("%s: an error without a file: %v", name, err)
				}
			}
			if read == 0 || errs == 0 {
				t.Errorf("%d are read, %d not: the documents are all valid, or all invalid", read, errs)
			}
		})
	}
}

// takeAll makes a state of a text. It costs less than [LoadFiles].
func takeAll(t *testing.T, text []byte) (*State, error) {
	r := NewReader(FileOptions{Inventory: true})
	_, err := manifest.Read(t.Context(), []string{"-"}, manifest.Options{
		Stdin: bytes.NewReader(text), Wanted: func(string, string, []byte) bool { return true },
	}, func(d *manifest.Document) error {
		r.Take(d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.State("stdin")
}
