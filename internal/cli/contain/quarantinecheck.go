package contain

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// check returns an error if a target should not be quarantined without --force, or if that could
// not be found out.
func (c *quarantineClient) check(ctx context.Context, target quarantineTarget) error {
	if target.Node == "" {
		return c.checkCredential(target)
	}
	why := ""
	node, err := c.cluster.CoreV1().Nodes().Get(ctx, target.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.noSuchNode(ctx, target.Node)
	}
	if err == nil {
		why, err = c.controlPlane(ctx, node)
	}
	switch {
	case err != nil:
		return fmt.Errorf("find out whether node %s runs the control plane: %w", target.Node, err)
	case why != "":
		return runsControlPlane(target.Node, why)
	}
	return nil
}

// noSuchNode is the error for a node that does not exist. Its certificate may be valid nevertheless.
func (c *quarantineClient) noSuchNode(ctx context.Context, name string) error {
	var known []string
	if list, err := c.cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			known = append(known, list.Items[i].Name)
		}
	}
	return noNode(name, "", known)
}

// controlPlane returns what shows that a node runs the control plane; empty if nothing does.
func (c *quarantineClient) controlPlane(ctx context.Context, node *corev1.Node) (string, error) {
	if why := labelledControlPlane(node.Labels); why != "" {
		return why, nil
	}
	pods, err := c.cluster.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String(),
	})
	if err != nil {
		return "", fmt.Errorf("list its pods in %s: %w", metav1.NamespaceSystem, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; isControlPlane(pod) {
			return "pod " + pod.Namespace + "/" + pod.Name + " is on it", nil
		}
	}
	return "", nil
}

func isControlPlane(pod *corev1.Pod) bool {
	if pod.Labels["tier"] == "control-plane" {
		return true
	}
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return isMirror && isControlPlanePart(pod.Name)
}

// checkCredential returns an error if API servers do not name credentials of this kind.
func (c *quarantineClient) checkCredential(target quarantineTarget) error {
	what, _ := target.kindOfCredential()
	served, err := c.cluster.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("find out whether the API server names %s: %w", what, err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(served.Minor, "+"))
	if err != nil || served.Major != "1" {
		return fmt.Errorf("find out whether the API server names %s: its version is %s", what, served.GitVersion)
	}
	return target.namedSince(minor)
}

// kindOfCredential names the credentials of the target's kind, and the minor version since which API servers name
// them.
func (t quarantineTarget) kindOfCredential() (what string, since int) {
	if strings.HasPrefix(t.Credential, "X509SHA256=") {
		return "client certificates", 32
	}
	return "tokens of service accounts", 30
}

// namedSince returns an error if API servers of a minor version do not name credentials of the target's kind.
func (t quarantineTarget) namedSince(minor int) error {
	what, since := t.kindOfCredential()
	if minor >= since {
		return nil
	}
	return fmt.Errorf("the API server is of Kubernetes 1.%d, and API servers name %s since 1.%d: the credential cannot be told "+
		"from others of its user; quarantine the node instead", minor, what, since)
}
