package bootstrap_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
)

// A service needs an attestor, the ledger, and a client of the cluster.
func Example() {
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, err := ledger.NewClient(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	known := ledger.NewCache(entries)
	service := bootstrap.New(bootstrap.Options{
		Attestor: alwaysallow.New(), Ledger: entries, Known: known, Client: client,
		TokenTTL: 5 * time.Minute, Reattestation: bootstrap.Never, Timeout: 15 * time.Second,
	})

	go func() { _ = known.Run(context.Background()) }()
	server := &http.Server{
		Addr: ":10443", Handler: service.Handler(bootstrap.HTTPOptions{}), ReadHeaderTimeout: 5 * time.Second,
	}
	fmt.Println(server.ListenAndServeTLS("tls.crt", "tls.key"))
}
