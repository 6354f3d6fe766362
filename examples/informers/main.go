// Command informers asks the library what a node may do with a pod of a running cluster, without the
// command line: informers of client-go keep the state, and the Node authorizer and NodeRestriction decide.
//
//	go run ./examples/informers worker-1 shop/api
//
// It uses the current context of kubectl, whose user must be allowed to list and watch what package
// nodestate names.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodestate"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: informers NODE NAMESPACE/POD")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(2)
	}
}

func run(node, pod string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return ask(ctx, os.Stdout, client, node, pod)
}

// ask writes whether the node may read the pod, and whether it may delete it.
func ask(ctx context.Context, w io.Writer, client kubernetes.Interface, node, pod string) error {
	namespace, name, found := strings.Cut(pod, "/")
	if !found {
		return fmt.Errorf("%q is not NAMESPACE/POD", pod)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	minor, err := kubeversion.Parse(version.GitVersion)
	if err != nil {
		return err
	}
	features := kubeversion.For(minor) // and the gates of the API server: features.With

	factory := informers.NewSharedInformerFactory(client, 0)
	state, err := nodestate.New(factory, features)
	if err != nil {
		return err
	}
	reads := nodeauthz.New(state.Graph(), features, nodeauthz.WithSynced(state.HasSynced))
	writes := noderestriction.New(state, nil, features)
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), state.HasSynced) {
		return errors.New("ended before the cluster was read")
	}

	user, groups := nodeidentity.User(node)
	read := reads.Explain(&access.Request{
		User: user, Groups: groups, ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: namespace, Name: name,
	})
	fmt.Fprintf(w, "get: %s: %s\n", read.Decision, read.Reason.Message)
	write := writes.Decide(ctx, &noderestriction.Request{
		User: user, Groups: groups, Operation: noderestriction.Delete,
		Version: "v1", Resource: "pods", Namespace: namespace, Name: name,
	})
	if write.Err != nil {
		return write.Err
	}
	fmt.Fprintf(w, "delete: %s: %s\n", write.Decision, write.Reason.Message)
	return nil
}
