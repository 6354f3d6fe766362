package containment

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// oddObjects are objects with all their places.
func oddObjects() map[string][]oddjson.Place {
	const object = `{"metadata":{"name":"a","uid":"1","generation":1},"spec":%s}`
	return map[string][]oddjson.Place{
		fmt.Sprintf(object, `{"mode":"Enforce","subjects":[{"namespace":"a","name":"b"}]}`): oddjson.Places(v1alpha1.NodeScope{}),
		fmt.Sprintf(object, `{"node":"a","reason":"b"}`):                                    oddjson.Places(v1alpha1.Quarantine{}),
	}
}

// compileAll compiles an object as a server does.
func compileAll(t *testing.T, o *object) {
	t.Helper()
	newScopes(nil).compile(t.Context(), rank([]*object{o}), time.Now())
	newQuarantines(func() (int, bool) { return 1, true }, nil).compile(t.Context(), rank([]*object{o}), time.Now())
}

// Any object is read, or is an error. An object whose spec or status does not fit is always read.
func TestOddObjectsAreReadOrAnError(t *testing.T) {
	for base, places := range oddObjects() {
		t.Run(base, func(t *testing.T) {
			read, errs := 0, 0
			for name, text := range oddjson.Documents(base, places) {
				o := new(object)
				err := json.Unmarshal(text, o)
				if err == nil {
					read++
					compileAll(t, o)
					continue
				}
				errs++
				var fits struct {
					Kind, APIVersion string
					Metadata         struct {
						Name, UID, ResourceVersion string
						Generation                 int64
						CreationTimestamp          *time.Time
					}
				}
				if json.Unmarshal(text, &fits) == nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if read == 0 || errs == 0 {
				t.Errorf("%d are read, %d not: the documents are all valid, or all invalid", read, errs)
			}
		})
	}
}
