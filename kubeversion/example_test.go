package kubeversion_test

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// The behaviour of an API server depends on its minor version and on the gates that
// its flag --feature-gates sets.
func Example() {
	minor, err := kubeversion.Parse("v1.33.4")
	if err != nil {
		fmt.Println(err)
		return
	}
	features := kubeversion.For(minor)
	fmt.Println(minor, features.Enabled(kubeversion.AuthorizeNodeWithSelectors))

	features, err = features.WithOverrides("AuthorizeNodeWithSelectors=false")
	fmt.Println(features.Enabled(kubeversion.AuthorizeNodeWithSelectors), err)

	// A gate that is locked to its default cannot be set.
	for _, minor := range []kubeversion.Minor{33, 36} {
		fmt.Println(minor, kubeversion.For(minor).Settable(kubeversion.AuthorizeNodeWithSelectors))
	}
	// Output:
	// 1.33 true
	// false <nil>
	// 1.33 true
	// 1.36 false
}
