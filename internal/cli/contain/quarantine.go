// Package contain has the commands that limit what a credential may do: scope, quarantine, release and revoke.
package contain

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

func NewQuarantine(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine node/NAME | credential/ID",
		Short: "Cut a node, or one credential, off from the API server",
		Long: `Cuts a node, or one credential, off from the API server: writes a Quarantine,
which every server of node-authorizer follows. Until it is released or ends, the API
server refuses the node as a user, and every service account with a token that is bound
to a pod of the node. The node's certificate requests are denied, its machine gets no
bootstrap token, and its AWS role no user. A credential is the id that API servers give
it: X509SHA256=… for a certificate (Kubernetes 1.32), JTI=… for a service account's
token.

The command waits until the servers say that they accept the Quarantine, and asks the
API server whether it refuses the node. The result names what stays open, and what else
to do. Tokens in secrets of type kubernetes.io/service-account-token are bound to no pod
and not refused: it names those that the node could read. Of secrets it reads the
metadata.

Every request is refused unless --allow says so. With drain, the kubelet may follow its
pods and say that they have ended, write the status of its node, and renew its lease:
the node stays Ready, and kubectl drain ends its pods in order. With logs, the kubelet
may ask who a caller is and what they may do, which it does before it serves logs and
exec. An attacker on the node may then do the same: drain lets them delete the node's
pods and write their status, logs lets them learn what others may do.

A node that runs the control plane is refused without --force, and so is a node that
does not exist, and one of which neither could be found out. The certificate of a node
that was deleted stays valid: quarantine it with --force.

With --dry-run nothing is written, and with --from it answers from files: what would be
cut off, and whether the default limit of quarantined nodes allows it.

The command can be run again. Flags that are given then replace what they were about; a
Quarantine that has ended begins again.

Exit status: 0 the servers accept it, and the API server that was asked refuses the
node, 1 one of them does not, 2 one is not known, or nothing was written.`,
		Example: `  node-authorizer quarantine node/worker-1 --reason "miner found" --allow drain
  node-authorizer quarantine node/worker-1 --dry-run
  node-authorizer quarantine node/worker-1 --dry-run --from cluster.snapshot
  node-authorizer quarantine credential/JTI=11111111-2222-4333-8444-555555555555 --for 2h
  node-authorizer quarantine list
  node-authorizer release node/worker-1`,
		Args: oneTarget("node/NAME or credential/ID"),
	}
	cmd.AddCommand(newQuarantineList(a))
	q := &quarantining{app: a, cmd: cmd, connection: command.AddConnection(cmd)}
	q.state = &command.StateFlags{App: a, Connection: q.connection, Inventory: true}
	cmd.ValidArgsFunction = completeTarget(q.state)
	flags := cmd.Flags()
	flags.StringArrayVar(&q.state.From, "from", nil,
		"with --dry-run, read the state from a file or folder of manifests, a snapshot, or - for stdin, instead of a cluster; "+
			"can be repeated")
	command.Must(cmd.MarkFlagFilename("from"))
	flags.StringVar(&q.reason, "reason", "", "why, for people; the node does not get to know it")
	flags.DurationVar(&q.duration, "for", 0, "how long; it ends by itself then (default: until it is released)")
	flags.StringSliceVar(&q.allow, "allow", nil, "what is not refused: drain, logs; can be repeated (default: nothing)")
	flags.BoolVar(&q.force, "force", false, "also if the node runs the control plane, does not exist, or neither could be found out")
	flags.BoolVar(&q.dryRun, "dry-run", false, "show what would be done, without doing it")
	flags.DurationVar(&q.timeout, "timeout", defaultQuarantineTimeout, "how long to wait until it takes effect")
	command.CompleteNothing(cmd, "reason", "for", "timeout")
	command.Must(cmd.RegisterFlagCompletionFunc("allow", command.Complete(allowWords)))
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML)
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		result, err := q.run(cmd.Context(), strings.Join(args, "/"))
		if result != nil {
			err = errors.Join(a.Write(*result, format), err)
			a.Status = result.status()
		}
		return err
	})
	return cmd
}

// defaultQuarantineTimeout is some times longer than a Quarantine takes to reach every server.
const defaultQuarantineTimeout = 15 * time.Second

type quarantining struct {
	app        *command.App
	cmd        *cobra.Command
	connection *command.Connection
	// state has the files of --from.
	state  *command.StateFlags
	client *quarantineClient

	reason            string
	duration, timeout time.Duration
	allow             []string
	force, dryRun     bool
}

// run checks and writes a Quarantine, and finds out its effect. The result is nil if nothing was
// written.
func (q *quarantining) run(ctx context.Context, text string) (*QuarantineResult, error) {
	target, err := parseTarget(text)
	if err != nil {
		return nil, err
	}
	rules, err := allowRules(q.allow, target)
	if err != nil {
		return nil, err
	}
	if len(q.state.From) > 0 {
		return q.plan(ctx, target, rules)
	}
	if q.client, err = newQuarantineClient(q.connection); err != nil {
		return nil, err
	}
	all, err := q.client.all(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.orForce(q.client.check(ctx, target)); err != nil {
		return nil, err
	}
	object, did, err := q.write(ctx, all, target, rules)
	if err != nil {
		return nil, err
	}
	result := newQuarantineResult(object, did, q.dryRun)
	if !q.dryRun {
		q.client.await(ctx, result, object, q.timeout)
	}
	if target.Node != "" {
		q.findSecrets(ctx, result)
	}
	return result, nil
}

// orForce returns why a target should not be quarantined, or with --force only warns of it.
func (q *quarantining) orForce(err error) error {
	switch {
	case err == nil:
		return nil
	case !q.force:
		return fmt.Errorf("%w; --force quarantines it in any case", err)
	}
	q.app.Warn("%v", err)
	return nil
}

// written says what was done with a Quarantine.
type written string

const (
	quarantineCreated   written = "created"
	quarantineUpdated   written = "updated"
	quarantineUnchanged written = "unchanged"
)

// write creates the Quarantine of a target, or changes one that exists.
func (q *quarantining) write(
	ctx context.Context, all []policyv1alpha1.Quarantine, target quarantineTarget, rules []policyv1alpha1.QuarantineRule,
) (*policyv1alpha1.Quarantine, written, error) {
	object := &policyv1alpha1.Quarantine{
		TypeMeta: metav1.TypeMeta{
			APIVersion: policyv1alpha1.GroupVersion().String(), Kind: policyv1alpha1.QuarantineKind,
		},
		ObjectMeta: metav1.ObjectMeta{Name: target.objectName()},
		Spec:       policyv1alpha1.QuarantineSpec{Node: target.Node, Credential: target.Credential},
	}
	if found := quarantinesOf(all, target); len(found) > 0 {
		return q.update(ctx, newest(found), rules)
	}
	if at := slices.IndexFunc(all, func(x policyv1alpha1.Quarantine) bool { return x.Name == object.Name }); at >= 0 {
		return nil, "", fmt.Errorf("quarantine %s is about %s: release it first", object.Name, targetOf(&all[at]))
	}
	q.apply(&object.Spec, rules)
	if q.dryRun {
		return object, quarantineCreated, nil
	}
	created, err := q.client.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("create quarantine %s: %w", object.Name, err)
	}
	return created, quarantineCreated, nil
}

// newest returns the Quarantine that is in force for longest, of those about one target.
func newest(found []*policyv1alpha1.Quarantine) *policyv1alpha1.Quarantine {
	return slices.MaxFunc(found, func(a, b *policyv1alpha1.Quarantine) int {
		switch endA, endB := a.Spec.ExpirationTime, b.Spec.ExpirationTime; {
		case endA == nil && endB == nil:
			return 0
		case endA == nil:
			return 1
		case endB == nil:
			return -1
		default:
			return endA.Compare(endB.Time)
		}
	})
}

// update changes a Quarantine by the flags that were given. It retries on conflicts. One of files is as it was read.
func (q *quarantining) update(
	ctx context.Context, was *policyv1alpha1.Quarantine, rules []policyv1alpha1.QuarantineRule,
) (*policyv1alpha1.Quarantine, written, error) {
	result, did := was, quarantineUnchanged
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		latest, err := was, error(nil)
		if q.client != nil {
			latest, err = q.client.Get(ctx, was.Name, metav1.GetOptions{})
		}
		switch {
		case err != nil:
			return err
		case latest.UID != was.UID || latest.DeletionTimestamp != nil:
			return errors.New("it is being released; run the command again")
		}
		changed := latest.DeepCopy()
		q.apply(&changed.Spec, rules)
		if reflect.DeepEqual(changed.Spec, latest.Spec) {
			result = latest
			return nil
		}
		did, result = quarantineUpdated, changed
		if !q.dryRun {
			result, err = q.client.Update(ctx, changed, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("update quarantine %s: %w", was.Name, err)
	}
	return result, did, nil
}

// apply sets what the flags say. A Quarantine that has ended begins again.
func (q *quarantining) apply(spec *policyv1alpha1.QuarantineSpec, rules []policyv1alpha1.QuarantineRule) {
	now := time.Now()
	if q.cmd.Flags().Changed("reason") {
		spec.Reason = q.reason
	}
	switch end := spec.ExpirationTime; {
	case q.duration > 0:
		spec.ExpirationTime = &metav1.Time{Time: now.Add(q.duration).UTC().Truncate(time.Second)}
	case end != nil && !now.Before(end.Time):
		spec.ExpirationTime = nil
	}
	if q.cmd.Flags().Changed("allow") {
		spec.Allow = rules
	}
}
