package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/join/client"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
)

// Call Run before the kubelet starts.
func Example() {
	result, err := client.Run(context.Background(), client.Options{
		Collector: alwaysallow.NewCollector(), NodeName: "worker-1",
		ServiceURL: "https://10.0.0.1:10443", ServiceCAFile: "/etc/kubernetes/pki/ca.crt",
		APIServerURL: "https://10.0.0.1:6443", APIServerCAFile: "/etc/kubernetes/pki/ca.crt",
		Kubeconfig: client.DefaultKubeconfig, Interval: 5 * time.Second, Timeout: time.Minute,
	})
	if refused, ok := errors.AsType[*client.Refused](err); ok {
		fmt.Println("a retry does not help:", refused)
		return
	}
	fmt.Println(result.NodeName, err)
}
