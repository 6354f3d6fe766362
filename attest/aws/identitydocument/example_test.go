package identitydocument_test

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/attest/aws/identitydocument"
)

// What is not signed by AWS is no evidence, whatever it says.
func Example() {
	evidence, err := identitydocument.ParseEvidence([]byte(
		`{"Document": "eyJ2ZXJzaW9uIjogIjIwMTctMDktMzAiLCAiaW5zdGFuY2VJZCI6ICJpLTAxMjM0NTY3ODlhYmNkZWYwIiwgImFjY291bnRJZCI6ICIxMTExMjIyMjMzMzMiLCAicmVnaW9uIjogImV1LXdlc3QtMSJ9", "Signature": "AAAA"}`))
	if err != nil {
		fmt.Println("not evidence:", err)
		return
	}
	if _, err := identitydocument.NewVerifier(nil).Verify(evidence); err != nil {
		fmt.Println("not verified:", err)
	}
	// Output: not verified: DocumentMalformed: the identity document: availabilityZone is "", want one of region eu-west-1
}
