package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// published reads the documents in the sources of the minor that a Go module requires.
func published(ctx context.Context, module string) (minor int, lists []*metav1.APIResourceList, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "k8s.io/kubernetes")
	cmd.Dir, cmd.Stderr = module, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return 0, nil, fmt.Errorf("download Kubernetes' sources for %s: %w", module, err)
	}
	var sources struct{ Dir, Version string }
	if err := json.Unmarshal(out, &sources); err != nil {
		return 0, nil, fmt.Errorf("download Kubernetes' sources for %s: %w", module, err)
	}
	if minor, err = minorOf(sources.Version); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", module, err)
	}
	folder := filepath.Join(sources.Dir, "api", "discovery")
	paths, err := filepath.Glob(filepath.Join(folder, "api*__v*.json"))
	if err != nil || len(paths) == 0 {
		return 0, nil, fmt.Errorf("no documents in %s (%w)", folder, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, nil, err
		}
		list := &metav1.APIResourceList{}
		if err := json.Unmarshal(text, list); err != nil || list.GroupVersion == "" {
			return 0, nil, fmt.Errorf("%s is not an APIResourceList (%w)", path, err)
		}
		lists = append(lists, list)
	}
	return minor, lists, nil
}

func minorOf(version string) (int, error) {
	rest, ok := strings.CutPrefix(version, "v1.")
	text, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(text)
	if !ok || err != nil {
		return 0, fmt.Errorf("the version of k8s.io/kubernetes is %q, want v1.NN.N", version)
	}
	return minor, nil
}

// serve asks an API server with everything on.
func serve(ctx context.Context) ([]*metav1.APIResourceList, error) {
	plane, err := localplane.Start(ctx, localplane.Options{
		WithoutControllers: true, WithoutBootstrapRBAC: true, Progress: os.Stderr,
		FeatureGates: map[string]bool{"AllAlpha": true, "AllBeta": true},
		ExtraArgs:    map[localplane.Component][]string{localplane.APIServer: {"--runtime-config=api/all=true"}},
	})
	if err != nil {
		return nil, err
	}
	defer plane.Stop()
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, err
	}
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("ask the API server what it serves: %w", err)
	}
	return lists, nil
}
