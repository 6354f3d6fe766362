// Provider is the fake provider as a program. It starts in a tenth of the time of a test that stands in for it.
package main

import (
	"os"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeprovider"
)

func main() { os.Exit(fakeprovider.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
