package fakeaws_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// skeleton returns the structure of BER: for each element its depth, its tag and whether
// its length is definite, and the values of object identifiers and of the name of a
// signer.
func skeleton(t *testing.T, data []byte, depth int) (lines []string, rest []byte) {
	t.Helper()
	for len(data) > 1 {
		tag, first := data[0], data[1]
		data = data[2:]
		if tag == 0 && first == 0 {
			return lines, data
		}
		line := fmt.Sprintf("%s%02x", strings.Repeat(" ", depth), tag)
		if first == 0x80 {
			var inner []string
			inner, data = skeleton(t, data, depth+1)
			lines = append(append(lines, line+" indefinite"), inner...)
			continue
		}
		size := int(first)
		if n := int(first) & 0x7f; first > 0x80 {
			size = 0
			for _, b := range data[:n] {
				size = size<<8 | int(b)
			}
			data = data[n:]
		}
		content := data[:size]
		data = data[size:]
		if tag == 0x06 || tag == 0x13 {
			line += " " + hex.EncodeToString(content)
		}
		lines = append(lines, line)
		if tag&0x20 != 0 {
			inner, _ := skeleton(t, content, depth+1)
			lines = append(lines, inner...)
		}
	}
	return lines, data
}

func structure(t *testing.T, text string) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	lines, rest := skeleton(t, data, 0)
	if len(rest) > 0 {
		t.Errorf("%d bytes after the end", len(rest))
	}
	return strings.Join(lines, "\n")
}

// TestSignedFormsHaveTheGenuineStructure compares with documents that AWS signed.
func TestSignedFormsHaveTheGenuineStructure(t *testing.T) {
	cloud := newCloud(t)
	instance := cloud.Launch(fakeaws.Instance{})
	for form, ours := range map[string]string{
		"pkcs7":   cloud.Signer().PKCS7(instance.Document(), instance.Signed()),
		"rsa2048": cloud.Signer().RSA2048(instance.Document(), instance.Signed()),
	} {
		theirs := genuine(t, "ap-southeast-2."+form+".txt")
		if got, want := structure(t, ours), structure(t, theirs); got != want {
			t.Errorf("the structure of %s is\n%s\nthe genuine one is\n%s", form, got, want)
		}
		if got, want := strings.IndexByte(ours, '\n'), strings.IndexByte(theirs, '\n'); got != want {
			t.Errorf("%s: lines of %d characters, the genuine ones have %d", form, got, want)
		}
	}
}

// TestDocumentsHaveTheGenuineFormat compares everything except the values.
func TestDocumentsHaveTheGenuineFormat(t *testing.T) {
	blank := func(document string) string {
		lines := strings.Split(document, "\n")
		for i, line := range lines {
			if at := strings.Index(line, ` : "`); at >= 0 {
				lines[i] = line[:at] + ` : "` + line[strings.LastIndexByte(line, '"'):]
			}
		}
		return strings.Join(lines, "\n")
	}
	instance := newCloud(t).Launch(fakeaws.Instance{})
	if got, want := blank(string(instance.Document())), blank(genuine(t, "ap-southeast-2.document.json")); got != want {
		t.Errorf("the format of documents is\n%s\nthe genuine one is\n%s", got, want)
	}
}

func genuine(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "aws", "identitydocument", "testdata", "genuine", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}
