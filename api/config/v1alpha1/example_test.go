package v1alpha1_test

import (
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// Parse names every mistake with its line and what to write instead.
func Example() {
	_, err := v1alpha1.Parse([]byte(`apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
webhook:
  clientAuthentication: None
metrics:
  adress: 127.0.0.1:9090
`))
	problems, ok := errors.AsType[v1alpha1.Problems](err)
	fmt.Println(ok)
	for _, problem := range problems {
		fmt.Println(problem)
	}
	// Output:
	// true
	// line 3: webhook.certificateFile: required: write the path of the server's certificate
	// line 3: webhook.keyFile: required: write the path of the server's key
	// line 6: metrics.adress: unknown field; the fields here are address
}
