package contain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
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
