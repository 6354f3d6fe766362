package reference_test

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/docs/reference"
)

// A program that shows a code links to its section, and may print it.
func Example() {
	fmt.Println(reference.Link(reference.Reason, "NoPathToObject"))
	for _, s := range reference.Sections() {
		if s.Code == "NoPathToObject" {
			first, _, _ := strings.Cut(s.Text, "\n")
			fmt.Println(first)
		}
	}
	// Output:
	// https://github.com/node-authorizer/node-authorizer/blob/main/docs/reference/reasons/node-authorizer.md#nopathtoobject
	// > no relationship found between this node and this object
}
