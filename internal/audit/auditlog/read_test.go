package auditlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"
)

// collected returns the audit ids of the events, in order.
func collected(ctx context.Context, files []File, stdin io.Reader) ([]string, Summary, error) {
	var all []string
	summary, err := Read(ctx, files, Sink[*[]string]{
		New: func() *[]string { return new([]string) },
		Event: func() func(*[]string, *Event) {
			return func(part *[]string, e *Event) { *part = append(*part, e.AuditID) }
		},
		Merge: func(part *[]string) { all = append(all, *part...); *part = (*part)[:0] },
	}, Options{Stdin: stdin})
	return all, summary, err
}

func line(id string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"get","auditID":%q}`+"\n", id)
}

func file(t *testing.T, name string, text []byte) File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return File{Path: path, Size: int64(len(text))}
}

func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadKeepsTheOrderOfTheLog(t *testing.T) {
	var text strings.Builder
	var want []string
	for i := range 20_000 {
		id := fmt.Sprint(i)
		text.WriteString(line(id))
		want = append(want, id)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, stored := range map[string][]byte{
		"plain":            []byte(text.String()),
		"gzip":             compressed(t, text.String()),
		"two gzip members": append(compressed(t, text.String()[:1000]), compressed(t, text.String()[1000:])...),
		"zstd":             z.EncodeAll([]byte(text.String()), nil),
	} {
		t.Run(name, func(t *testing.T) {
			got, summary, err := collected(t.Context(), []File{file(t, "x", stored)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %d events, want %d in order", len(got), len(want))
			}
			if want := (Summary{Files: 1, Lines: 20_000, Events: 20_000}); !reflect.DeepEqual(summary, want) {
				t.Errorf("got\n%v, want\n%v", summary, want)
			}
		})
	}
}

func TestReadLineLongerThanABatch(t *testing.T) {
	long := strings.Replace(line("b"), "get", strings.Repeat("x", 5*batchSize), 1)
	got, summary, err := collected(t.Context(), []File{{Path: Stdin}}, strings.NewReader(line("a")+long+line("c")))
	if err != nil || !slices.Equal(got, []string{"a", "b", "c"}) || summary.Lines != 3 {
		t.Errorf("got %v, %+v, %v", got, summary, err)
	}
}

// slowReader returns one byte at a time.
type slowReader struct{ io.Reader }

func (s slowReader) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(1, len(p))]) }

func TestReadFilesOneAfterTheOther(t *testing.T) {
	files := []File{
		file(t, "a.log", []byte(line("a1")+"\n"+line("a2"))),
		{Path: Stdin},
		file(t, "empty.log", nil),
		file(t, "b.log", []byte(strings.TrimSpace(line("b")))),
	}
	got, summary, err := collected(t.Context(), files, slowReader{strings.NewReader(line("stdin"))})
	if err != nil || !slices.Equal(got, []string{"a1", "a2", "stdin", "b"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if summary.Files != 4 || summary.Lines != 5 || summary.Events != 4 {
		t.Errorf("got %+v", summary)
	}
}

func TestReadReportsBrokenLinesAndReadsTheOthers(t *testing.T) {
	text := line("1") + line("2") + "\n" + `{"kind":"Event","apiVersion":"audit` + line("4") + line("5") + "{}\n" + line("7")
	got, summary, err := collected(t.Context(), []File{{Path: Stdin}}, strings.NewReader(text))
	if err != nil || !slices.Equal(got, []string{"1", "2", "5", "7"}) {
		t.Errorf("got %v, %v", got, err)
	}
	var broken []string
	for _, b := range summary.Broken {
		broken = append(broken, b.Error())
	}
	want := []string{
		`stdin: line 4: not valid JSON: invalid character 'k' after object value (expecting ',' or '}')`,
		`stdin: line 6: kind "" of apiVersion "": want Event or EventList of audit.k8s.io/v1 or v1beta1`,
	}
	if want, got := any(want), any(broken); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
}

func TestReadAcceptsALogThatIsBeingWritten(t *testing.T) {
	for name, test := range map[string]struct {
		end                string
		broken, unfinished int
	}{
		"half a line that is being written": {line("2")[:40], 0, 1},
		"half a line with a line break":     {line("2")[:40] + "\n", 1, 0},
		"something else":                    {"{}", 1, 0},
		"a whole line without a line break": {strings.TrimSpace(line("2")), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, summary, err := collected(t.Context(), []File{{Path: Stdin}}, strings.NewReader(line("1")+test.end))
			if err != nil || len(summary.Broken) != test.broken || len(summary.Unfinished) != test.unfinished {
				t.Errorf("got %+v, %v", summary, err)
			}
			for _, u := range summary.Unfinished {
				if u.Line != 2 {
					t.Errorf("reported as line %d", u.Line)
				}
			}
		})
	}
}

func TestReadRejectsWhatIsNotAnAuditLog(t *testing.T) {
	truncated := compressed(t, strings.Repeat(line("1"), 1000))
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"the first line is broken": {
			[]byte("apiVersion: v1\n" + line("2")),
			"line 1: not valid JSON: invalid character 'a' at start of value",
		},
		"too many lines are broken": {
			[]byte(line("1") + strings.Repeat("x\n", MaxBroken+1)),
			"and 100 lines before: this is not an audit log, or it is badly damaged",
		},
		"compressed data ends": {
			truncated[:len(truncated)-20],
			"compressed data ends early; the file is incomplete, or still being compressed",
		},
		"a header alone": {
			[]byte{0x1f, 0x8b, 8},
			"decompress gzip: compressed data ends early; the file is incomplete, or still being compressed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := file(t, "x.log", test.text)
			_, _, err := collected(t.Context(), []File{f}, nil)
			if err == nil || !strings.HasSuffix(err.Error(), test.want) || !strings.Contains(err.Error(), f.Path) {
				t.Errorf("got %v, want … %s", err, test.want)
			}
		})
	}
}

func TestReadFileThatDoesNotExist(t *testing.T) {
	got, _, err := collected(t.Context(), []File{file(t, "a.log", []byte(line("a"))), {Path: filepath.Join(t.TempDir(), "gone.log")}}, nil)
	if !errors.Is(err, os.ErrNotExist) || !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		_, _ = io.WriteString(w, strings.Repeat(line("a"), 10_000))
		cancel()
	}()
	if _, _, err := collected(ctx, []File{{Path: Stdin}}, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestProgressCountsBytesAndLines(t *testing.T) {
	f := file(t, "x.log.gz", compressed(t, strings.Repeat(line("1"), 20_000)))
	var last Progress
	_, err := Read(t.Context(), []File{f}, Sink[int]{
		New: func() int { return 0 }, Event: func() func(int, *Event) { return func(int, *Event) {} }, Merge: func(int) {},
	}, Options{Progress: func(p Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Progress{File: f.Path, Done: f.Size, Total: f.Size, Lines: 20_000}); last != want {
		t.Errorf("got %+v, want %+v", last, want)
	}
}

// TestReadBoundsTheBytesInFlight reads long lines with many processors while the sink
// blocks.
func TestReadBoundsTheBytesInFlight(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	const long, many = 4 << 20, 44
	text := `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"get",` +
		`"requestObject":"` + strings.Repeat("x", long) + "\"}\n"
	synctest.Test(t, func(t *testing.T) {
		log := strings.NewReader(strings.Repeat(text, many))
		open, events, done := make(chan struct{}), 0, make(chan error)
		go func() {
			_, err := Read(t.Context(), []File{{Path: Stdin}}, Sink[*int]{
				New:   func() *int { return new(int) },
				Event: func() func(*int, *Event) { return func(n *int, _ *Event) { <-open; *n++ } },
				Merge: func(n *int) { events += *n; *n = 0 },
			}, Options{Stdin: log})
			done <- err
		}()
		synctest.Wait()
		if read, most := log.Size()-int64(log.Len()), int64(maxHeld+4*long); read > most {
			t.Errorf("%d bytes were read ahead, want at most %d", read, most)
		}
		close(open)
		if err := <-done; err != nil || events != many {
			t.Errorf("%d events, %v; want %d", events, err, many)
		}
	})
}
