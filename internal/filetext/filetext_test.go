package filetext_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/node-authorizer/node-authorizer/internal/filetext"
)

func TestCompressedAndPlainTextIsRead(t *testing.T) {
	const want = "a line\nand another\n"
	for rule, stored := range map[string][]byte{
		"plain":   []byte(want),
		"in gzip": gzipped(t, want),
		"in zstd": zstandard(t, want),
		"two gzip members, as in concatenated logs": append(gzipped(t, want[:7]), gzipped(t, want[7:])...),
	} {
		file := &file{Reader: bytes.NewReader(stored)}
		text, err := filetext.New(file)
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		if got, err := io.ReadAll(text); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", rule, got, err)
		}
		if text.Stored() != int64(len(stored)) {
			t.Errorf("%s: %d bytes stored, want %d", rule, text.Stored(), len(stored))
		}
		if err := text.Close(); err != nil || !file.closed {
			t.Errorf("%s: the file is open, %v", rule, err)
		}
	}
}

func TestEmptyAndShortTextIsNotCompressed(t *testing.T) {
	for _, want := range []string{"", "{", "abc"} {
		text, err := filetext.New(io.NopCloser(strings.NewReader(want)))
		if err != nil {
			t.Fatalf("%q: %v", want, err)
		}
		if got, err := io.ReadAll(text); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", want, got, err)
		}
	}
}

func TestTruncatedDataIsAnError(t *testing.T) {
	whole := gzipped(t, strings.Repeat("a line\n", 1000))
	for _, n := range []int{5, len(whole) / 2, len(whole) - 4} {
		text, err := filetext.New(&file{Reader: bytes.NewReader(whole[:n])})
		if err == nil {
			_, err = io.ReadAll(text)
		}
		if !errors.Is(err, filetext.ErrEndsEarly) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// A file that cannot be read is closed, also when it ends within the header.
func TestAFileThatCannotBeReadIsClosed(t *testing.T) {
	for rule, r := range map[string]io.Reader{
		"a broken disk":    iotest.ErrReader(errors.New("disk on fire")),
		"a header cut off": bytes.NewReader([]byte{0x1f, 0x8b, 8}),
	} {
		file := &file{Reader: r}
		if _, err := filetext.New(file); err == nil || !file.closed {
			t.Errorf("%s: %v, closed %t", rule, err, file.closed)
		}
	}
}

// A few compressed bytes can expand to any number of bytes.
func TestExpansionIsBounded(t *testing.T) {
	frame := zstandard(t, strings.Repeat("\x00", 8<<20))
	for _, tc := range []struct {
		rule   string
		frames int
		ends   bool
	}{
		{"a GiB from a file of any size", 128, false},
		{"more than that, from a few bytes", 140, true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			text, err := filetext.New(&file{Reader: bytes.NewReader(bytes.Repeat(frame, tc.frames))})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, text); errors.Is(err, filetext.ErrTooLong) != tc.ends || !tc.ends && err != nil {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// A window that is too large is refused before memory is allocated for it.
func TestAWindowThatIsTooLargeIsRefused(t *testing.T) {
	for window, refused := range map[int]bool{128 << 20: false, 256 << 20: true} {
		var stored bytes.Buffer
		w, err := zstd.NewWriter(&stored, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(false))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("a line\n"))
		if err := w.Flush(); err != nil { // the length is unknown, so the window counts
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := filetext.New(&file{Reader: &stored})
		if err == nil {
			_, err = io.ReadAll(text)
		}
		if (err != nil) != refused {
			t.Errorf("a window of %d MiB: %v", window>>20, err)
		}
	}
}

// file records whether it is closed.
type file struct {
	io.Reader
	closed bool
}

func (f *file) Close() error {
	f.closed = true
	return nil
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
