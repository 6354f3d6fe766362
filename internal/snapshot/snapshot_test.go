package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const header = `{"apiVersion":"snapshot.node-authorizer.io/v1alpha2","kind":"Snapshot","cluster":true}`

// lines are objects of two kinds, by namespace and name, with all that has a column and with strings
// that have none.
func lines() []Objects {
	pods := []string{
		`{"kind":"Pod","metadata":{"name":"a","namespace":"a","uid":"u"},"spec":{"nodeName":"a"}}`,
		`{"kind":"Pod","metadata":{"name":"b \" \\ \u2028","namespace":"a"},"spec":{"x":["b \" \\ \u2028","\u0001"]}}`,
		`{"kind":"Pod","metadata":{"name":"c","namespace":"a"},"spec":{"nodeName":"","volumes":[{"name":""}]}}`,
		`{"kind":"Pod","metadata":{"name":"spec","namespace":"metadata"},"spec":{"nodeName":"name","containers":[{"name":"spec"}]}}`,
		`{"metadata":{"labels":{"name":"z"},"list":[{"name":"y"}],"name":"n","namespace":"other","uid":true}}`,
	}
	for i := range 3 * rowsPerBlock / 2 {
		pods = append(pods, fmt.Sprintf(`{"kind":"Pod","metadata":{"name":"web-%05d","namespace":"shop",`+
			`"uid":"7f0c5a4e-91d4-4c1e-9b2f-%012x"},`+
			`"spec":{"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data-web-%05d"}},{"name":"kube-api-access-x%04d"},`+
			`{"name":"kube-api-access-other"}],"nodeName":"node-%d","affinity":["node-%d"]}}`, i, i, i, i, i%5, i%5))
	}
	volumes := []string{
		`{"metadata":{"name":"pv-1"},"spec":{"claimRef":{"namespace":"shop","name":"data-web-0"}}}`,
		`{"metadata":{"name":"pv-2"},"spec":{"claimRef":{"namespace":"a","name":"b\u0000"}}}`,
		`{"metadata":{"name":"pv-3"},"spec":{"volumeName":"pv-3"},"claimRef":{"name":"x"}}`,
	}
	return []Objects{{"Pod", texts(pods)}, {"PersistentVolume", texts(volumes)}, {"Node", texts(nil)}}
}

func texts(all []string) func(func([]byte) bool) {
	var as [][]byte
	for _, line := range all {
		as = append(as, []byte(line))
	}
	return slices.Values(as)
}

func written(t testing.TB, sections []Objects) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, []byte(header), sections); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func opened(t testing.TB, file []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func joined(sections []Objects) string {
	var text strings.Builder
	text.WriteString(header + "\n")
	for _, s := range sections {
		for line := range s.All {
			text.Write(line)
			text.WriteString("\n")
		}
	}
	return text.String()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	file := written(t, lines())
	text, err := io.ReadAll(opened(t, file).Text())
	if err != nil {
		t.Fatal(err)
	}
	if want := joined(lines()); string(text) != want {
		got := strings.Split(string(text), "\n")
		for i, line := range strings.Split(want, "\n") {
			if i >= len(got) || got[i] != line {
				t.Fatalf("line %d is\n%s\nwant\n%s", i+1, got[min(i, len(got)-1)], line)
			}
		}
		t.Fatal("there are more lines than expected")
	}
	if again := written(t, lines()); !bytes.Equal(again, file) {
		t.Error("the same objects give other bytes")
	}
	if length := len(joined(lines())); len(file) > length/20 {
		t.Errorf("%d bytes of text take %d bytes", length, len(file))
	}
}

func TestPodsOfOneTemplateHaveOneShape(t *testing.T) {
	shapes := map[int]bool{}
	err := opened(t, written(t, lines())).Sections[0].Scan(Selection{Namespace: "shop"}, func(r *Row) error {
		shapes[r.Shape] = true
		return nil
	})
	if err != nil || len(shapes) != 1 {
		t.Errorf("%d shapes, error %v", len(shapes), err)
	}
}

// A scan finds exactly the objects of the selection.
func TestScan(t *testing.T) {
	pods := opened(t, written(t, lines())).Sections[0]
	type object struct{ Selection }
	var all []object
	scan := func(want Selection) (found []object) {
		t.Helper()
		if err := pods.Scan(want, func(r *Row) error {
			found = append(found, object{Selection{r.Value(Namespace), r.Value(Name), r.Value(Node)}})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if all = scan(Selection{}); len(all) != pods.Objects {
		t.Fatalf("%d objects, want %d", len(all), pods.Objects)
	}
	random, found := rand.New(rand.NewPCG(1, 2)), 0
	for range 300 {
		want := Selection(all[random.IntN(len(all))].Selection)
		if random.IntN(5) == 0 {
			want = Selection{"shop", "web-99999", "node-1"}
		}
		for _, field := range []*string{&want.Namespace, &want.Name, &want.Node} {
			if random.IntN(2) == 0 {
				*field = ""
			}
		}
		var expected []object
		for _, o := range all {
			if (want.Namespace == "" || want.Namespace == o.Namespace) && (want.Name == "" || want.Name == o.Name) &&
				(want.Node == "" || want.Node == o.Node) {
				expected = append(expected, o)
			}
		}
		found += len(expected)
		if got := scan(want); !slices.Equal(got, expected) {
			t.Fatalf("%+v: %d objects, want %d", want, len(got), len(expected))
		}
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}

func TestScanEndsWithTheFirstError(t *testing.T) {
	stop, visited := errors.New("stop"), 0
	err := opened(t, written(t, lines())).Sections[0].Scan(Selection{}, func(*Row) error {
		visited++
		return stop
	})
	if !errors.Is(err, stop) || visited != 1 {
		t.Errorf("error %v after %d objects", err, visited)
	}
}

func TestDamagedFilesAreErrors(t *testing.T) {
	file := written(t, lines()[1:2])
	for n := range file {
		_, err := Open(bytes.NewReader(file[:n]))
		if err == nil || !strings.Contains(err.Error(), "snapshot is incomplete: it ends after") {
			t.Fatalf("the first %d of %d bytes: error %v", n, len(file), err)
		}
		changed := bytes.Clone(file)
		changed[n] ^= 0x20
		if _, err := Open(bytes.NewReader(changed)); err == nil || !strings.Contains(err.Error(), "snapshot") {
			t.Fatalf("byte %d changed: error %v", n, err)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	file := written(t, lines()[1:2])
	change := func(at int, to byte) []byte {
		changed := bytes.Clone(file)
		changed[at] = to
		return changed
	}
	for what, test := range map[string]struct {
		file []byte
		want string
	}{
		"cut": {file[:100], fmt.Sprintf("snapshot is incomplete: it ends after 100 of %d bytes; ", len(file)) + takeAgain},
		"newer": {change(len(magic), 2), "snapshot has version 2 of the binary form, and this version of node-authorizer reads " +
			"version 1; use a newer one, or take the snapshot with --format json"},
		"damaged": {change(len(file)-1, 0), "snapshot is damaged: its content does not have its checksum; " + takeAgain},
		"longer": {
			append(bytes.Clone(file), '\n'),
			fmt.Sprintf("data follows the end of the snapshot, at byte %d; ", len(file)) + takeAgain,
		},
		"text mode": {
			bytes.Replace(file, []byte("\r\n"), []byte("\n"), 1),
			"snapshot was changed on the way, as by a transfer in text mode; " + takeAgain,
		},
	} {
		if _, err := Open(bytes.NewReader(test.file)); err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v\nwant %s", what, err, test.want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	const a, b = `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"b"}}`
	for what, lines := range map[string][]string{
		"white space": {`{"a": 1}`}, "control characters": {"{\"a\":\"\x01\"}"}, "an escaped line end": {"{\"a\":\"\\\n\"}"},
		"an open string": {`{"a":"b`}, "closed twice": {`{}}`}, "any order": {b, a}, "an object twice": {a, a},
	} {
		if err := Write(io.Discard, []byte(header), []Objects{{"Pod", texts(lines)}}); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

// A reader refuses a file that expands too much before it reads an object: by decompression, by texts
// that share their beginnings, or by objects that take no bytes.
func TestExpansionIsBounded(t *testing.T) {
	for what, grow := range map[string]func(*sectionWriter, frame){
		"frames": func(s *sectionWriter, f frame) { s.shapeAt = append(s.shapeAt, counted{f, 1}, counted{f, 1}) },
		"texts":  func(s *sectionWriter, f frame) { s.blocks = []blockPlace{{counted{f, 1}, 64 << 20, key{}, key{}}} },
		"objects": func(s *sectionWriter, f frame) {
			for i := range 20 {
				at := key{"n", string(rune('a' + i))}
				s.blocks = append(s.blocks, blockPlace{counted{f, maxRows}, 0, at, at})
			}
		},
	} {
		c, err := newCompressor()
		if err != nil {
			t.Fatal(err)
		}
		s := newSectionWriter(c, "Pod")
		f, err := c.add(make([]byte, maxFrame/32))
		if what == "frames" {
			f, err = c.add(make([]byte, maxFrame))
		}
		if err != nil {
			t.Fatal(err)
		}
		grow(s, f)
		for _, b := range s.blocks {
			s.objects += b.n
		}
		if _, err := Open(bytes.NewReader(assembled(t, s))); err == nil || !strings.Contains(err.Error(), errTooLarge.Error()) {
			t.Errorf("%s: error is %v", what, err)
		}
	}
}

// A block with longer texts than its directory states is damaged.
func TestTextsAreBounded(t *testing.T) {
	c, err := newCompressor()
	if err != nil {
		t.Fatal(err)
	}
	s := newSectionWriter(c, "Pod")
	if err := s.write(texts([]string{`{"metadata":{"name":"name"}}`})); err != nil {
		t.Fatal(err)
	}
	s.blocks[0].text--
	err = opened(t, assembled(t, s)).Sections[0].Scan(Selection{}, func(*Row) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "snapshot is damaged: block 1 of kind Pod: it expands to far more than its size") {
		t.Errorf("error is %v", err)
	}
}

// assembled returns the file of a section.
func assembled(t testing.TB, s *sectionWriter) []byte {
	t.Helper()
	directory := s.appendDirectory(appendNumber(nil, 1))
	frames := s.compressor.body
	s.compressor.body = nil
	places := []byte{}
	for _, raw := range [][]byte{[]byte(header), directory} {
		f, err := s.compressor.add(raw)
		if err != nil {
			t.Fatal(err)
		}
		places = appendNumber(appendNumber(places, f.size), f.stored)
	}
	var b bytes.Buffer
	if err := writeParts(&b, places, s.compressor.body, frames); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
