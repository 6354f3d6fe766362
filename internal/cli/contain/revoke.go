package contain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

func NewRevoke(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke NODE",
		Short: "Revoke a node's machine: it gets no more tokens and certificates",
		Long: `Revokes the machines that were attested under a node's name: marks their
NodeAttestations as Revoked, so that the bootstrap service refuses them and the
approver denies their certificate requests, and deletes their bootstrap tokens.

Issued certificates stay valid until they expire; the command says when that is. To cut
the machine off before, quarantine its node (node-authorizer quarantine). To let the
machine join again, delete its NodeAttestation.

The command can be run again. The ledger is written first, so that an interrupted run
leaves nothing that could still be turned into a certificate.

Exit status: 0 revoked, 2 the node is not in the ledger, or not all was done.`,
		Example: `  node-authorizer revoke worker-1 --reason "disk was stolen"
  node-authorizer revoke worker-1 --dry-run`,
		Args: command.Exactly("NODE"),
	}
	connection := command.AddConnection(cmd)
	cmd.ValidArgsFunction = (&command.StateFlags{Connection: connection}).NodeArgument
	reason := cmd.Flags().String("reason", "", "why, for the NodeAttestation's condition")
	command.CompleteNothing(cmd, "reason")
	dryRun := cmd.Flags().Bool("dry-run", false, "show what would be done, without doing it")
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML)
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		config, err := connection.Config()
		if err != nil {
			return err
		}
		r, err := newRevocation(config, command.NodeName(args[0]), *reason, *dryRun)
		if err != nil {
			return err
		}
		result, err := r.run(cmd.Context())
		if len(result.Machines) > 0 {
			err = errors.Join(a.Write(result, format), err)
		}
		return err
	})
	return cmd
}

type revocation struct {
	entries *ledger.Client
	client  kubernetes.Interface
	host    string
	node    string
	reason  string
	dryRun  bool
}

func newRevocation(config *rest.Config, node, reason string, dryRun bool) (*revocation, error) {
	entries, err := ledger.NewClient(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	return &revocation{entries, client, config.Host, node, reason, dryRun}, nil
}

// run revokes all machines of the name before it deletes a token. The result says what was
// done, even if there is an error.
func (r *revocation) run(ctx context.Context) (RevokeResult, error) {
	result := RevokeResult{Node: r.node, DryRun: r.dryRun}
	found, err := r.find(ctx)
	if err != nil {
		return result, err
	}
	message := r.message(ctx)
	for _, entry := range found {
		machine := revokedMachine{
			NodeAttestation: entry.Name, InstanceID: entry.Spec.InstanceID, Before: entry.Phase(),
			TokenID: entry.Spec.TokenID, CertificateExpiration: entry.Status.CertificateExpiration,
		}
		if entry.Phase() != v1alpha1.Revoked && !r.dryRun {
			if entry, err = r.mark(ctx, entry, message); err != nil {
				return result, fmt.Errorf("%w; run the command again", err)
			}
		}
		machine.entry = entry
		result.Machines = append(result.Machines, machine)
	}
	var unfinished []error
	for i := range result.Machines {
		m := &result.Machines[i]
		if m.Token, err = r.deleteTokens(ctx, m.entry); err != nil {
			unfinished = append(unfinished, fmt.Errorf("%w; the machine is revoked, run the command again to delete its token", err))
		}
	}
	return result, errors.Join(unfinished...)
}

// find returns the ledger entries of the node, sorted by name.
func (r *revocation) find(ctx context.Context) ([]*v1alpha1.NodeAttestation, error) {
	list, err := r.entries.List(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf(
			"the cluster does not know nodeattestations: install the CustomResourceDefinition, or check which cluster you asked: %w", err,
		)
	}
	if err != nil {
		return nil, command.ExplainRequest(ctx, r.host, "read the ledger", err)
	}
	var found []*v1alpha1.NodeAttestation
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Spec.NodeName)
		if list.Items[i].Spec.NodeName == r.node {
			found = append(found, &list.Items[i])
		}
	}
	if len(found) > 0 {
		slices.SortFunc(found, v1alpha1.Older)
		return found, nil
	}
	slices.Sort(names)
	return nil, fmt.Errorf("the ledger has no NodeAttestation of node %q%s; kubectl get nodeattestations lists them, "+
		"and approver.unattestedNodes: Deny refuses a node that joined in another way",
		r.node, command.DidYouMean(r.node, slices.Compact(names)))
}

func (r *revocation) message(ctx context.Context) string {
	who := "somebody"
	review, err := r.client.AuthenticationV1().SelfSubjectReviews().Create(
		ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{},
	)
	if err == nil && review.Status.UserInfo.Username != "" {
		who = review.Status.UserInfo.Username
	}
	if r.reason == "" {
		return "revoked by " + who
	}
	return "revoked by " + who + ": " + r.reason
}

// mark sets the phase of an entry to Revoked. It retries on conflicts.
func (r *revocation) mark(ctx context.Context, entry *v1alpha1.NodeAttestation, message string) (*v1alpha1.NodeAttestation, error) {
	uid := entry.UID
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		latest, err := r.entries.Get(ctx, entry.Name)
		switch {
		case err != nil:
			return err
		case latest.UID != uid:
			return fmt.Errorf("nodeattestation %s was replaced in the meantime", entry.Name)
		}
		if entry = latest; latest.Phase() == v1alpha1.Revoked {
			return nil
		}
		latest.Status.Phase = v1alpha1.Revoked
		meta.SetStatusCondition(&latest.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionRevoked, Status: metav1.ConditionTrue, Reason: string(v1alpha1.AttestationRevoked),
			Message: message, ObservedGeneration: latest.Generation,
		})
		updated, err := r.entries.UpdateStatus(ctx, latest)
		if err == nil {
			entry = updated
		}
		return err
	})
	return entry, err
}

// deleteTokens deletes the Secrets of an entry's tokens and returns the outcome for the token
// in spec.
func (r *revocation) deleteTokens(ctx context.Context, entry *v1alpha1.NodeAttestation) (tokenOutcome, error) {
	ids := entry.TokenIDs()
	outcome, err := r.deleteToken(ctx, entry, ids[0])
	for _, earlier := range ids[1:] {
		if err == nil {
			_, err = r.deleteToken(ctx, entry, earlier)
		}
	}
	return outcome, err
}

func (r *revocation) deleteToken(ctx context.Context, entry *v1alpha1.NodeAttestation, id string) (tokenOutcome, error) {
	secrets, name := r.client.CoreV1().Secrets(ledger.TokenNamespace), ledger.TokenSecretName(id)
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return tokenAbsent, nil
	case err != nil:
		return tokenKept, fmt.Errorf("read secret %s/%s: %w", ledger.TokenNamespace, name, err)
	case !metav1.IsControlledBy(secret, entry):
		return tokenOfOther, nil
	case r.dryRun:
		return tokenExists, nil
	}
	err = secrets.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return tokenKept, fmt.Errorf("delete secret %s/%s: %w", ledger.TokenNamespace, name, err)
	}
	return tokenDeleted, nil
}

// RevokeResult has the machines of a node, and what revocation did with each.
type RevokeResult struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// DryRun is true if nothing was changed.
	DryRun bool `json:"dryRun,omitempty"`
	// Machines are the machines that were attested under the name, the oldest first.
	Machines []revokedMachine `json:"machines"`
}

// revokedMachine is a machine that was attested under the name, with what was done.
type revokedMachine struct {
	// NodeAttestation is the name of the machine's entry in the ledger, and InstanceID the id of its
	// instance.
	NodeAttestation string `json:"nodeAttestation"`
	InstanceID      string `json:"instanceID"`
	// Before is the phase of the entry before the command.
	Before v1alpha1.Phase `json:"before"`
	// TokenID is the id of the machine's bootstrap token, and Token says what was done with the token.
	TokenID string       `json:"tokenID"`
	Token   tokenOutcome `json:"token"`
	// CertificateExpiration is the expiration of its last known client certificate; null
	// if none is known.
	CertificateExpiration *metav1.Time `json:"certificateExpiration"`

	entry *v1alpha1.NodeAttestation
}

// tokenOutcome is the effect of revocation on a token.
type tokenOutcome string

const (
	// tokenDeleted: its Secret was deleted.
	tokenDeleted tokenOutcome = "deleted"
	// tokenAbsent: there was no such Secret.
	tokenAbsent tokenOutcome = "absent"
	// tokenExists: with --dry-run, its Secret exists.
	tokenExists tokenOutcome = "exists"
	// tokenKept: its Secret could not be read or deleted.
	tokenKept tokenOutcome = "kept"
	// tokenOfOther: the Secret belongs to another machine, and was left alone.
	tokenOfOther tokenOutcome = "not of this machine"
)

// Text writes what was done, then what remains valid and how to proceed.
func (r RevokeResult) Text(p *render.Page) {
	did := "Revoked"
	if r.DryRun {
		did = "Would be revoked (nothing was changed)"
	}
	p.Section("%s", did)
	rows, names := [][]string{}, ""
	for _, m := range r.Machines {
		names += " " + m.NodeAttestation
		before := "was " + string(m.Before)
		if m.Before == v1alpha1.Revoked {
			before = "already"
		}
		rows = append(rows, []string{"nodeattestation " + m.NodeAttestation, before, "token " + m.TokenID + " " + string(m.Token)})
	}
	p.Table(2, nil, rows)
	p.Section("What this cannot undo")
	for _, line := range r.remains() {
		p.Line("  %s", line)
	}
	p.Line("  To cut off whoever has a certificate of the node now:")
	p.Command("    node-authorizer quarantine node/%s", r.Node)
	p.Section("To let a machine join again")
	p.Command("  kubectl delete nodeattestation%s", names)
	if r.last() != nil {
		p.Line("  Not before: while a machine has the name, the certificate above can be renewed.")
	}
}

// last returns the expiration of the last known certificate of the machines; nil if none is
// known.
func (r RevokeResult) last() *metav1.Time {
	var last *metav1.Time
	for _, m := range r.Machines {
		if end := m.CertificateExpiration; end != nil && (last == nil || last.Before(end)) {
			last = end
		}
	}
	return last
}

// remains describes how long certificates of the machines are valid, and what does not end that.
func (r RevokeResult) remains() []string {
	last := r.last()
	if last == nil {
		return []string{
			"No client certificate is known to have been issued for node " + r.Node + ".",
			"One that was approved a moment ago may still be: run the command again to see it.",
		}
	}
	return []string{
		"The last client certificate of node " + r.Node + " that is known is valid until " + last.UTC().Format(time.RFC3339) + ".",
		"Until then, whoever has its key is the node. kubectl delete node " + r.Node + " takes its pods away,",
		"and with them the secrets that it may read, but it can register again. Without quarantines, stop the",
		"machine, or replace the cluster's client certificate authority.",
	}
}

func (RevokeResult) DocumentKind() string { return "Revocation" }
