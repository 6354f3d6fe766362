package identitydocument_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// genuine reads an answer that AWS's metadata service once returned; see testdata/genuine/README.md
// for its origin.
func genuine(tb testing.TB, name string) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "genuine", name))
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// genuineBeside returns the genuine document with its detached signature.
func genuineBeside(tb testing.TB) *identitydocument.Evidence {
	tb.Helper()
	document, signature := genuine(tb, "ap-southeast-2.document.json"), genuine(tb, "ap-southeast-2.signature.txt")
	return evidenceOf(tb, map[string]any{"Document": document, "Signature": string(signature)})
}

// pinnedKey returns the key of the genuine documents' region in a file of pinned
// certificates.
func pinnedKey[Key any](file string) Key {
	for _, one := range identitydocument.PinnedCertificates(file) {
		if slices.Contains(one.Regions, "ap-southeast-2") {
			return one.Certificate.PublicKey.(Key)
		}
	}
	panic("no certificate")
}

// summary returns a document on one line, for comparison.
func summary(d *identitydocument.Document) string {
	return fmt.Sprintf("%s %s %s %s %s %s %q %s", d.Form, d.Version, d.AccountID, d.Region, d.AvailabilityZone,
		d.InstanceID, d.PrivateIP, d.PendingTime.Format("2006-01-02T15:04:05Z07:00"))
}

// refused requires that an error is a refusal with a code.
func refused(t *testing.T, err error, code verdict.Code) *attest.Refusal {
	t.Helper()
	var refusal *attest.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal with %s", err, code)
	}
	if refusal.Code != code {
		t.Errorf("got %v, want %s", refusal, code)
	}
	if refusal.Malformed != (code == identitydocument.DocumentMalformed) {
		t.Errorf("%v: malformed is %t", refusal, refusal.Malformed)
	}
	return refusal
}

func TestGenuineDocumentsAreVerifiedWithAWSsCertificates(t *testing.T) {
	of := func(name string) *identitydocument.Evidence {
		return &identitydocument.Evidence{Document: genuine(t, name)}
	}
	for _, tc := range []struct {
		form     string
		evidence *identitydocument.Evidence
		want     string
	}{
		{
			"rsa2048", of("ap-southeast-2.rsa2048.txt"),
			`rsa2048 2017-09-30 189292791360 ap-southeast-2 ap-southeast-2a i-0c5541936caf78c12 ` +
				`"10.0.1.242" 2026-02-16T00:38:27Z`,
		},
		{
			"pkcs7", of("ap-southeast-2.pkcs7.txt"),
			`pkcs7 2017-09-30 189292791360 ap-southeast-2 ap-southeast-2a i-01c4776ebe87bea77 ` +
				`"10.0.3.106" 2026-03-21T06:25:00Z`,
		},
		{
			"signature", genuineBeside(t),
			`signature 2017-09-30 189292791360 ap-southeast-2 ap-southeast-2a i-0c5541936caf78c12 ` +
				`"10.0.1.242" 2026-02-16T00:38:27Z`,
		},
	} {
		t.Run(tc.form, func(t *testing.T) {
			document, err := identitydocument.NewVerifier(nil).Verify(tc.evidence)
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(document); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			unverified, err := identitydocument.Unverified(tc.evidence)
			if err != nil {
				t.Fatal(err)
			}
			if *unverified != *document {
				t.Errorf("unverified: got %s, want %s", summary(unverified), tc.want)
			}
		})
	}
}

func TestDigestIsTheSameInAllForms(t *testing.T) {
	message, err := identitydocument.NewVerifier(nil).Verify(&identitydocument.Evidence{Document: genuine(t, "ap-southeast-2.rsa2048.txt")})
	if err != nil {
		t.Fatal(err)
	}
	beside, err := identitydocument.NewVerifier(nil).Verify(genuineBeside(t))
	if err != nil {
		t.Fatal(err)
	}
	if message.Digest != beside.Digest {
		t.Errorf("got %x and %x", message.Digest, beside.Digest)
	}
}

// TestGenuineOldDocumentsAreRefusedForTheirVersionOnly: their signatures, which are
// checked first, are valid.
func TestGenuineOldDocumentsAreRefusedForTheirVersionOnly(t *testing.T) {
	for _, name := range []string{"us-east-1-of-2016.pkcs7.txt", "us-east-1-of-2016-second.pkcs7.txt"} {
		t.Run(name, func(t *testing.T) {
			message := genuine(t, name)
			_, err := identitydocument.NewVerifier(nil).Verify(&identitydocument.Evidence{Document: message})
			refused(t, err, identitydocument.WrongDocumentVersion)

			broken := flipped(raw(t, decodedText(message)), len(raw(t, decodedText(message)))-12, 1)
			_, err = identitydocument.NewVerifier(nil).Verify(&identitydocument.Evidence{Document: text(broken)})
			refused(t, err, identitydocument.SignatureInvalid)
		})
	}
}

// decodedText returns the base64 of a message without PEM lines and line ends.
func decodedText(message []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(message)) {
		if !strings.HasPrefix(line, "-----") {
			b.WriteString(strings.TrimSpace(line))
		}
	}
	return []byte(b.String())
}

func flipped(data []byte, i int, mask byte) []byte {
	changed := slices.Clone(data)
	changed[i] ^= mask
	return changed
}

// usual is a document in AWS's format.
const usual = `{
  "accountId" : "123456789012",
  "architecture" : "x86_64",
  "availabilityZone" : "eu-west-1b",
  "billingProducts" : null,
  "devpayProductCodes" : null,
  "marketplaceProductCodes" : null,
  "imageId" : "ami-5fb8c835",
  "instanceId" : "i-1234567890abcdef0",
  "instanceType" : "m5.large",
  "kernelId" : null,
  "pendingTime" : "2026-05-01T10:00:00Z",
  "privateIp" : "10.158.112.84",
  "ramdiskId" : null,
  "region" : "eu-west-1",
  "version" : "2017-09-30"
}`

func TestOnlyUnambiguousDocumentsAreAccepted(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(usual, old) {
			t.Fatalf("the document has no %q", old)
		}
		return strings.Replace(usual, old, new, 1)
	}
	for _, tc := range []struct {
		rule, document string
		want           verdict.Code // empty for an accepted document
	}{
		{"as AWS writes it", usual, ""},
		{"a field that AWS may add", replace(`"version"`, `"placement" : {"hostId":null}, "version"`), ""},
		{"an instance with the short id of old ones", replace("i-1234567890abcdef0", "i-12345678"), ""},
		{"an instance without an IPv4 address", replace(`"10.158.112.84"`, "null"), ""},
		{"a local zone", replace(`"eu-west-1b"`, `"eu-west-1-abc-1a"`), ""},
		{"a field twice", replace(`"version"`, `"instanceId" : "i-0fedcba0987654321", "version"`), identitydocument.DocumentMalformed},
		{"an unknown field twice", replace(`"version"`, `"kernelId" : null, "version"`), identitydocument.DocumentMalformed},
		{"a field in another case", replace(`"instanceId"`, `"InstanceId"`), identitydocument.DocumentMalformed},
		{
			"a field in two cases", replace(`"version"`, `"INSTANCEID" : "i-0fedcba0987654321", "version"`),
			identitydocument.DocumentMalformed,
		},
		{
			"deep JSON", replace(`"kernelId" : null`, `"kernelId" : `+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)),
			identitydocument.DocumentMalformed,
		},
		{"text after it", usual + "{}", identitydocument.DocumentMalformed},
		{"text that is not UTF-8", replace("m5.large", "m5.\xff"), identitydocument.DocumentMalformed},
		{"a number for a string", replace(`"123456789012"`, "123456789012"), identitydocument.DocumentMalformed},
		{"an older version", replace("2017-09-30", "2010-08-31"), identitydocument.WrongDocumentVersion},
		{"a very long version", replace("2017-09-30", strings.Repeat("ä", 1000)), identitydocument.WrongDocumentVersion},
		{"no version", replace(`"2017-09-30"`, "null"), identitydocument.WrongDocumentVersion},
		{"an account of another form", replace("123456789012", "12345678901x"), identitydocument.DocumentMalformed},
		{"no instance", replace(`"i-1234567890abcdef0"`, "null"), identitydocument.DocumentMalformed},
		{"an instance of another form", replace("i-1234567890abcdef0", "mi-1234567890abcde"), identitydocument.DocumentMalformed},
		{"an instance id with a slash", replace("i-1234567890abcdef0", "i-1234567890abcdef/"), identitydocument.DocumentMalformed},
		{"no region", replace(`"eu-west-1",`, `"",`), identitydocument.DocumentMalformed},
		{"a region with a host name", replace(`"eu-west-1",`, `"eu-west-1.example.org/",`), identitydocument.DocumentMalformed},
		{"a zone of another region", replace("eu-west-1b", "eu-west-2b"), identitydocument.DocumentMalformed},
		{"no start", replace(`"2026-05-01T10:00:00Z"`, "null"), identitydocument.DocumentMalformed},
		{"an invalid address", replace("10.158.112.84", "10.158.112.084"), identitydocument.DocumentMalformed},
		{
			"an address with a zone, which may be any text", replace("10.158.112.84", "fe80::1%eth0\\u001b[2J"),
			identitydocument.DocumentMalformed,
		},
		{"not JSON", "instance", identitydocument.DocumentMalformed},
		{"nothing", "", identitydocument.DocumentMalformed},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			_, err := verifier().Verify(&identitydocument.Evidence{Document: rsaSigner().message([]byte(tc.document), nil)})
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if refusal := refused(t, err, tc.want); len(refusal.Detail) > 300 {
				t.Errorf("the detail has %d characters", len(refusal.Detail))
			}
		})
	}
}
