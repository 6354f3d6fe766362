package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/join/client"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/tpm"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/server"
)

// Exit statuses of client. It also uses statusAllowed for success, and statusUndecided for
// usage errors and errors of the machine itself.
const (
	statusRefused     = 1
	statusUnreachable = 3
	statusTimedOut    = 4
)

type joining struct {
	client.Options
	attestor, naming         string
	tokenFile, clusterID     string
	keyFile, certificateFile string
	credential               string
	collectorCommand         string
	tpmOptions               tpm.CollectorOptions
}

func NewClient(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client --node-url URL --kubeapi-url URL --tls-client-ca FILE",
		Short: "Let this machine join a cluster: turn its evidence into a kubeconfig for the kubelet",
		Long: `Shows this machine's evidence to the bootstrap service and writes the token that
it gets into a kubeconfig (--kubeconfig), from which a kubelet bootstraps (the kubelet's
flag --bootstrap-kubeconfig). With --credential=certificate, the client makes the key of
the kubelet, uses the token itself to get the certificate, and writes both to --cert-dir
and a kubeconfig for the kubelet's flag --kubeconfig; where the evidence can name the
key, nobody gets a certificate for another one.

The client runs once, before the kubelet, and does nothing if the kubeconfig exists. It
tries again after a passing failure until --timeout, and once
more then: a service that cannot be reached or is busy, an instance that the cloud's API
does not know yet, a node of the same name that is being removed. Each reason is logged
once, and then how often it was the same. Other refusals are final. The file has mode
0600 and appears whole or not at all.

Each flag is also taken from the environment, where it is not given: AUTHORIZER,
NODE_AUTHORIZER_URL, KUBEAPI_URL, KUBECONFIG_BOOTSTRAP, TLS_CLIENT_CA, TLS_CERT,
TLS_PRIVATE_KEY, INTERVAL, TIMEOUT, KUBEAPI_CA, NODE_NAME, NODE_NAMING, CREDENTIAL,
CERT_DIR, IDENTITY_TOKEN_FILE, CLUSTER_ID, TPM_DEVICE, TPM_EVENT_LOG, KEY_FILE,
CERTIFICATE_FILE, COLLECTOR_COMMAND.

Exit status: 0 the file was written or existed, 1 the service refuses, 2 bad usage or
something is wrong with this machine, 3 nobody could be reached, 4 the service was
reached but had no answer in time.`,
		Example: `  node-authorizer client --node-url https://bootstrap.example.com:10443 \
    --kubeapi-url https://api.example.com --tls-client-ca /etc/node-authorizer/ca.crt

  # a machine with a TPM; the kubelet's key is bound to its quote
  node-authorizer client --authorizer tpm --credential certificate \
    --node-url https://bootstrap.example.com:10443 --kubeapi-url https://api.example.com \
    --tls-client-ca /etc/node-authorizer/ca.crt

  # an instance of Google Cloud; the kubelet's key is bound to its identity token
  node-authorizer client --authorizer oidc --cluster-id shop --credential certificate \
    --node-url https://bootstrap.example.com:10443 --kubeapi-url https://api.example.com \
    --tls-client-ca /etc/node-authorizer/ca.crt

  # a machine that is registered with its SSH host key
  node-authorizer client --authorizer key --key-file /etc/ssh/ssh_host_ed25519_key \
    --cluster-id shop --credential certificate --node-url https://bootstrap.example.com:10443 \
    --kubeapi-url https://api.example.com --tls-client-ca /etc/node-authorizer/ca.crt`,
	}
	var j joining
	j.addFlags(cmd)
	command.NoteVariables(cmd, JoiningVariables())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := command.FromEnvironment(cmd, JoiningVariables()); err != nil {
			return err
		}
		return command.WithFlag(cmd, join(cmd.Context(), a, cmd.Flags(), &j))
	}
	return cmd
}

// addFlags adds the flags of kops' node-authorizer, and others.
func (j *joining) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&j.attestor, "authorizer", attestorAWS, "kind of evidence that the service requires: "+strings.Join(attestors(), ", "))
	flags.StringVar(&j.ServiceURL, "node-url", "", "URL of the bootstrap service, https")
	flags.StringVar(&j.APIServerURL, "kubeapi-url", "", "URL of the API server, https, for the kubeconfig")
	flags.StringVar(
		&j.Kubeconfig, "kubeconfig", "",
		"file to write (default: "+client.DefaultKubeconfig+", and with --credential=certificate "+client.DefaultKubeletKubeconfig+")",
	)
	flags.StringVar(&j.credential, "credential", string(client.TokenCredential),
		"what the file contains: token, with which the kubelet bootstraps, or certificate")
	flags.StringVar(&j.CertificateFolder, "cert-dir", client.DefaultCertificateFolder,
		"with --credential=certificate, the kubelet's folder of certificates")
	flags.StringVar(&j.tokenFile, "identity-token-file", "",
		"with --authorizer=oidc, file with the identity token (default: a token of Google Cloud's metadata service)")
	flags.StringVar(&j.clusterID, "cluster-id", "",
		"the clusterID in the service's configuration: with --authorizer=oidc for a token of a metadata service, with key always")
	flags.StringVar(&j.keyFile, "key-file", "",
		"with --authorizer=key, file with the private key that is registered, PEM or of OpenSSH, without a passphrase")
	flags.StringVar(&j.certificateFile, "certificate-file", "",
		"with --authorizer=key, file with the certificate of the key, PEM, if its subject is registered")
	flags.StringVar(&j.tpmOptions.Device, "tpm-device", tpm.DefaultDevice, "with --authorizer=tpm, the TPM, or the socket of an emulator")
	flags.StringVar(&j.tpmOptions.EventLog, "tpm-event-log", tpm.DefaultEventLog,
		"with --authorizer=tpm, file with the event log of the firmware, which the service may ask for")
	flags.StringVar(&j.collectorCommand, "collector-command", "",
		"with --authorizer=exec, absolute path of the program that collects the evidence, and its arguments, separated by spaces")
	flags.StringVar(&j.ServiceCAFile, "tls-client-ca", "", "file with the certificate authorities of the bootstrap service, PEM")
	flags.StringVar(
		&j.APIServerCAFile, "kubeapi-ca", "",
		"file with the certificate authorities of the API server, PEM, for the kubeconfig (default: the authorities of --tls-client-ca)",
	)
	flags.StringVar(&j.CertificateFile, "tls-cert", "", "file with the client certificate, PEM, if the service requires one")
	flags.StringVar(&j.KeyFile, "tls-private-key", "", "file with the key of the client certificate, PEM")
	flags.DurationVar(&j.Interval, "interval", client.DefaultInterval, "maximum time between two attempts; the minimum is half of it")
	flags.DurationVar(&j.Timeout, "timeout", client.DefaultTimeout, "how long to retry; the last attempt begins at the end of this time")
	flags.StringVar(
		&j.NodeName, "node-name", "",
		"name with which the kubelet registers (default: the name of this machine by the rule of --node-naming)",
	)
	flags.StringVar(
		&j.naming, "node-naming", "",
		"with aws, the service's naming rule: PrivateDNSName, InstanceID or ResourceName (default PrivateDNSName)",
	)
	for _, name := range []string{
		"kubeconfig", "tls-client-ca", "kubeapi-ca", "tls-cert", "tls-private-key", "identity-token-file", "tpm-device", "tpm-event-log",
		"key-file", "certificate-file",
	} {
		command.Must(cmd.MarkFlagFilename(name))
	}
	command.Must(cmd.MarkFlagDirname("cert-dir"))
	command.CompleteNothing(cmd, "cluster-id", "collector-command", "interval", "kubeapi-url", "node-name", "node-url", "timeout")
	command.Must(cmd.RegisterFlagCompletionFunc("authorizer", command.Complete(attestors)))
	credentials := func() []string { return []string{string(client.TokenCredential), string(client.CertificateCredential)} }
	command.Must(cmd.RegisterFlagCompletionFunc("credential", command.Complete(credentials)))
	command.Must(cmd.RegisterFlagCompletionFunc("node-naming", command.Complete(namings)))
}

// namings are the values of --node-naming: the rules by which a machine knows its own name.
func namings() []string { return []string{"PrivateDNSName", "InstanceID", "ResourceName"} }

// JoiningVariables returns the environment variable of each flag.
func JoiningVariables() map[string]string {
	return map[string]string{
		"authorizer": "AUTHORIZER", "node-url": "NODE_AUTHORIZER_URL", "kubeapi-url": "KUBEAPI_URL", "kubeconfig": "KUBECONFIG_BOOTSTRAP",
		"tls-client-ca": "TLS_CLIENT_CA", "tls-cert": "TLS_CERT", "tls-private-key": "TLS_PRIVATE_KEY",
		"interval": "INTERVAL", "timeout": "TIMEOUT",
		"kubeapi-ca": "KUBEAPI_CA", "node-name": "NODE_NAME", "node-naming": "NODE_NAMING",
		"credential": "CREDENTIAL", "cert-dir": "CERT_DIR", "identity-token-file": "IDENTITY_TOKEN_FILE", "cluster-id": "CLUSTER_ID",
		"tpm-device": "TPM_DEVICE", "tpm-event-log": "TPM_EVENT_LOG",
		"key-file": "KEY_FILE", "certificate-file": "CERTIFICATE_FILE",
		"collector-command": "COLLECTOR_COMMAND",
	}
}

func join(ctx context.Context, a *command.App, flags *pflag.FlagSet, j *joining) error {
	if err := j.checkRequired(); err != nil {
		return err
	}
	var err error
	if j.Collector, err = j.newCollector(ctx, flags); err != nil {
		return err
	}
	switch j.Credential = client.Credential(j.credential); {
	case j.Credential != client.TokenCredential && j.Credential != client.CertificateCredential:
		return command.Usagef("--credential %q: want %s or %s", j.credential, client.TokenCredential, client.CertificateCredential)
	case j.Kubeconfig == "" && j.Credential == client.CertificateCredential:
		j.Kubeconfig = client.DefaultKubeletKubeconfig
	case j.Kubeconfig == "":
		j.Kubeconfig = client.DefaultKubeconfig
	}
	logger := server.NewLogger(v1alpha1.Log{}, a.ErrOut)
	j.Report = func(line string) { logger.Info(line) }
	result, err := client.Run(ctx, j.Options)
	switch {
	case err != nil:
		return notJoined(a, err)
	case result.Existed:
		fmt.Fprintln(a.Out, render.Printable(fmt.Sprintf("%s exists: nothing to do", j.Kubeconfig)))
	default:
		fmt.Fprintln(a.Out, render.Printable(fmt.Sprintf("wrote %s for node %s", j.Kubeconfig, result.NodeName)))
	}
	return nil
}

// checkRequired names all flags without which no machine can join.
func (j *joining) checkRequired() error {
	var lacks []string
	for _, required := range []struct{ flag, value string }{
		{"--node-url URL", j.ServiceURL}, {"--kubeapi-url URL", j.APIServerURL}, {"--tls-client-ca FILE", j.ServiceCAFile},
	} {
		if required.value == "" {
			lacks = append(lacks, required.flag)
		}
	}
	switch len(lacks) {
	case 0:
		return nil
	case 1:
		return command.Usagef("%s is missing", lacks[0])
	}
	return command.Usagef("%s are missing", strings.Join(lacks, ", "))
}

// notJoined sets the exit status of errors that have a specific one.
func notJoined(a *command.App, err error) error {
	var (
		refused = new(client.Refused)
		gaveUp  = new(client.GaveUp)
	)
	switch {
	case errors.As(err, &refused):
		a.Status = statusRefused
	case errors.As(err, &gaveUp) && gaveUp.Connected:
		a.Status = statusTimedOut
	case errors.As(err, &gaveUp):
		a.Status = statusUnreachable
	default:
		return err
	}
	a.Failure("%v", err)
	return nil
}
