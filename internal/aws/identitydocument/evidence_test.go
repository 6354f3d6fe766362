package identitydocument_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// evidenceOf returns the evidence in a request with these fields.
func evidenceOf(tb testing.TB, fields map[string]any) *identitydocument.Evidence {
	tb.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		tb.Fatal(err)
	}
	evidence, err := identitydocument.ParseEvidence(body)
	if err != nil {
		tb.Fatal(err)
	}
	return evidence
}

func TestRequestsAreReadStrictly(t *testing.T) {
	document := base64.StdEncoding.EncodeToString([]byte("a message"))
	for _, tc := range []struct{ rule, body, want string }{
		{"a message", `{"Document":"` + document + `"}`, ""},
		{"a document and its signature", `{"Document":"` + document + `","Signature":"AQI=\n"}`, ""},
		{
			"a caller's identity",
			`{"Document":"` + document + `","CallerIdentity":{"URL":"https://sts.example.org/","Method":"GET","Header":{"X-A":["b"]}}}`,
			"",
		},
		{"no document", `{}`, "the request: Document is missing or empty"},
		{"an empty document", `{"Document":""}`, "the request: Document is missing or empty"},
		{"no document but null", `{"Document":null}`, "the request: Document is missing or empty"},
		{"a document twice", `{"Document":"` + document + `","Document":"AQI="}`, "the request: Document: a field is given twice"},
		{"a document in another case", `{"document":"` + document + `"}`, `the request: Document: the key is written "document"`},
		{
			"a document in two cases", `{"Document":"` + document + `","DOCUMENT":"AQI="}`,
			`the request: Document: the key is written "DOCUMENT"`,
		},
		{"an unknown field", `{"Document":"` + document + `","Region":"eu-west-1"}`, "the request: Region: there is no such field"},
		{"a document that is not base64", `{"Document":"%"}`, "the request: Document: illegal base64 data at input byte 0"},
		{
			"a signature that is not base64", `{"Document":"` + document + `","Signature":"%"}`,
			"the request: Signature: illegal base64 data at input byte 0",
		},
		{"deep JSON", `{"Document":` + strings.Repeat("[", 30000), "the request: nested more than 16 deep"},
		{"a list", `[]`, "the request: want an object, got a list"},
		{"null", `null`, "the request: Document is missing or empty"},
		{"two objects", `{"Document":"` + document + `"}{}`, "the request: not valid JSON: text follows the document"},
		{"nothing", ``, "the request: it is empty: want an identity document; is the client's attestor (--authorizer) aws?"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			evidence, err := identitydocument.ParseEvidence([]byte(tc.body))
			if tc.want == "" {
				if err != nil || string(evidence.Document) != "a message" {
					t.Errorf("got %+v, %v", evidence, err)
				}
				return
			}
			if refusal := refused(t, err, identitydocument.DocumentMalformed); refusal.Detail != tc.want {
				t.Errorf("got %q, want %q", refusal.Detail, tc.want)
			}
		})
	}
}

func TestEncodingsOfMessages(t *testing.T) {
	plain := string(decodedText(genuine(t, "ap-southeast-2.rsa2048.txt")))
	lines := func(width int, end string) string {
		var b strings.Builder
		for rest := plain; rest != ""; {
			n := min(width, len(rest))
			b.WriteString(rest[:n] + end)
			rest = rest[n:]
		}
		return b.String()
	}
	const begin, end = "-----BEGIN PKCS7-----\n", "-----END PKCS7-----\n"
	for _, tc := range []struct {
		rule, text string
		good       bool
	}{
		{"in one line", plain, true},
		{"in lines of 76 characters", lines(76, "\n"), true},
		{"in lines of 64 characters that end as in Windows", lines(64, "\r\n"), true},
		{"with blank space around it", "\n " + plain + " \n", true},
		{"with PEM lines", begin + lines(64, "\n") + end, true},
		{"with PEM lines that end as in Windows", strings.ReplaceAll(begin+lines(64, "\n")+end, "\n", "\r\n"), true},
		{"with PEM lines around one line", begin + plain + "\n" + end, true},
		{"with the first PEM line only", begin + plain, false},
		{"with the last PEM line only", plain + "\n" + end, false},
		{"with PEM lines of something else", strings.ReplaceAll(begin+plain+"\n"+end, "PKCS7", "CERTIFICATE"), false},
		{"with PEM lines twice", begin + begin + plain + "\n" + end + end, false},
		{"with two messages", begin + plain + "\n" + end + begin + plain + "\n" + end, false},
		{"with text after the padding", plain + "AAAA", false},
		{"without the last characters", plain[:len(plain)-4], false},
		{"with bits after the end of the data", plain[:len(plain)-3] + "B==", false},
		{"with blank space inside", plain[:100] + " " + plain[100:], false},
		{"in the alphabet of URLs", strings.ReplaceAll(plain, "+", "-"), false},
		{"as bytes", string(raw(t, []byte(plain))), false},
		{"as blank space", " ", false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			document, err := identitydocument.NewVerifier(nil).Verify(&identitydocument.Evidence{Document: []byte(tc.text)})
			switch {
			case !tc.good:
				refused(t, err, identitydocument.DocumentMalformed)
			case err != nil:
				t.Error(err)
			case document.InstanceID != "i-0c5541936caf78c12":
				t.Errorf("got %s", summary(document))
			}
		})
	}
}

func TestUnverifiedDocumentsAreReadStrictly(t *testing.T) {
	forged := rsaSigner().message([]byte(usual), func(p *messageParts) {
		p.signers = der(0x31, rsaSigner().info([]byte(usual), nil, func(p *signerParts) { p.signature = der(0x04, make([]byte, 256)) }))
	})
	twice := strings.Replace(usual, `"version"`, `"instanceId" : "i-0fedcba0987654321", "version"`, 1)
	for _, tc := range []struct {
		rule     string
		evidence *identitydocument.Evidence
		form     identitydocument.Form // empty for a refusal
	}{
		{"a message", &identitydocument.Evidence{Document: forged}, identitydocument.RSA2048},
		{
			"a message signed with DSA", &identitydocument.Evidence{Document: dsaSigner().message([]byte(usual), nil)},
			identitydocument.PKCS7,
		},
		{
			"a document with a signature", &identitydocument.Evidence{Document: []byte(usual), Signature: []byte{1}},
			identitydocument.Signature,
		},
		{"a document alone", &identitydocument.Evidence{Document: []byte(usual)}, identitydocument.Signature},
		{"an invalid message", &identitydocument.Evidence{Document: []byte("AAAA")}, ""},
		{"a document with a field twice", &identitydocument.Evidence{Document: []byte(twice)}, ""},
		{"a message with such a document", &identitydocument.Evidence{Document: rsaSigner().message([]byte(twice), nil)}, ""},
		{"a message beside a signature", &identitydocument.Evidence{Document: forged, Signature: []byte{1}}, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			document, err := identitydocument.Unverified(tc.evidence)
			switch {
			case tc.form == "":
				refused(t, err, identitydocument.DocumentMalformed)
			case err != nil:
				t.Error(err)
			case document.Form != tc.form || document.InstanceID != "i-1234567890abcdef0":
				t.Errorf("got %s", summary(document))
			}
		})
	}
}

const someEvidence = `{"Document":"e30=","CallerIdentity":{"URL":"u","Method":"m","Header":{"a":["b"]},"Body":"b"}}`

func TestOddEvidenceIsReadOrRefused(t *testing.T) {
	read, known := 0, identitydocument.NewVerifier(nil)
	for name, document := range oddjson.Documents(someEvidence, oddjson.Places(identitydocument.Evidence{})) {
		evidence, err := identitydocument.ParseEvidence(document)
		if err != nil {
			refused(t, err, identitydocument.DocumentMalformed)
			continue
		}
		read++
		if _, err := known.Verify(evidence); err == nil {
			t.Errorf("%s is verified", name)
		}
	}
	if read == 0 {
		t.Error("no evidence is read")
	}
}

func TestOddDocumentsAreReadOrRefused(t *testing.T) {
	base := genuine(t, "ap-southeast-2.document.json")
	var fields map[string]any
	if err := json.Unmarshal(base, &fields); err != nil {
		t.Fatal(err)
	}
	var places []oddjson.Place
	for name := range fields {
		places = append(places, oddjson.Place{name})
	}
	read := 0
	for name, document := range oddjson.Documents(string(base), places) {
		_, err := identitydocument.Unverified(&identitydocument.Evidence{Document: document, Signature: []byte("s")})
		if refusal := new(attest.Refusal); err != nil && !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
		} else if err == nil {
			read++
		}
	}
	if read == 0 {
		t.Error("no document is read")
	}
}

// FuzzParseEvidence checks that parsed evidence has a document, and that no invented
// request verifies.
func FuzzParseEvidence(f *testing.F) {
	document := genuine(f, "ap-southeast-2.document.json")
	f.Add([]byte(`{"Document":"e30=","Signature":"AQI="}`))
	f.Add([]byte(someEvidence))
	f.Add([]byte(`{"document":"e30="}`))
	f.Add([]byte(`{"Document":"` + base64.StdEncoding.EncodeToString(document) + `","Signature":"DVm1OtrMzph5Ts"}`))
	for odd := range oddjson.Seeds(someEvidence, oddjson.Places(identitydocument.Evidence{})) {
		f.Add(odd)
	}
	known := identitydocument.NewVerifier(nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		evidence, err := identitydocument.ParseEvidence(data)
		if err != nil {
			refused(t, err, identitydocument.DocumentMalformed)
			return
		}
		if len(evidence.Document) == 0 {
			t.Fatal("evidence without a document")
		}
		if d, err := known.Verify(evidence); err == nil && !bytes.Contains(document, []byte(d.InstanceID)) {
			t.Fatalf("%q was verified", data)
		}
	})
}
