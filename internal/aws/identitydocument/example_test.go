package identitydocument_test

import (
	"encoding/base64"
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// A document that AWS did not sign is refused.
func Example() {
	document := `{"version": "2017-09-30", "instanceId": "i-0123456789abcdef0", "accountId": "111122223333", "region": "eu-west-1",
		"availabilityZone": "eu-west-1a", "privateIp": "10.0.0.7", "pendingTime": "2026-01-01T00:00:00Z"}`
	evidence, err := identitydocument.ParseEvidence(fmt.Appendf(nil, `{"Document": %q, "Signature": "AAAA"}`,
		base64.StdEncoding.EncodeToString([]byte(document))))
	if err != nil {
		fmt.Println("not evidence:", err)
		return
	}
	if _, err := identitydocument.NewVerifier(nil).Verify(evidence); err != nil {
		fmt.Println("not verified:", err)
	}
	// Output: not verified: SignatureInvalid: the signature (form signature) is not AWS's for region eu-west-1
}
