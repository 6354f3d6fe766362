package attest

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/key"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/tpm"
)

// registration holds the flags of machine.
type registration struct{ device, keyFile, nodeName string }

func newMachine(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "machine [--key-file FILE] [--node-name NAME]",
		Short: "Print the Machine that registers this machine",
		Long: `Reads the endorsement key of this machine's TPM, or with --key-file a private key, and prints the Machine that
registers it: a manifest for kubectl apply. Nothing is written, and the private key is not printed. Whoever applies the
manifest decides that this machine may join as the node.

Exit status: 0 the manifest was printed, 2 the TPM or the key could not be read.`,
		Example: `  node-authorizer attest machine --key-file /etc/ssh/ssh_host_ed25519_key --node-name worker-1

  # with the TPM, as root
  node-authorizer attest machine --node-name worker-1`,
	}
	var r registration
	flags := cmd.Flags()
	flags.StringVar(&r.device, "tpm-device", tpm.DefaultDevice, "the TPM, or the socket of an emulator")
	flags.StringVar(&r.keyFile, "key-file", "", "file with the machine's private key, instead of the TPM")
	flags.StringVar(&r.nodeName, "node-name", "", "name of the node (default: the hostname)")
	for _, name := range []string{"tpm-device", "key-file"} {
		command.Must(cmd.MarkFlagFilename(name))
	}
	command.CompleteNothing(cmd, "node-name")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if r.keyFile != "" && cmd.Flags().Changed("tpm-device") {
			return command.Usagef("want either --key-file or --tpm-device")
		}
		text, err := r.manifest(cmd.Context())
		if err != nil {
			return err
		}
		_, err = a.Out.Write(text)
		return err
	}
	return cmd
}

func (r *registration) manifest(ctx context.Context) ([]byte, error) {
	collector := tpm.NewCollector(tpm.CollectorOptions{Device: r.device})
	if r.nodeName == "" {
		var err error
		if r.nodeName, err = collector.NodeName(ctx); err != nil {
			return nil, err
		}
	}
	spec := map[string]any{"nodeName": r.nodeName}
	if r.keyFile != "" {
		hash, err := key.Hash(r.keyFile)
		if err != nil {
			return nil, err
		}
		spec["publicKeys"] = []string{hash}
	} else {
		hash, err := collector.EKHash()
		if err != nil {
			return nil, err
		}
		spec["tpm"] = map[string]any{"ekHashes": []string{hash}}
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.Group + "/" + v1alpha1.Version, "kind": v1alpha1.MachineKind,
		"metadata": map[string]any{"name": r.nodeName}, "spec": spec,
	})
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return text, nil
}
