package containment

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

func sized(n, size int) *object {
	room := size
	if size > maxSpec {
		room = 0
	}
	return keeping(n, size, room)
}

// keeping is an object of whose spec a part is kept.
func keeping(n, size, room int) *object {
	o := &object{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("o-%06d", n), UID: types.UID(fmt.Sprint(n)), ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(time.Unix(int64(n), 0)),
		},
		size: size, room: room,
	}
	if size <= maxSpec || room > 0 {
		o.spec = make([]byte, room)
	}
	return o
}

func within(all []ranked) (names []string) {
	for _, r := range all {
		if !r.exceeds {
			names = append(names, r.Name)
		}
	}
	return names
}

func TestTheOldestObjectsAreWithinTheBounds(t *testing.T) {
	for _, tc := range []struct {
		rule    string
		objects int
		object  func(n int) *object
		want    int
	}{
		{"as many as fit", maxObjects, func(n int) *object { return sized(n, 100) }, maxObjects},
		{"more than are used", maxObjects + 100, func(n int) *object { return sized(n, 100) }, maxObjects},
		{"specs that use up all bytes", 1000, func(n int) *object { return sized(n, maxSpec) }, maxSpecs / maxSpec},
		{"objects that are too large take no room", 1000, func(n int) *object { return sized(n, maxSpec+1) }, 1000},
		{
			"objects that are too large take the room of what is kept of them", 1000,
			func(n int) *object { return keeping(n, 1<<20, 32<<10) }, maxSpecs / (32 << 10),
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var objects []*object
			for i := range tc.objects {
				objects = append(objects, tc.object(tc.objects-i))
			}
			got := within(rank(objects))
			if len(got) != tc.want || got[0] != "o-000001" || got[len(got)-1] != fmt.Sprintf("o-%06d", tc.want) {
				t.Errorf("%d objects are within the bounds, from %s to %s; want %d", len(got), got[0], got[len(got)-1], tc.want)
			}
		})
	}
}

func TestSpecsOutOfBoundsAreDropped(t *testing.T) {
	t.Run("whole specs", func(t *testing.T) {
		dropSpecs(t, func(n int) *object { return sized(n, maxSpec) })
	})
	t.Run("parts of specs that are too large", func(t *testing.T) {
		dropSpecs(t, func(n int) *object { return keeping(n, 1<<20, 22<<10) })
	})
}

func dropSpecs(t *testing.T, make func(n int) *object) {
	t.Helper()
	k := newKept()
	for i := range 2000 {
		k.put(make(2000 - i)) // the oldest come last
		if k.bytes > 2*maxSpecs {
			t.Fatalf("after %d objects, %d bytes are held", i, k.bytes)
		}
	}
	held := 0
	for _, r := range rank(k.all()) {
		held += len(r.spec)
		if !r.exceeds && r.dropped() {
			t.Fatalf("%s is within the bounds, and its spec was dropped", r.Name)
		}
	}
	if held != k.bytes {
		t.Errorf("%d bytes are held, and %d are counted", held, k.bytes)
	}
	for _, o := range k.all() {
		k.remove(o.Name)
	}
	if k.bytes != 0 {
		t.Errorf("without objects, %d bytes are counted", k.bytes)
	}
}

func TestARestoredStoreIsComparedBySpec(t *testing.T) {
	a, b := sized(1, 10), sized(1, 10)
	if !sameSpec(a, b) {
		t.Error("two reads of an object differ")
	}
	b.spec = []byte("0123456789")
	if sameSpec(a, b) {
		t.Error("another spec under the same generation counts as the same")
	}
}

// pageOf is a page with many large objects, which is never in memory as a whole.
func pageOf(objects, size int) io.Reader {
	parts := []io.Reader{strings.NewReader(`{"kind":"QuarantineList","metadata":{"resourceVersion":"7","continue":"next"},"items":[`)}
	filling := bytes.Repeat([]byte("x"), size)
	for i := range objects {
		if i > 0 {
			parts = append(parts, strings.NewReader(","))
		}
		parts = append(parts, strings.NewReader(fmt.Sprintf(
			`{"metadata":{"name":"o-%d","uid":"%d","managedFields":[{"a":"`, i, i)), bytes.NewReader(filling),
			strings.NewReader(`"}]},"spec":{"reason":"`), bytes.NewReader(filling), strings.NewReader(`"}}`))
	}
	return io.MultiReader(append(parts, strings.NewReader(`]}`))...)
}

func TestAPageIsReadObjectByObject(t *testing.T) {
	into := newKept()
	const objects, size = 20, 1 << 20
	meta, err := readPage(pageOf(objects, size), into.put)
	if err != nil || meta.ResourceVersion != "7" || meta.Continue != "next" {
		t.Fatalf("got %+v, %v", meta, err)
	}
	all := into.all()
	if len(all) != objects || into.bytes != 0 {
		t.Errorf("%d objects with %d bytes are kept", len(all), into.bytes)
	}
	for _, r := range rank(all) {
		if !r.tooLarge() || r.exceeds || r.size < size || len(r.ManagedFields) > 0 {
			t.Fatalf("%s is kept with %d bytes", r.Name, r.size)
		}
	}
}

func TestABrokenPageIsAnError(t *testing.T) {
	whole := `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":7}]}`
	if _, err := readPage(strings.NewReader(whole), func(*object) {}); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := readPage(strings.NewReader(`{"metadata":{},"items":null}`), func(*object) {}); err != nil {
		t.Errorf("without items: got %v", err)
	}
	for end := range len(whole) {
		if _, err := readPage(strings.NewReader(whole[:end]), func(*object) {}); err == nil {
			t.Errorf("the part %s is not an error", whole[:end])
		}
	}
	for _, text := range []string{`[]`, `7`, `{"items":7}`, `{"items":{}}`, `{"items":[7]}`, `{"items":[],"metadata":7}`} {
		if _, err := readPage(strings.NewReader(text), func(*object) {}); err == nil {
			t.Errorf("%s is not an error", text)
		}
	}
}

func FuzzReadPage(f *testing.F) {
	f.Add([]byte(`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z"},` +
		`"spec":{"node":"a"},"status":{"conditions":[{"type":"Accepted","status":"True"}]}}]}`))
	for base, places := range oddPages() {
		for page := range oddjson.Seeds(base, places) {
			f.Add(page)
		}
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		into := newKept()
		if _, err := readPage(bytes.NewReader(page), into.put); err != nil {
			return
		}
		for _, r := range rank(into.all()) {
			if !r.tooLarge() && r.spec == nil || len(r.spec) > maxSpec || len(r.spec) != r.room {
				t.Errorf("%s has a spec of %d bytes, and %d are kept", r.Name, r.size, len(r.spec))
			}
			newScopes(nil).compile(t.Context(), []ranked{r}, time.Now())
			newQuarantines(func() (int, bool) { return 1, true }, nil).compile(t.Context(), []ranked{r}, time.Now())
		}
	})
}

func BenchmarkCompileQuarantines(b *testing.B) {
	var objects []ranked
	for i := range maxObjects {
		o := sized(i, 0)
		o.spec = fmt.Appendf(nil, `{"node":"worker-%d","reason":"it sent requests that only an attacker sends","allow":[`+
			`{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]}`, i)
		o.size = len(o.spec)
		objects = append(objects, ranked{object: o})
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			newQuarantines(func() (int, bool) { return maxObjects, true }, nil).compile(b.Context(), objects, time.Now())
		}
	})
	b.Run("again", func(b *testing.B) {
		q := newQuarantines(func() (int, bool) { return maxObjects, true }, nil)
		for b.Loop() {
			q.compile(b.Context(), objects, time.Now())
		}
	})
}
