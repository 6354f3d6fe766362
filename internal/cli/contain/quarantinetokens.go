package contain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// unboundTokens are the secrets that the node could read and that hold a token of a service account. Such a
// token is bound to no pod, so that the Quarantine does not refuse it.
type unboundTokens struct {
	// Secrets are the secrets.
	Secrets []tokenSecret `json:"secrets"`
	// Incomplete says why there may be more; empty if there are none.
	Incomplete string `json:"incomplete,omitempty"`
}

// tokenSecret is a secret of type kubernetes.io/service-account-token.
type tokenSecret struct {
	// Namespace and Name are the namespace and name of the secret.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ServiceAccount is the name of the account, which is in the same namespace.
	ServiceAccount string `json:"serviceAccount"`
}

// maxLookedUp is how many secrets are looked up.
const maxLookedUp = 200

// findTokens finds the secrets with tokens among those that the node could read. Of secrets the API server sends
// the metadata only: it says of which account a secret has a token.
func (q *quarantining) findTokens(ctx context.Context, secrets []tokenSecret) *unboundTokens {
	found := &unboundTokens{Secrets: []tokenSecret{}}
	config, err := q.connection.Config()
	if err != nil {
		return found.lack(err.Error())
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return found.lack(err.Error())
	}
	if len(secrets) > maxLookedUp {
		found.lack(fmt.Sprintf("only the first %d of %d secrets were looked up", maxLookedUp, len(secrets)))
		secrets = secrets[:maxLookedUp]
	}
	all := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	for _, s := range secrets {
		secret, err := all.Namespace(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return found.lack(fmt.Sprintf("secret %s/%s: %v", s.Namespace, s.Name, command.OneLine(err)))
		}
		if s.ServiceAccount = secret.Annotations[corev1.ServiceAccountNameKey]; s.ServiceAccount != "" {
			found.Secrets = append(found.Secrets, s)
		}
	}
	return found
}

// findTokens returns the secrets that have a token, read from a state of files.
func findTokens(s *command.Session, secrets []tokenSecret) *unboundTokens {
	found, known := &unboundTokens{Secrets: []tokenSecret{}}, map[inventory.Name]string{}
	for _, secret := range s.State.Inventory.Secrets() {
		known[secret.Name] = secret.ServiceAccount
	}
	absent := 0
	for _, secret := range secrets {
		account, has := known[inventory.Name{Namespace: secret.Namespace, Name: secret.Name}]
		if secret.ServiceAccount = account; account != "" {
			found.Secrets = append(found.Secrets, secret)
		}
		if !has {
			absent++
		}
	}
	if absent > 0 {
		found.lack(fmt.Sprintf("%s not in %s", render.Count(absent, "secret"), s.State.Origin))
	}
	return found
}

func (u *unboundTokens) lack(why string) *unboundTokens {
	u.Incomplete = why
	return u
}

// open says what is not known; empty if everything is.
func (u *unboundTokens) open() []string {
	if u == nil || u.Incomplete == "" {
		return nil
	}
	return []string{"It is not known of all secrets whether they hold tokens of service accounts, which are not refused: " + u.Incomplete}
}

// maxTokenSteps is how many secrets are named one by one.
const maxTokenSteps = 20

// steps say what to do about the tokens.
func (u *unboundTokens) steps() []nextStep {
	if u == nil {
		return nil
	}
	var steps []nextStep
	for i, s := range u.Secrets {
		if i == maxTokenSteps {
			return append(steps, nextStep{
				fmt.Sprintf("Do so with %s", render.Count(len(u.Secrets)-maxTokenSteps, "more secret")),
				"kubectl get secrets --all-namespaces --field-selector type=" + string(corev1.SecretTypeServiceAccountToken),
			})
		}
		steps = append(steps, nextStep{
			fmt.Sprintf("Delete the token of service account %s/%s, which is bound to nothing and not refused; what uses it "+
				"needs another one", s.Namespace, s.ServiceAccount),
			"kubectl delete secret " + s.Name + " --namespace " + s.Namespace,
		})
	}
	return steps
}
