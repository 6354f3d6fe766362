package deploy_test

import (
	"fmt"
	"io/fs"

	"github.com/node-authorizer/node-authorizer/deploy"
)

func Example_files() {
	names, err := fs.Glob(deploy.Files, "static-pod/server/*")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		fmt.Println(name)
	}
	// Output:
	// static-pod/server/config.yaml
	// static-pod/server/kubeconfig
	// static-pod/server/node-authorizer.yaml
}
