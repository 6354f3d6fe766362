package contain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// cutOff is what the Quarantine of a node refuses, in a state of files.
type cutOff struct {
	// Pods is how many pods are on the node, and ServiceAccounts are theirs, as NAMESPACE/NAME: their tokens
	// that are bound to these pods are refused.
	Pods            int      `json:"pods"`
	ServiceAccounts []string `json:"serviceAccounts"`
}

// quarantineLimit is how many nodes would be quarantined, and how many may be.
type quarantineLimit struct {
	// Quarantined is how many nodes would be quarantined, this one included, and Nodes how many there are.
	Quarantined int `json:"quarantined"`
	Nodes       int `json:"nodes"`
	// Default is how many nodes may be quarantined at once if the servers' configuration does not say another
	// number.
	Default int `json:"default"`
}

// plan says from the state of files what would be done.
func (q *quarantining) plan(
	ctx context.Context, target quarantineTarget, rules []policyv1alpha1.QuarantineRule,
) (*QuarantineResult, error) {
	if !q.dryRun {
		return nil, command.Usagef("--from has no effect without --dry-run: a Quarantine is written to a cluster")
	}
	if err := q.state.Check(q.cmd); err != nil {
		return nil, err
	}
	state, err := q.state.ReadState(ctx)
	if err != nil {
		return nil, err
	}
	q.app.WarnState(state)
	s, err := q.state.NewSession(ctx, state, nil)
	if err != nil {
		return nil, err
	}
	if err := q.orForce(checkTarget(s, target)); err != nil {
		return nil, err
	}
	all := make([]policyv1alpha1.Quarantine, 0, len(state.Quarantines()))
	for _, known := range state.Quarantines() {
		all = append(all, *known)
	}
	object, did, err := q.write(ctx, all, target, rules)
	if err != nil {
		return nil, err
	}
	result := newQuarantineResult(object, did, true)
	result.State = state.Origin
	if target.Node != "" {
		result.CutsOff, result.Limit = cutOffFrom(state, target.Node), limitFrom(state, all, target.Node)
		q.findSecretsIn(ctx, result, s)
	}
	return result, nil
}

// checkTarget returns an error if a target should not be quarantined without --force, or if the state does not show
// that.
func checkTarget(s *command.Session, target quarantineTarget) error {
	if target.Node == "" {
		if s.State.Version == 0 {
			return errors.New("find out whether the API server names such credentials: its version is not in " + s.State.Origin)
		}
		return target.namedSince(int(s.State.Version))
	}
	if names := s.State.NodeNames(); !slices.Contains(names, target.Node) {
		return noNode(target.Node, " in "+s.State.Origin, names)
	}
	const finding = "find out whether node %s runs the control plane: %s"
	for _, missing := range s.State.Missing() {
		if missing.Kind&(source.Nodes|source.Pods) != 0 {
			return fmt.Errorf(finding, target.Node, missing.Resource.String()+": "+missing.Reason)
		}
	}
	node, _ := s.State.Inventory.Node(target.Node)
	if why := labelledControlPlane(node.Labels); why != "" {
		return runsControlPlane(target.Node, why)
	}
	for _, pod := range s.State.Inventory.Pods() {
		if pod.Node == target.Node && pod.Namespace == metav1.NamespaceSystem && pod.Mirror && isControlPlanePart(pod.Name.Name) {
			return runsControlPlane(target.Node, "pod "+pod.Name.String()+" is on it")
		}
	}
	return nil
}

func cutOffFrom(state *source.State, node string) *cutOff {
	c := &cutOff{ServiceAccounts: []string{}}
	for _, pod := range state.Inventory.Pods() {
		if pod.Node != node || pod.Planned {
			continue
		}
		c.Pods++
		account := pod.Namespace + "/" + cmp.Or(pod.ServiceAccount, "default")
		if !pod.Mirror && !slices.Contains(c.ServiceAccounts, account) {
			c.ServiceAccounts = append(c.ServiceAccounts, account)
		}
	}
	slices.Sort(c.ServiceAccounts)
	return c
}

func limitFrom(state *source.State, all []policyv1alpha1.Quarantine, node string) *quarantineLimit {
	nodes, now := map[string]bool{node: true}, time.Now()
	for i := range all {
		if end := all[i].Spec.ExpirationTime; all[i].Spec.Node != "" && (end == nil || now.Before(end.Time)) {
			nodes[all[i].Spec.Node] = true
		}
	}
	total := len(state.NodeNames())
	return &quarantineLimit{len(nodes), total, v1alpha1.Defaults().Containment.MaxQuarantinedNodes.Of(total)}
}

func (c *cutOff) text() string {
	if c == nil {
		return ""
	}
	text := "the kubelet"
	if n := len(c.ServiceAccounts); n > 0 {
		text += fmt.Sprintf(", and %s: %s", render.Count(n, "service account"), command.Some(c.ServiceAccounts, false))
	}
	return text + "; " + render.Count(c.Pods, "pod")
}

func (l *quarantineLimit) text() string {
	if l == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %s would be quarantined; containment.maxQuarantinedNodes allows %d by default",
		l.Quarantined, render.Count(l.Nodes, "node"), l.Default)
	if l.Quarantined > l.Default {
		text += ": " + render.Unsure.In("servers with the default would not accept it")
	}
	return text
}

func labelledControlPlane(labels map[string]string) string {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, has := labels[label]; has {
			return "it has the label " + label
		}
	}
	return ""
}

// isControlPlanePart reports whether a pod in kube-system is a part of the control plane, by its name.
func isControlPlanePart(pod string) bool {
	parts := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	return slices.ContainsFunc(parts, func(part string) bool { return pod == part || strings.HasPrefix(pod, part+"-") })
}

func runsControlPlane(node, why string) error {
	return fmt.Errorf("node %s runs the control plane, which nobody can change while the node is cut off: %s", node, why)
}

func noNode(name, where string, known []string) error {
	return fmt.Errorf("there is no node %q%s%s; the certificate of a node that was deleted stays valid",
		name, where, command.DidYouMean(name, known))
}

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

func (u *unboundTokens) open() []string {
	if u == nil || u.Incomplete == "" {
		return nil
	}
	return []string{"It is not known of all secrets whether they hold tokens of service accounts, which are not refused: " + u.Incomplete}
}

// maxTokenSteps is how many secrets are named one by one.
const maxTokenSteps = 20

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
