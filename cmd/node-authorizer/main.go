// The node-authorizer command answers what a Kubernetes node may do.
package main

import (
	"os"

	"github.com/node-authorizer/node-authorizer/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
