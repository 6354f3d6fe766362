package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam/token"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// execInfo is the environment variable in which a Kubernetes client passes its request to a
// credential plugin
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#input-and-output-formats).
const execInfo = "KUBERNETES_EXEC_INFO"

type tokenMaking struct {
	token.Options
	tokenOnly bool
	cache     bool
}

func NewToken(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token --cluster-id ID",
		Short: "Print an AWS IAM token for a cluster, as a credential plugin of kubeconfigs",
		Long: `Makes a token that says who has the AWS credentials of this machine: a request to
STS, GetCallerIdentity, that is signed for one cluster and good for 15 minutes. An API
server that asks node-authorizer's webhook takes it. Requests are sent only to get
the credentials, none for the token itself.

The credentials are those that every program with an AWS SDK finds: in the environment,
in the files of the AWS command line, or on the instance. The region is the region of
--region, of the environment or files, or of the instance if its role signs; without
any, the token is for the global host of STS.

In a kubeconfig, the user of a kubelet or a person has this command as its exec:

  exec:
    apiVersion: client.authentication.k8s.io/v1
    command: node-authorizer
    args: [token, --cluster-id, blue]
    interactiveMode: Never

The credential is printed in the version that KUBERNETES_EXEC_INFO asks for, v1 or
v1beta1, and v1 without it. The credential ends a minute before the token does. A token
ends with the credentials that sign it: credentials that end within a minute are an
error.

With --cache, temporary credentials (also of --role) are kept until they end in
~/.kube/cache/node-authorizer/credentials.json, or in the file that
NODE_AUTHORIZER_CACHE_FILE names, which only its owner may read. The same flags,
environment and AWS configuration files use them again.

Exit status: 0 a token was made, 2 bad usage, or there are no credentials to sign it.`,
		Example: `  node-authorizer token --cluster-id blue --region eu-west-1
  node-authorizer token -i blue -r arn:aws:iam::111122223333:role/admin --token-only`,
	}
	cmd.Annotations = map[string]string{
		command.HelpVariables: execInfo + ": The request of a Kubernetes client, with the version of the credential.\n" +
			"NODE_AUTHORIZER_CACHE_FILE: The file for --cache.\n" +
			"AWS_PROFILE, AWS_REGION, …: What programs with an AWS SDK read.",
		command.HelpFiles: "~/.aws/config, ~/.aws/credentials: The AWS configuration files.\n" +
			"~/.kube/cache/node-authorizer/credentials.json: Temporary credentials, with --cache.",
	}
	var making tokenMaking
	making.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return printToken(cmd.Context(), a, &making) }
	return cmd
}

func (m *tokenMaking) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&m.ClusterID, "cluster-id", "i", "", "cluster id, as in the configuration of the cluster's server")
	flags.StringVar(&m.Region, "region", "", "region of the STS endpoint")
	flags.StringVar(&m.Profile, "profile", "", "profile of the AWS configuration files")
	flags.StringVarP(&m.RoleARN, "role", "r", "", "ARN of a role to assume first")
	flags.StringVarP(&m.SessionName, "session-name", "s", "", "name of the role's session")
	flags.StringVarP(&m.ExternalID, "external-id", "e", "", "external id that the role requires")
	flags.BoolVar(&m.tokenOnly, "token-only", false, "print only the token, not an ExecCredential")
	flags.BoolVar(&m.cache, "cache", false, "cache temporary credentials in a file until they expire")
	command.CompleteNothing(cmd, "cluster-id", "region", "profile", "role", "session-name", "external-id")
}

func printToken(ctx context.Context, a *command.App, m *tokenMaking) error {
	switch {
	case m.ClusterID == "":
		return command.Usagef("--cluster-id ID is missing")
	case m.RoleARN == "" && (m.SessionName != "" || m.ExternalID != ""):
		return command.Usagef("--session-name and --external-id need --role")
	}
	credential, err := wantedCredential(os.Getenv(execInfo))
	if err != nil {
		return err
	}
	if m.cache {
		m.CacheFailed = func(err error) { a.Warn("credentials are not cached: %v", err) }
		if m.Cache, err = token.DefaultCache(); err != nil {
			m.CacheFailed(err)
		}
	}
	text, end, err := token.Make(ctx, m.Options)
	if err != nil {
		return err
	}
	if m.tokenOnly {
		fmt.Fprintln(a.Out, text)
		return nil
	}
	document, err := json.Marshal(credential(text, metav1.NewTime(end.Add(-token.MinLife))))
	if err != nil {
		return fmt.Errorf("writing the credential: %w", err)
	}
	fmt.Fprintf(a.Out, "%s\n", document)
	return nil
}

// credential wraps a token in an ExecCredential of one version.
type credential func(token string, end metav1.Time) runtime.Object

func wantedCredential(info string) (credential, error) {
	versions := map[string]credential{
		clientauthv1.SchemeGroupVersion.String():      credentialV1,
		clientauthv1beta1.SchemeGroupVersion.String(): credentialV1beta1,
	}
	if info == "" {
		return credentialV1, nil
	}
	var asked metav1.TypeMeta
	if err := json.Unmarshal([]byte(info), &asked); err != nil {
		return nil, fmt.Errorf("%s in the environment is not valid JSON of a Kubernetes client", execInfo)
	}
	wanted, ok := versions[asked.APIVersion]
	if !ok || asked.Kind != execCredential {
		return nil, fmt.Errorf("%s in the environment requests %q %q: want an %s of %s or %s; set apiVersion in the exec of the kubeconfig",
			execInfo, asked.APIVersion, asked.Kind, execCredential,
			clientauthv1.SchemeGroupVersion, clientauthv1beta1.SchemeGroupVersion)
	}
	return wanted, nil
}

const execCredential = "ExecCredential"

func credentialV1(token string, end metav1.Time) runtime.Object {
	return &clientauthv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthv1.SchemeGroupVersion.String(), Kind: execCredential},
		Status:   &clientauthv1.ExecCredentialStatus{ExpirationTimestamp: &end, Token: token},
	}
}

func credentialV1beta1(token string, end metav1.Time) runtime.Object {
	return &clientauthv1beta1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthv1beta1.SchemeGroupVersion.String(), Kind: execCredential},
		Status:   &clientauthv1beta1.ExecCredentialStatus{ExpirationTimestamp: &end, Token: token},
	}
}
