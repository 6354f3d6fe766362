package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"
)

const header = `{"apiVersion":"snapshot.node-authorizer.io/v1alpha1","kind":"Snapshot","cluster":true}`

// objects are objects of two kinds: pods by node, namespace and name in several blocks, and volumes.
func objects() []Object {
	var all []Object
	for node := range 40 {
		for i := range 60 {
			o := Object{
				Kind: "Pod", Node: fmt.Sprintf("node-%02d", node), Namespace: fmt.Sprintf("ns-%d", i/20),
				Name: fmt.Sprintf("web-%d-%02d", node, i),
			}
			o.Text = fmt.Appendf(nil, `{"kind":"Pod","metadata":{"name":%q,"namespace":%q},"spec":{"nodeName":%q,"x":%q}}`,
				o.Name, o.Namespace, o.Node, strings.Repeat("x", 1000))
			all = append(all, o)
		}
	}
	odd := []byte(`{"metadata":{"name":"b \" \\","namespace":"odd"}}`)
	all = append(all, Object{Kind: "Pod", Namespace: "odd", Name: `b " \`, Text: odd})
	for i := range 20 {
		o := Object{Kind: "PersistentVolume", Name: fmt.Sprintf("pv-%02d", i)}
		o.Text = fmt.Appendf(nil, `{"metadata":{"name":%q}}`, o.Name)
		all = append(all, o)
	}
	return all
}

func written(t testing.TB, objects []Object) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, []byte(header), slices.Values(objects)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(file []byte) (*File, error) { return Open(bytes.NewReader(file), int64(len(file))) }

func opened(t testing.TB, file []byte) *File {
	t.Helper()
	f, err := open(file)
	if err != nil || f == nil {
		t.Fatalf("snapshot %v, error %v", f, err)
	}
	return f
}

// Any decompressor shows the header and the objects.
func TestTextIsWhatWasWritten(t *testing.T) {
	file := written(t, objects())
	r, err := zstd.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	want := header + "\n"
	for _, o := range objects() {
		want += string(o.Text) + "\n"
	}
	if string(text) != want {
		t.Errorf("got %d bytes, want %d", len(text), len(want))
	}
	if again := written(t, objects()); !bytes.Equal(again, file) {
		t.Error("the same objects give other bytes")
	}
}

// A part has at least the objects of the selection, in their order, and a block of a node at most.
func TestRead(t *testing.T) {
	f, all := opened(t, written(t, objects())), objects()
	if len(f.blocks) < 4 || f.Count("Pod") != 2401 || f.Count("PersistentVolume") != 20 || len(slices.Compact(f.Nodes())) != 40 {
		t.Fatalf("%d blocks, %d pods, nodes %v", len(f.blocks), f.Count("Pod"), f.Nodes())
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		o := all[random.IntN(len(all))]
		want := Selection{o.Kind, o.Node, o.Namespace, o.Name}
		for _, field := range []*string{&want.Node, &want.Namespace, &want.Name} {
			if random.IntN(2) == 0 {
				*field = ""
			}
		}
		var lines []string
		if err := f.Read(t.Context(), want, func(text []byte) error {
			lines = append(lines, strings.TrimSuffix(string(text), "\n"))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			selected := want.Kind == o.Kind && (want.Node == "" || want.Node == o.Node) &&
				(want.Namespace == "" || want.Namespace == o.Namespace) && (want.Name == "" || want.Name == o.Name)
			if selected && !slices.Contains(lines, string(o.Text)) {
				t.Fatalf("%+v: %s is not read", want, o.Text)
			}
		}
		if want.Node != "" && len(lines) > 61 {
			t.Fatalf("%+v: %d lines", want, len(lines))
		}
	}
}

func TestReadEndsWithTheFirstError(t *testing.T) {
	stop, visited := errors.New("stop"), 0
	err := opened(t, written(t, objects())).Read(t.Context(), Selection{Kind: "Pod"}, func([]byte) error {
		visited++
		return stop
	})
	if !errors.Is(err, stop) || visited != 1 {
		t.Errorf("error %v after %d objects", err, visited)
	}
}

// readAll reads everything of a file, as whoever reads it in parts.
func readAll(t testing.TB, file []byte) (objects int, err error) {
	f, err := open(file)
	if f == nil || err != nil {
		return -1, err
	}
	for _, b := range f.blocks {
		if err := f.Read(t.Context(), Selection{Kind: b.Kind}, func([]byte) error { objects++; return nil }); err != nil {
			return objects, err
		}
	}
	return objects, nil
}

// A file that is cut has no index. A file that is changed is an error that names the place, unless it is no
// snapshot any more.
func TestDamagedFilesAreErrors(t *testing.T) {
	file := written(t, objects()[2390:])
	whole, err := readAll(t, file)
	if err != nil {
		t.Fatal(err)
	}
	for n := range file {
		if got, err := readAll(t, file[:n]); got != -1 || err != nil {
			t.Fatalf("the first %d of %d bytes: %d objects, error %v", n, len(file), got, err)
		}
		changed := bytes.Clone(file)
		changed[n] ^= 0x20
		got, err := readAll(t, changed)
		inMagic, inSkippable := n >= len(file)-len(magic), err == nil && got == whole
		switch {
		case inMagic && got == -1 && err == nil, inSkippable:
		case err == nil || !strings.Contains(err.Error(), "snapshot is damaged: "):
			t.Fatalf("byte %d of %d changed: %d objects, error %v", n, len(file), got, err)
		}
	}
}

// withIndex returns a file with frames and this index.
func withIndex(t testing.TB, i index, frames ...[]byte) []byte {
	t.Helper()
	text, err := json.Marshal(&i)
	if err != nil {
		t.Fatal(err)
	}
	return withIndexText(t, text, frames...)
}

func withIndexText(t testing.TB, text []byte, frames ...[]byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	compressed := encoder.EncodeAll(text, nil)
	file := bytes.Join(frames, nil)
	file = binary.LittleEndian.AppendUint32(file, skippable)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(compressed)+endLength))
	file = binary.LittleEndian.AppendUint64(append(file, compressed...), uint64(len(compressed)))
	return append(file, magic...)
}

func frameOf(t testing.TB, text []byte) ([]byte, place) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := encoder.EncodeAll(text, nil)
	return stored, place{Stored: int64(len(stored)), Size: int64(len(text))}
}

func TestHostileFilesAreErrors(t *testing.T) {
	head, headAt := frameOf(t, []byte(header))
	pods, podsAt := frameOf(t, []byte("{}\n{}\n"))
	zeros, zerosAt := frameOf(t, make([]byte, maxFrame))
	bomb := index{Header: headAt, Blocks: []block{{place: zerosAt}, {place: zerosAt}}}
	small := podsAt
	small.Size--
	for what, test := range map[string]struct {
		file []byte
		want string
	}{
		"expands": {withIndex(t, bomb, head, zeros, zeros), "its index: it expands to far more than its size; "},
		"an index that is not JSON": {
			withIndexText(t, []byte("x"), head), "snapshot is damaged: its index: ",
		},
		"a long index": {withIndexText(t, bytes.Repeat([]byte(" "), maxFrame+1), head), "snapshot is damaged: its index: "},
		"a frame beyond the end": {
			withIndex(t, index{Header: headAt, Blocks: []block{{place: podsAt}}}, head), "its index: it has a frame outside of the file",
		},
		"a negative length": {
			withIndex(t, index{Header: headAt, Blocks: []block{{place: place{Stored: -1}}}}, head), "a frame outside of the file",
		},
		"frames that the index omits": {withIndex(t, index{Header: headAt}, head, pods), "its index: it is about "},
		"fewer objects": {
			withIndex(t, index{Header: headAt, Blocks: []block{{place: podsAt, Kind: "Pod", Objects: 3}}}, head, pods),
			"objects of kind Pod in bytes %d to %d: it has 2 objects instead of 3; " + takeAgain,
		},
		"another size": {
			withIndex(t, index{Header: headAt, Blocks: []block{{place: small, Kind: "Pod", Objects: 2}}}, head, pods),
			"objects of kind Pod in bytes %d to %d: ",
		},
	} {
		want := test.want
		if strings.Contains(want, "%d") {
			want = fmt.Sprintf(want, len(head), len(head)+len(pods))
		}
		if _, err := readAll(t, test.file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v\nwant %s", what, err, want)
		}
	}
}

func TestWriteRefusesAnObjectThatIsTooLarge(t *testing.T) {
	large := []Object{{Kind: "Pod", Name: "a", Text: make([]byte, maxFrame)}}
	if err := Write(io.Discard, []byte(header), slices.Values(large)); err == nil || !strings.Contains(err.Error(), "Pod: an object of") {
		t.Errorf("error is %v", err)
	}
}
