package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

func newApplyCommand() *cobra.Command {
	var dir, path string
	command := &cobra.Command{
		Use:   "apply -f PATH",
		Short: "Apply a YAML file or a folder of them to the control plane",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := adminConfig(dir)
			if err != nil {
				return err
			}
			objects, err := manifests.Read(path)
			if err != nil {
				return err
			}
			return manifests.Apply(command.Context(), config, objects, func(object *unstructured.Unstructured) {
				fmt.Fprintln(command.OutOrStdout(), manifests.Name(object), "applied")
			})
		},
	}
	addDirFlag(command, &dir)
	command.Flags().StringVarP(&path, "filename", "f", "", "file or folder")
	if err := command.MarkFlagRequired("filename"); err != nil {
		panic(err)
	}
	return command
}

func newWaitCommand() *cobra.Command {
	var dir string
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "wait",
		Short: "Wait until all pods run and are ready, and print where they run",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := adminConfig(dir)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(command.Context(), timeout, fmt.Errorf("it took longer than %s", timeout))
			defer cancel()
			pods, err := manifests.WaitForPods(ctx, config)
			if err != nil {
				return err
			}
			return printPods(command.OutOrStdout(), pods)
		},
	}
	addDirFlag(command, &dir)
	command.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait")
	return command
}

// adminConfig returns the configuration for the plane in dir. It ignores KUBECONFIG.
func adminConfig(dir string) (*rest.Config, error) {
	state, err := localplane.ReadState(dir)
	if err != nil || !state.Running() {
		return nil, fmt.Errorf("no control plane runs in %s: start one with \"localplane up\"", dir)
	}
	config, err := clientcmd.BuildConfigFromFlags("", state.AdminKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}
