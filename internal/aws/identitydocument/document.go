// Package identitydocument reads the evidence of EC2 instances and verifies instance
// identity documents with the certificates that AWS publishes: a [Verifier] takes
// [Evidence] in any of the three forms in which AWS signs, and returns the [Document].
//
// It sends no requests. Package aws checks what a document does not contain.
package identitydocument

import (
	"crypto/sha256"
	"net/netip"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// Form is one of the three ways in which AWS signs an identity document, with the name in
// the metadata service
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/verify-iid.html).
type Form string

const (
	// RSA2048 is a PKCS #7 message with the document, signed with RSA and SHA-256.
	RSA2048 Form = "rsa2048"
	// PKCS7 is a PKCS #7 message with the document, signed with DSA and SHA-1.
	PKCS7 Form = "pkcs7"
	// Signature is a detached signature with RSA and SHA-256.
	Signature Form = "signature"
)

// DocumentVersion is the supported version of identity documents.
const DocumentVersion = "2017-09-30"

// Document is an instance identity document
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-identity-documents.html).
type Document struct {
	AccountID        string // twelve digits
	Region           string
	AvailabilityZone string
	InstanceID       string // "i-" and 8 or 17 hexadecimal digits
	Version          string
	// PrivateIP is the primary private IPv4 address in canonical form. It is empty in an
	// IPv6-only subnet.
	PrivateIP string
	// PendingTime is the last start of the instance.
	PendingTime time.Time

	// Form is the form in which the document was received. Digest is the SHA-256 of its
	// text, the same in all forms.
	Form   Form
	Digest [sha256.Size]byte
}

// parseDocument reads the text of a document. AWS adds fields over time, which are
// ignored. Fields that become part of names must have the form that AWS uses, because the
// text may not be verified yet.
func parseDocument(content []byte, form Form, digest [sha256.Size]byte) (*Document, error) {
	var text struct {
		AccountID        string `json:"accountId"`
		AvailabilityZone string `json:"availabilityZone"`
		InstanceID       string `json:"instanceId"`
		PendingTime      string `json:"pendingTime"`
		PrivateIP        string `json:"privateIp"`
		Region           string `json:"region"`
		Version          string `json:"version"`
	}
	if err := strictjson.Unmarshal(content, &text, strictjson.Options{AllowUnknown: true}); err != nil {
		return nil, malformed("the identity document: %v", err)
	}
	d := &Document{
		AccountID: text.AccountID, Region: text.Region, AvailabilityZone: text.AvailabilityZone, InstanceID: text.InstanceID,
		Version: text.Version, PrivateIP: text.PrivateIP, Form: form, Digest: digest,
	}
	if d.Version != DocumentVersion {
		return nil, attest.Refuse(WrongDocumentVersion, "the identity document is of version %q, want %s", clip(d.Version), DocumentVersion)
	}
	if err := d.checkNames(); err != nil {
		return nil, err
	}
	var err error
	if d.PendingTime, err = time.Parse(time.RFC3339, text.PendingTime); err != nil {
		return nil, malformed("the identity document: pendingTime is %q, want a time as in RFC 3339", clip(text.PendingTime))
	}
	d.PendingTime = d.PendingTime.UTC()
	if d.PrivateIP != "" {
		address, err := netip.ParseAddr(d.PrivateIP)
		if err != nil || address.Zone() != "" {
			return nil, malformed("the identity document: privateIp is %q, want an IP address", clip(d.PrivateIP))
		}
		d.PrivateIP = address.Unmap().String()
	}
	return d, nil
}

// checkNames checks the form of the instance's ids.
func (d *Document) checkNames() error {
	const digits = "0123456789"
	id, isInstance := strings.CutPrefix(d.InstanceID, "i-")
	switch {
	case len(d.AccountID) != 12 || strings.Trim(d.AccountID, digits) != "":
		return malformed("the identity document: accountId is %q, want twelve digits", clip(d.AccountID))
	case !isInstance || len(id) != 8 && len(id) != 17 || strings.Trim(id, digits+"abcdef") != "":
		return malformed("the identity document: instanceId is %q, want i- and 8 or 17 hexadecimal digits", clip(d.InstanceID))
	case !isPlace(d.Region):
		return malformed("the identity document: region is %q, want letters, digits and hyphens", clip(d.Region))
	case !isPlace(d.AvailabilityZone) || !strings.HasPrefix(d.AvailabilityZone, d.Region):
		return malformed("the identity document: availabilityZone is %q, want one of region %s", clip(d.AvailabilityZone), d.Region)
	}
	return nil
}

// isPlace reports whether a text has the form of regions and zones: a DNS label that
// begins with a letter.
func isPlace(text string) bool {
	if text == "" || len(text) > 63 || text[0] < 'a' || text[0] > 'z' || text[len(text)-1] == '-' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// malformed returns the refusal for something other than a signed identity document.
func malformed(format string, args ...any) *attest.Refusal {
	return attest.Malformed(DocumentMalformed, format, args...)
}

// clip shortens untrusted text.
func clip(text string) string {
	const limit = 64
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
