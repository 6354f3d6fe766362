package filetext_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/node-authorizer/node-authorizer/internal/filetext"
)

func TestTextIsReadHoweverItIsStored(t *testing.T) {
	const want = "a line\nand another\n"
	for rule, stored := range map[string][]byte{
		"plain":   []byte(want),
		"in gzip": gzipped(t, want),
		"in zstd": zstandard(t, want),
		"in two members of gzip, as logs that were put together": append(gzipped(t, want[:7]), gzipped(t, want[7:])...),
	} {
		text, err := filetext.NewReader(bufio.NewReader(bytes.NewReader(stored)), 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		if got, err := io.ReadAll(text); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", rule, got, err)
		}
	}
}

func TestEmptyAndShortTextIsNotCompressed(t *testing.T) {
	for _, want := range []string{"", "{", "abc"} {
		text, err := filetext.NewReader(bufio.NewReader(strings.NewReader(want)), 1<<20)
		if err != nil {
			t.Fatalf("%q: %v", want, err)
		}
		if got, err := io.ReadAll(text); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", want, got, err)
		}
	}
}

func TestWhatEndsEarlyIsNoText(t *testing.T) {
	whole := gzipped(t, strings.Repeat("a line\n", 1000))
	for _, n := range []int{5, len(whole) / 2, len(whole) - 4} {
		text, err := filetext.NewReader(bufio.NewReader(bytes.NewReader(whole[:n])), 1<<20)
		if err == nil {
			_, err = io.ReadAll(text)
		}
		if !errors.Is(err, filetext.ErrEndsEarly) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t *testing.T, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll([]byte(text), nil)
}
