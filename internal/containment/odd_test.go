package containment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// oddPages are lists of one object with all their places.
func oddPages() map[string][]oddjson.Place {
	const page = `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","uid":"1","generation":1},"spec":%s}]}`
	return map[string][]oddjson.Place{
		fmt.Sprintf(page, `{"mode":"Enforce","subjects":[{"namespace":"a","name":"b"}]}`): oddjson.Places(v1alpha1.NodeScopeList{}),
		fmt.Sprintf(page, `{"node":"a","reason":"b"}`):                                    oddjson.Places(v1alpha1.QuarantineList{}),
	}
}

// compileAll does with objects what a server does.
func compileAll(t *testing.T, into *kept) {
	t.Helper()
	objects := rank(into.all())
	newScopes(nil).compile(t.Context(), objects, time.Now())
	newQuarantines(func() (int, bool) { return 1, true }, nil).compile(t.Context(), objects, time.Now())
}

// A list and an event of a watch are read, or an error, whatever is in an object.
func TestOddObjectsAreReadOrAnError(t *testing.T) {
	for base, places := range oddPages() {
		t.Run(base, func(t *testing.T) {
			read, errs := 0, 0
			for name, page := range oddjson.Documents(base, places) {
				into := newKept()
				_, err := readPage(bytes.NewReader(page), into.put)
				if err == nil {
					read++
					compileAll(t, into)
				} else {
					errs++
				}
				var list struct{ Items []json.RawMessage }
				if json.Unmarshal(page, &list) != nil || len(list.Items) == 0 {
					continue
				}
				for _, event := range []watch.EventType{watch.Added, watch.Error} {
					text := fmt.Sprintf(`{"type":%q,"object":%s}`, event, list.Items[0])
					_, object, err := newEventDecoder(io.NopCloser(strings.NewReader(text))).Decode()
					if err == nil && object == nil {
						t.Errorf("%s: %s has no object", name, text)
					}
				}
			}
			if read == 0 || errs == 0 {
				t.Errorf("%d are read, %d not: the documents are all valid, or all invalid", read, errs)
			}
		})
	}
}
