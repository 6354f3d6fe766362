package token_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam/token"
)

// A token is signed locally, without a request.
func Example() {
	text, _, err := token.Make(context.Background(), token.Options{
		ClusterID: "shop", Region: "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
	})
	fmt.Println(strings.HasPrefix(text, "k8s-aws-v1."), err)
	// Output: false servers would refuse the token: TokenCredentialMalformed: X-Amz-Credential does not begin with the id of an access key
}
