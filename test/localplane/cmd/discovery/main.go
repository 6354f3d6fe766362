// Command discovery writes the resources that API servers serve, with all feature gates and API versions on: each
// resource and subresource with its verbs and the Kubernetes minors that have it.
//
// The newest minor is asked: a kube-apiserver of localplane runs for it. For each older minor, the
// command reads the discovery documents that Kubernetes publishes with its sources, which are made in
// the same way. For the newest minor both must agree.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	minors := flag.String("minors", "../conformance/minors", "folder with a module v1.NN for each older minor")
	newest := flag.String("newest", "binaries", "folder with the Go module that pins the newest minor")
	out := flag.String("out", "", "file to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *minors, *newest, *out); err != nil {
		fmt.Fprintln(os.Stderr, "discovery:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, minors, newest, out string) error {
	t := table{}
	older, err := filepath.Glob(filepath.Join(minors, "v1.*"))
	if err != nil {
		return err
	}
	if len(older) == 0 || out == "" {
		return fmt.Errorf("no modules v1.NN in %q, or no -out: run \"make discovery\"", minors)
	}
	for _, module := range older {
		minor, items, err := published(ctx, module)
		if err != nil {
			return err
		}
		t.add(minor, items)
	}
	minor, documents, err := published(ctx, newest)
	if err != nil {
		return err
	}
	served, err := serve(ctx)
	if err != nil {
		return err
	}
	if differences := compare(minor, documents, served); len(differences) > 0 {
		return fmt.Errorf("the documents of 1.%d and its API server differ:\n%s", minor, strings.Join(differences, "\n"))
	}
	t.add(minor, served)
	return os.WriteFile(out, []byte(t.text()), 0o644)
}
