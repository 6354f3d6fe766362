package review

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// byName allows the name "yes", denies "no", and cannot evaluate "error".
func byName(_ context.Context, req *access.Request) AccessAnswer {
	switch req.Name {
	case "yes":
		return AccessAnswer{Decision: verdict.Allow}
	case "no":
		return AccessAnswer{Decision: verdict.Deny, Reason: "because"}
	case "error":
		return AccessAnswer{Decision: verdict.NoOpinion, EvaluationError: "cannot say"}
	}
	return AccessAnswer{Decision: verdict.NoOpinion, Reason: "no opinion <- of " + req.Name}
}

// named evaluates both kinds of documents by the name of the object.
func named() Evaluators {
	return Evaluators{Authorize: byName, Admit: admitByName, Reads: readNothing}
}

// admitByName allows the name "yes" and refuses all others.
func admitByName(_ context.Context, req *noderestriction.Request) noderestriction.Answer {
	if req.Name == "yes" {
		return noderestriction.Answer{Decision: verdict.Allow, Code: "Good", Node: "worker-1", Rule: "by name", Status: 200}
	}
	return noderestriction.Answer{
		Decision: verdict.Deny, Code: "Bad", Node: "worker-1", Status: 403, StatusReason: metav1.StatusReasonForbidden,
		Reason: verdict.Reason{Code: "Bad", Message: "not <" + req.Name + ">", Hint: "say yes"},
	}
}

func readNothing(*noderestriction.Request) (object, oldObject bool) { return false, false }

func document(name string) string {
	return fmt.Sprintf(
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"u",`+
			`"resourceAttributes":{"verb":"get","resource":"pods","name":%q}}}`,
		name,
	)
}

func answered(name, status string) string {
	return fmt.Sprintf(
		`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1",`+
			`"spec":{"user":"u","resourceAttributes":{"verb":"get","resource":"pods","name":%q}},"status":%s}`+"\n",
		name, status,
	)
}

func TestStreamStatuses(t *testing.T) {
	for name, status := range map[string]string{
		"yes":   `{"allowed":true}`,
		"no":    `{"allowed":false,"denied":true,"reason":"because"}`,
		"else":  `{"allowed":false,"reason":"no opinion <- of else"}`,
		"error": `{"allowed":false,"evaluationError":"cannot say"}`,
	} {
		var out bytes.Buffer
		if _, err := Stream(t.Context(), named(), strings.NewReader(document(name)), &out); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), answered(name, status); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
	}
}

func admissionOf(name string) string {
	return fmt.Sprintf(
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-%[1]s","kind":{"version":"v1",`+
			`"kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"operation":"DELETE","name":"%[1]s",`+
			`"userInfo":{"username":"worker-1"},"object":null}}`,
		name,
	)
}

func TestStreamOfBothKinds(t *testing.T) {
	const (
		allowed = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-yes","allowed":true,` +
			`"status":{"code":200},"auditAnnotations":{"code":"Good","node":"worker-1","rule":"by name"}}}` + "\n"
		refused = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-no","allowed":false,` +
			`"status":{"code":403,"reason":"Forbidden","message":"not <no>"},` +
			`"auditAnnotations":{"code":"Bad","node":"worker-1"}}}` + "\n"
	)
	// The kind is recognized at any position in the document.
	last := strings.TrimSuffix(admissionOf("yes"), "}") + `,"x":"SubjectAccessReview"}`
	last = strings.Replace(
		last, `"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",`, `"metadata":{"name":"`+strings.Repeat("x", 200)+`"},`, 1,
	)
	last = strings.TrimSuffix(last, "}") + `,"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`
	misleading := strings.Replace(document("yes"), "{", `{"x":"AdmissionReview",`, 1)
	var out bytes.Buffer
	in := admissionOf("no") + document("yes") + "\n" + admissionOf("yes") + last + misleading
	total, err := Stream(t.Context(), named(), strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	access := answered("yes", `{"allowed":true}`)
	if want := refused + access + allowed + allowed + access; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if total != (Summary{Documents: 5, Allowed: 4}) {
		t.Errorf("total = %+v", total)
	}
}

func TestStreamFraming(t *testing.T) {
	both := answered("yes", `{"allowed":true}`) + answered(`q"}{\`, `{"allowed":false,"reason":"no opinion <- of q\"}{\\"}`)
	a, b := document("yes"), document(`q"}{\`)
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(b), "", "  "); err != nil {
		t.Fatal(err)
	}
	for rule, input := range map[string]string{
		"one document a line":            a + "\n" + b + "\n",
		"no line break at the end":       a + "\n" + b,
		"documents without space":        a + b,
		"documents of several lines":     a + "\n\n" + pretty.String() + "\n\n",
		"carriage returns":               a + "\r\n" + b + "\r\n",
		"spaces and tabs between, ahead": " \t" + a + "  \t " + b,
	} {
		for reading, reader := range map[string]io.Reader{
			"at once":      strings.NewReader(input),
			"byte by byte": iotest.OneByteReader(strings.NewReader(input)),
			"with the end": iotest.DataErrReader(strings.NewReader(input)),
		} {
			t.Run(rule+", "+reading, func(t *testing.T) {
				var out bytes.Buffer
				total, err := Stream(t.Context(), named(), reader, &out)
				if err != nil {
					t.Fatal(err)
				}
				if out.String() != both {
					t.Errorf("got\n%swant\n%s", out.String(), both)
				}
				if total != (Summary{Documents: 2, Allowed: 1}) {
					t.Errorf("total = %+v", total)
				}
			})
		}
	}
}

func TestStreamOfNothing(t *testing.T) {
	for _, input := range []string{"", " \n\n"} {
		var out bytes.Buffer
		if total, err := Stream(t.Context(), named(), strings.NewReader(input), &out); err != nil || total != (Summary{}) || out.Len() > 0 {
			t.Errorf("Stream(%q) = %+v, %v, output %q", input, total, err, out.String())
		}
	}
}

func TestStreamEndsAtABrokenDocument(t *testing.T) {
	good := document("yes") + "\n"
	for _, tc := range []struct {
		rule, broken, want string
	}{
		{"broken JSON", `{"kind": }`, "document 3, line 3: not valid JSON: invalid character '}' at start of value"},
		{"wrong bracket", `{"kind": [}`, "document 3, line 3: not valid JSON: invalid character '}' at start of value"},
		{"no object", `[` + document("yes") + `]`, "document 3, line 3: want a JSON object"},
		{"a word", `kind: SubjectAccessReview`, "document 3, line 3: want a JSON object"},
		{"a bracket too many", `}`, "document 3, line 3: want a JSON object"},
		{
			"the next document within a document", `{"kind":"SubjectAccessReview",`,
			"document 3, line 3: not valid JSON: invalid character '{'",
		},
		{
			"a line break within a string", "{\"kind\":\"Subject\n\"}",
			`document 3, line 3: not valid JSON: invalid character '\n' in string`,
		},
		{"a wrong type", strings.Replace(document("x"), `"u"`, `1`, 1), "document 3, line 3: spec.user: want a string, got a number"},
		{
			"an unknown kind", `{"apiVersion":"v1","kind":"Pod","spec":{"groups":1}}`,
			`document 3, line 3: kind "Pod" of apiVersion "v1": want SubjectAccessReview of authorization.k8s.io/v1 or ` +
				`AdmissionReview of admission.k8s.io/v1`,
		},
		{
			"an unknown version", `{"apiVersion":"authorization.k8s.io/v2","kind":"SubjectAccessReview"}`,
			`document 3, line 3: kind "SubjectAccessReview" of apiVersion "authorization.k8s.io/v2": want`,
		},
		{
			"an old version of an AdmissionReview", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{}}`,
			`document 3, line 3: kind "AdmissionReview" of apiVersion "admission.k8s.io/v1beta1": want`,
		},
		{
			"an AdmissionReview without a request", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{}}`,
			"document 3, line 3: request: Required value",
		},
		{
			"an AdmissionReview with a wrong type", strings.Replace(admissionOf("yes"), `"worker-1"`, `[]`, 1),
			"document 3, line 3: request.userInfo.username: want a string, got a list",
		},
		{
			"a document nested too deep", nested(maxDepth + 1),
			"document 3, line 3: not valid JSON: exceeded max depth",
		},
		{
			"a name twice", `{"kind":"SubjectAccessReview","spec":{"user":"u","user":"v"}}`,
			"document 3, line 3: spec.user: a field is given twice",
		},
		{"no kind", `{}`, `document 3, line 3: kind "" of apiVersion "": want SubjectAccessReview`},
		{
			"field names in another case", `{"apiVersion":"authorization.k8s.io/v1","KIND":"SubjectAccessReview"}`,
			`document 3, line 3: kind ""`,
		},
		{
			"an invalid review", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"u"}}`,
			"document 3, line 3: spec: Invalid value: set exactly one of resourceAttributes and nonResourceAttributes",
		},
		{
			"a document that is too large", `{"a":"` + strings.Repeat("x", MaxDocument) + `"}`,
			"document 3, line 3: larger than 41943040 bytes",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var out bytes.Buffer
			total, err := Stream(t.Context(), named(), strings.NewReader(good+good+tc.broken+"\n"+good), &out)
			if err == nil {
				t.Fatal("no error")
			}
			if got := err.Error(); !strings.HasPrefix(got, tc.want) {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
			if want := strings.Repeat(answered("yes", `{"allowed":true}`), 2); out.String() != want || total.Documents != 2 {
				t.Errorf("answers before it: got\n%swant\n%s", out.String(), want)
			}
			if d := new(DocumentError); !errors.As(err, &d) || d.Number != 3 || d.Line != 3 {
				t.Errorf("err = %#v", err)
			}
		})
	}
}

func TestStreamThatEndsWithinADocument(t *testing.T) {
	for _, rest := range []string{"{", `{"kind":"Subject`, `{"kind":"SubjectAccessReview",`} {
		_, err := Stream(t.Context(), named(), strings.NewReader(document("yes")+"\n\n"+rest), io.Discard)
		if want := "document 2, line 3: the input ends within the document"; fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", rest, err, want)
		}
	}
}

func TestStreamKeepsTheOrder(t *testing.T) {
	const n = 5000
	var in, want bytes.Buffer
	for i := range n {
		name := fmt.Sprint("object-", i)
		in.WriteString(document(name) + "\n")
		want.WriteString(answered(name, fmt.Sprintf(`{"allowed":false,"reason":"no opinion <- of %s"}`, name)))
	}
	var out bytes.Buffer
	total, err := Stream(t.Context(), named(), iotest.HalfReader(&in), &out)
	if err != nil || total.Documents != n {
		t.Fatalf("total = %+v, %v", total, err)
	}
	if !bytes.Equal(out.Bytes(), want.Bytes()) {
		t.Error("answers are not those of the documents, in order")
	}
}

func TestStreamAnswersBeforeItWaits(t *testing.T) {
	documents, send := io.Pipe()
	receive, answers := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := Stream(context.Background(), named(), documents, answers)
		done <- err
	}()
	for range 3 {
		if _, err := io.WriteString(send, document("yes")); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len(answered("yes", `{"allowed":true}`)))
		if _, err := io.ReadFull(receive, line); err != nil {
			t.Fatal(err)
		}
	}
	send.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestStreamStopsWhenNobodyReads(t *testing.T) {
	endless := io.MultiReader(strings.NewReader(strings.Repeat(document("yes")+"\n", 10000)))
	_, err := Stream(t.Context(), named(), endless, failingWriter{})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("err = %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStreamReportsReadErrors(t *testing.T) {
	broken := errors.New("read error")
	var out bytes.Buffer
	_, err := Stream(t.Context(), named(), io.MultiReader(strings.NewReader(document("yes")), iotest.ErrReader(broken)), &out)
	if !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
	if out.Len() == 0 {
		t.Error("the document before it was not answered")
	}
}

func TestStreamCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	documents, _ := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := Stream(ctx, named(), documents, io.Discard)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(document("yes")), 1)
	f.Add([]byte(document("no")+"\n"+document("error")), 7)
	f.Add([]byte(admissionOf("yes")+document("no")+admissionOf("no")), 5)
	f.Add([]byte(`{"a":[}`), 2)
	f.Add([]byte(`{"a":"\uth`), 7)
	f.Add([]byte("{\"a\":\"\\u0000\"}{}"), 3)
	f.Add([]byte("{\"a\":-9\uc956}"), 7) // a piece ends inside of the character
	f.Add([]byte("{\"a\":\"\\udc00\\u\x92\xd9d800\"}"), 7)
	oddAccessReviews().seed(func(document []byte) { f.Add(document, 64) })
	f.Fuzz(func(t *testing.T, input []byte, chunk int) {
		if chunk < 1 || chunk > 64 {
			return
		}
		whole, wholeErr := streamed(input, len(input)+1)
		pieces, piecesErr := streamed(input, chunk)
		if whole != pieces || withoutQuotes(wholeErr) != withoutQuotes(piecesErr) {
			t.Errorf("at once: %q, %v\nin pieces: %q, %v", whole, wholeErr, pieces, piecesErr)
		}
		if got, want := framed(input), decoded(input); !slices.Equal(got, want) {
			t.Errorf("framed %q, encoding/json reads %q", got, want)
		}
	})
}

// quoted is the part that the decoder calls invalid, and the text that it quotes.
var quoted = regexp.MustCompile("(invalid [a-z ]+) (?:'[^']+'|`[^`]*`|\"(?:[^\"\\\\]|\\\\.)*\")")

// withoutQuotes returns an error's text without the text that it quotes: the decoder quotes as much of an escape
// sequence, or of a character, as it has.
func withoutQuotes(err error) string { return quoted.ReplaceAllString(fmt.Sprint(err), "$1") }

// framed cuts the input into documents, up to the first that is not valid JSON.
func framed(input []byte) []string {
	var documents []string
	for d := jsontext.NewDecoder(bytes.NewReader(input), syntax()); ; {
		length, err := nextDocument(d)
		if err != nil {
			return documents
		}
		end := int(d.InputOffset())
		documents = append(documents, string(input[end-length:end]))
	}
}

// decoded does the same with encoding/json, up to the first document that is not an object.
func decoded(input []byte) []string {
	var documents []string
	for d := json.NewDecoder(bytes.NewReader(input)); ; {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil || raw[0] != '{' || !jsontext.Value(raw).IsValid(syntax()) {
			return documents
		}
		documents = append(documents, string(raw))
	}
}

func streamed(input []byte, chunk int) (string, error) {
	var out bytes.Buffer
	_, err := Stream(context.Background(), named(), &chunked{input, chunk}, &out)
	return out.String(), err
}

// chunked reads a few bytes at a time.
type chunked struct {
	rest []byte
	size int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.size, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

// BenchmarkStream compares Stream with a loop that only decodes and encodes the same
// documents on one core.
func BenchmarkStream(b *testing.B) {
	const n = 10000
	input := []byte(strings.Repeat(document("object-with-an-ordinary-name")+"\n", n))
	b.Run("stream", func(b *testing.B) {
		for b.Loop() {
			if _, err := Stream(b.Context(), named(), bytes.NewReader(input), io.Discard); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "documents/s")
	})
	b.Run("decode and encode", func(b *testing.B) {
		for b.Loop() {
			d, e := json.NewDecoder(bytes.NewReader(input)), json.NewEncoder(io.Discard)
			for {
				var document authorizationv1.SubjectAccessReview
				if err := d.Decode(&document); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
				if err := e.Encode(&document); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "documents/s")
	})
}
