package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// hostile ends a line, forges a log line, clears the screen, reverses the direction of the text, and
// is not valid UTF-8.
const hostile = "a\nI0101 00:00:00.000000       1 log.go:1] \"forged\"\r\t\x00\x1b[2J\u009b2J\u202e\u2028\x7f\U000e0001\xff"

// logHeader matches the header of a line of the text log.
var logHeader = regexp.MustCompile(`^[IE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.go:\d+\] "`)

type named struct{ name string }

func (n named) String() string { return n.name }

type marshaled struct{ name string }

func (m marshaled) MarshalLog() any { return map[string]string{"name": m.name} }

// The test uses hostile text for all values of log lines.
func TestLogLinesHaveNoControlCharacters(t *testing.T) {
	for _, format := range []v1alpha1.LogFormat{v1alpha1.TextLog, v1alpha1.JSONLog} {
		for what, value := range map[string]any{
			"text": hostile, "error": errors.New(hostile), "wrapped error": fmt.Errorf("x: %w", errors.New(hostile)),
			"stringer": named{hostile}, "marshaler": marshaled{hostile}, "list": []string{"b", hostile},
			"map": map[string]string{hostile: hostile}, "struct": struct{ Name string }{hostile}, "bytes": []byte(hostile),
			"unencodable": struct{ F func() }{}, "nil": nil, "number": 7,
		} {
			t.Run(string(format)+"/"+what, func(t *testing.T) {
				var out bytes.Buffer
				logger := NewLogger(v1alpha1.Log{Format: format}, &out)
				logger.Info("it happened", "name", value)
				logger.WithValues("name", value).WithName("part").Info("it happened")
				logger.Error(errors.New(hostile), "it failed", "name", value)
				logger.WithCallDepth(1).Info(hostile)
				if lines := checkLines(t, out.String(), format == v1alpha1.JSONLog); lines != 4 {
					t.Errorf("%d lines, want 4:\n%s", lines, out.String())
				}
			})
		}
	}
}

// checkLines checks that lines have only printable characters, and returns their number.
func checkLines(t *testing.T, text string, areJSON bool) int {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, line := range lines {
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("the line has %U: %q", r, line)
			}
		}
		if areJSON && !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %q", line)
		}
		if !areJSON && !logHeader.MatchString(line) {
			t.Errorf("the line has no header: %q", line)
		}
	}
	return len(lines)
}

func TestEscapedValuesAreStillReadable(t *testing.T) {
	var out bytes.Buffer
	NewLogger(v1alpha1.Log{Format: v1alpha1.JSONLog}, &out).Info("it happened", "name", "größe \u202e\U000e0001")
	var line struct{ Msg, Name string }
	err := json.Unmarshal(out.Bytes(), &line)
	if err != nil || line.Name != "größe \u202e\U000e0001" || !strings.Contains(out.String(), "größe") {
		t.Errorf("%v: %s", err, out.String())
	}
	out.Reset()
	logger := NewLogger(v1alpha1.Log{Format: v1alpha1.TextLog}, &out)
	logger.Error(errors.New("no"), "it failed", "name", "größe", "count", 3, "all", []string{"a"})
	const want = `] "it failed" err="no" name="größe" count=3 all=["a"]` + "\n"
	if got := out.String(); !strings.HasSuffix(got, want) || !strings.Contains(got, " log_test.go:") {
		t.Errorf("got %swant %s", got, want)
	}
}

// A value with line breaks cannot look like several values.
func TestLineBreaksInValuesAreQuoted(t *testing.T) {
	var out bytes.Buffer
	logger := NewLogger(v1alpha1.Log{Format: v1alpha1.TextLog}, &out)
	logger.Error(errors.New("a\n >\n b"), "it failed", "name", "a\n\t node=\"b\"\n")
	const want = `] "it failed" err="a\n >\n b" name="a\n\t node=\"b\""` + "\n"
	if got := out.String(); !strings.HasSuffix(got, want) {
		t.Errorf("got %swant %s", got, want)
	}
}

// The test sends hostile text in every field of requests from API servers, and from machines without
// a credential.
func TestValuesOfCallersAreEscapedInTheLog(t *testing.T) {
	t.Parallel()
	logging := func(log *logLines) func(*Options) {
		return func(o *Options) {
			o.Logger = NewLogger(v1alpha1.Log{Format: v1alpha1.TextLog, Verbosity: 10}, log)
		}
	}
	t.Run("webhooks", func(t *testing.T) {
		log := &logLines{}
		api := shop(t)
		s := startTestServer(t, api.URL, withoutWaits, logging(log))
		s.api = api
		s.ready()
		quoted, err := json.Marshal(strings.ToValidUTF8(hostile, ""))
		if err != nil {
			t.Fatal(err)
		}
		for path, documents := range hostileReviews() {
			for _, document := range documents {
				for i := range strings.Count(document, `"HERE"`) {
					got, err := s.post(s.caller, path, replaceNth(document, `"HERE"`, string(quoted), i))
					if err != nil || got.status != 200 {
						t.Errorf("%s is answered %+v, %v", path, got, err)
					}
				}
			}
		}
		if got, err := s.post(s.caller, "/"+url.PathEscape(hostile), "{}"); err != nil || got.status != 404 {
			t.Errorf("%+v, %v", got, err)
		}
		if text := log.String(); !strings.Contains(text, "forged") {
			t.Errorf("the log has nothing of the requests:\n%s", text)
		}
		checkLines(t, log.String(), false)
	})
	t.Run("machines", func(t *testing.T) {
		log := &logLines{}
		s := newJoinServer(t, nil, logging(log)).ready()
		for _, path := range []string{
			"/authorize/" + url.PathEscape(hostile), "/" + url.PathEscape(hostile),
			"/authorize/worker-1?x=" + url.QueryEscape(hostile),
		} {
			for _, body := range []string{"{}", hostile, `{"document": ` + strconv.Quote("x") + `}`} {
				address := at(s.listeners.bootstrap, path)
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("User-Agent", "a\tb\u009b")
				if _, err := read(s.testListeners.caller(nil).Do(request)); err != nil {
					t.Error(err)
				}
			}
		}
		eventually(t, "it is in the log", func() bool { return strings.Contains(log.String(), "forged") })
		checkLines(t, log.String(), false)
	})
}

// hostileReviews returns documents by path, with "HERE" for each text that callers control.
func hostileReviews() map[string][]string {
	const user = `"user": "HERE", "uid": "HERE", "groups": ["HERE", "system:nodes"], "extra": {"k": ["HERE"]}`
	const node = `"user": "system:node:a", "groups": ["system:nodes"]`
	const review = `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {`
	const attributes = `"resourceAttributes": {"namespace": "HERE", "verb": "HERE", "group": "HERE", "version": "HERE",
		"resource": "HERE", "subresource": "HERE", "name": "HERE",
		"fieldSelector": {"requirements": [{"key": "HERE", "operator": "In", "values": ["HERE"]}]}}`
	const secret = `"resourceAttributes": {"namespace": "HERE", "verb": "get", "version": "v1", "resource": "secrets",
		"name": "HERE"}`
	write := func(operation, resource, kind, object, old string) string {
		return `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",
			"kind": {"version": "v1", "kind": "` + kind + `"},
			"resource": {"version": "v1", "resource": "` + resource + `"},
			"name": "HERE", "namespace": "HERE", "operation": "` + operation + `",
			"userInfo": {"username": "system:node:a", "groups": ["system:nodes", "HERE"]},
			"object": ` + object + `, "oldObject": ` + old + `}}`
	}
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "HERE", "namespace": "HERE",
		"annotations": {"kubernetes.io/config.mirror": "HERE"}, "ownerReferences":
		[{"apiVersion": "v1", "kind": "HERE", "name": "HERE", "uid": "HERE"}]},
		"spec": {"nodeName": "HERE", "serviceAccountName": "HERE",
		"volumes": [{"name": "HERE", "secret": {"secretName": "HERE"}}]}}`
	const nodeObject = `{"apiVersion": "v1", "kind": "Node",
		"metadata": {"name": "HERE", "labels": {"node-restriction.kubernetes.io/x": "HERE"}},
		"spec": {"taints": [{"key": "HERE", "value": "HERE", "effect": "HERE"}]}}`
	const oldNode = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}`
	return map[string][]string{
		"/authorize": {
			review + user + `, ` + attributes + `}}`, review + node + `, ` + attributes + `}}`,
			review + node + `, ` + secret + `}}`,
			review + node + `, "nonResourceAttributes": {"path": "HERE", "verb": "HERE"}}}`,
			review + `"user": "system:node:a\nHERE", "groups": ["system:nodes"], ` + secret + `}}`,
		},
		"/admit": {
			write("CREATE", "pods", "Pod", pod, "null"), write("DELETE", "pods", "Pod", "null", pod),
			write("CREATE", "nodes", "Node", nodeObject, "null"), write("UPDATE", "nodes", "Node", nodeObject, oldNode),
			write("CREATE", "HERE", "HERE", "{}", "null"),
		},
	}
}

// replaceNth replaces one of several occurrences, and gives the others a plain text.
func replaceNth(text, old, replacement string, n int) string {
	var b strings.Builder
	for i, part := range strings.Split(text, old) {
		switch {
		case i == 0:
		case i-1 == n:
			b.WriteString(replacement)
		default:
			b.WriteString(`"plain"`)
		}
		b.WriteString(part)
	}
	return b.String()
}
