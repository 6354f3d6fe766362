package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// decoderItems splits a list, or consecutive documents, with the library's decoder.
// It does less than the splitter: the caller says which of both it reads, it copies
// nothing, and it does not count lines.
func decoderItems(r io.Reader, list bool, emit func(text []byte) error) error {
	dec := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if list {
		for token, err := dec.ReadToken(); ; token, err = dec.ReadToken() {
			if err != nil {
				return err
			}
			if token.Kind() == jsontext.KindBeginArray {
				break
			}
		}
	}
	for !list || dec.PeekKind() != jsontext.KindEndArray {
		text, err := dec.ReadValue()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := emit(text); err != nil {
			return err
		}
	}
	return nil
}

func splitterItems(r io.Reader, emit func(text []byte) error) error {
	s := &jsonSplitter{window: newWindow(r), file: "f", emit: func(d *document) error { return emit(d.text) }}
	_, err := s.split()
	return err
}

// benchItem is an object as an API server returns it.
func benchItem(i int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"app-6d4cf56db6-%05d","namespace":"team-%d",`+
		`"labels":{"app.kubernetes.io/name":"app","pod-template-hash":"6d4cf56db6"},`+
		`"annotations":{"checksum/config":"%064d"}},`+
		`"spec":{"nodeName":"worker-%d","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists",`+
		`"effect":"NoExecute"}],"containers":[{"name":"app","image":"registry.example.com/team/app:1.2.3",`+
		`"env":[{"name":"PASSWORD","valueFrom":{"secretKeyRef":{"name":"db","key":"password"}}}],`+
		`"resources":{"requests":{"cpu":"100m","memory":"256Mi"}},"volumeMounts":[{"name":"tls","mountPath":"/etc/tls",`+
		`"readOnly":true}]}]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],`+
		`"hostIP":"10.0.0.1"}}`, i, i%100, i, i%200)
}

// BenchmarkSplitJSON compares the splitter with the library's decoder, alternately in
// one run. The metric "decoder/ours" is the ratio of the decoder's time to ours.
func BenchmarkSplitJSON(b *testing.B) {
	var lines, list, indented bytes.Buffer
	list.WriteString(`{"apiVersion":"v1","items":[`)
	indented.WriteString("{\n    \"apiVersion\": \"v1\",\n    \"items\": [")
	for i := range 20_000 {
		item := benchItem(i)
		lines.WriteString(item + "\n")
		comma := ","
		if i == 0 {
			comma = ""
		}
		list.WriteString(comma + item)
		pretty := jsontext.Value(item)
		if err := pretty.Indent(jsontext.WithIndentPrefix("        "), jsontext.WithIndent("    ")); err != nil {
			b.Fatal(err)
		}
		indented.WriteString(comma + "\n        " + string(pretty))
	}
	list.WriteString(`],"kind":"List"}`)
	indented.WriteString("\n    ],\n    \"kind\": \"List\"\n}\n")
	long := `{"apiVersion":"v1","kind":"ConfigMap","data":{"key":"` + strings.Repeat("x", 32<<20) + `"}}`
	deep := `{"apiVersion":"v1","kind":"ConfigMap","data":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}\n"
	names := &strings.Builder{}
	names.WriteString(`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":""`)
	for i := range 1 << 20 {
		fmt.Fprintf(names, `,"key-%d":""`, i)
	}
	names.WriteString("}}")
	for _, form := range []struct {
		name, text string
		list       bool
		read       func(io.Reader) io.Reader
	}{
		{"lines", lines.String(), false, nil},
		{"list", list.String(), true, nil},
		{"indented list", indented.String(), true, nil},
		{"a long string", long, false, nil},
		{"a long string in small reads", long, false, smallReads},
		{"a million names", names.String(), false, nil},
		{"a million names in small reads", names.String(), false, smallReads},
		{"depth", strings.Repeat(deep, 500), false, nil},
	} {
		b.Run(form.name, func(b *testing.B) {
			reader := func() io.Reader {
				if form.read != nil {
					return form.read(strings.NewReader(form.text))
				}
				return strings.NewReader(form.text)
			}
			var ours, library cost
			for b.Loop() {
				ours.measure(b, func(emit func([]byte) error) error { return splitterItems(reader(), emit) })
				library.measure(b, func(emit func([]byte) error) error { return decoderItems(reader(), form.list, emit) })
			}
			if ours.items != library.items || ours.bytes != library.bytes {
				b.Fatalf("ours found %d items of %d bytes, the library %d of %d", ours.items, ours.bytes, library.items, library.bytes)
			}
			b.ReportMetric(float64(library.best)/float64(ours.best), "decoder/ours")
			b.ReportMetric(float64(len(form.text))/1e6/ours.best.Seconds(), "ours-MB/s")
			b.ReportMetric(float64(len(form.text))/1e6/library.best.Seconds(), "decoder-MB/s")
			b.ReportMetric(float64(ours.allocated)/1e6, "ours-allocated-MB")
			b.ReportMetric(float64(library.allocated)/1e6, "decoder-allocated-MB")
		})
	}
}

// smallReads limits the size of reads, as decompression does.
func smallReads(r io.Reader) io.Reader { return shortReader{r} }

type shortReader struct{ r io.Reader }

func (s shortReader) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 32<<10)]) }

// cost is the best time and memory of splitting.
type cost struct {
	best         time.Duration
	items, bytes int
	allocated    uint64
}

func (c *cost) measure(b *testing.B, cut func(emit func([]byte) error) error) {
	c.items, c.bytes = 0, 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	err := cut(func(text []byte) error {
		c.items++
		c.bytes += len(text)
		return nil
	})
	took := time.Since(began)
	if err != nil {
		b.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	c.allocated = after.TotalAlloc - before.TotalAlloc
	if c.best == 0 || took < c.best {
		c.best = took
	}
}
