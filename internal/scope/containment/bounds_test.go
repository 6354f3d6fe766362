package containment

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

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
	o.spec = make([]byte, room)
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
	for rule, of := range map[string]func(n int) *object{
		"whole specs":                       func(n int) *object { return sized(n, maxSpec) },
		"parts of specs that are too large": func(n int) *object { return keeping(n, 1<<20, 22<<10) },
	} {
		t.Run(rule, func(t *testing.T) {
			l, err := New(Options{Cluster: &rest.Config{}, NodeScopes: true})
			if err != nil {
				t.Fatal(err)
			}
			f := l.ofScopes
			for i := range 2000 {
				o := of(2000 - i) // the oldest come last
				if err := f.copied.Update(o); err != nil {
					t.Fatal(err)
				}
				f.put(o)
				if i%100 == 0 && held(f.all()) > 2*maxSpecs+maxSpec {
					t.Fatalf("after %d objects, %d bytes are held", i, held(f.all()))
				}
			}
			for _, r := range rank(f.all()) {
				if !r.exceeds && r.dropped() {
					t.Fatalf("%s is within the bounds, and its spec was dropped", r.Name)
				}
			}
		})
	}
}

func held(objects []*object) (bytes int) {
	for _, o := range objects {
		bytes += len(o.spec)
	}
	return bytes
}

func TestWhatIsKeptOfAnObject(t *testing.T) {
	const subjects = `"subjects":[{"namespace":"a","name":"b"}]`
	filling := strings.Repeat("x", maxSpec)
	for _, tc := range []struct{ rule, spec, want string }{
		{"the spec", `{"mode":"Enforce","more":[7]}`, `{"mode":"Enforce","more":[7]}`},
		{"a spec of another type", `7`, `7`},
		{"no spec", ``, ``},
		{"of a large one the mode and the subjects", `{"x":"` + filling + `",` + subjects + `,"mode":7}`, `{"mode":7,` + subjects + `}`},
		{"of a large one without these nothing", `["` + filling + `"]`, `{}`},
		{"nothing of large subjects", `{"subjects":"` + filling + `","mode":"Enforce"}`, ``},
	} {
		var o object
		text := `{"metadata":{"name":"a","uid":"1","managedFields":[{"a":"` + filling + `"}]},"spec":` + tc.spec + `}`
		if tc.spec == "" {
			text = `{"metadata":{"name":"a","uid":"1"}}`
		}
		err := json.Unmarshal([]byte(text), &o)
		if err != nil || string(o.spec) != tc.want || o.Name != "a" || o.size != len(tc.spec) || o.tooLarge() != (len(tc.spec) > maxSpec) {
			t.Errorf("%s: kept %.100q of %d bytes, %v; want %q", tc.rule, o.spec, o.size, err, tc.want)
		}
	}
}

func FuzzObject(f *testing.F) {
	for base, places := range oddObjects() {
		for text := range oddjson.Seeds(base, places) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o := new(object)
		if json.Unmarshal(text, o) != nil {
			return
		}
		if o.spec == nil || len(o.spec) > maxSpec || len(o.spec) != o.room {
			t.Errorf("the spec has %d bytes, and %d are kept", o.size, len(o.spec))
		}
		compileAll(t, o)
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
