package contain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/resources"
)

func NewRelease(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release node/NAME | credential/ID | QUARANTINE",
		Short: "End a quarantine",
		Long: `Ends a quarantine: deletes every Quarantine of a node or of a credential, or the
one with a name. The node or credential is no longer refused, within a second, except
where an API server still uses an earlier answer (unauthorizedTTL of its
AuthorizationConfiguration).

Certificate requests that were denied stay denied, and a kubelet makes new ones by
itself.

Exit status: 0 released, 2 there is no such Quarantine, or not all were deleted.`,
		Example: `  node-authorizer release node/worker-1
  node-authorizer release incident-7 --dry-run`,
		Args: oneTarget("node/NAME, credential/ID or the name of a Quarantine"),
	}
	connection := command.AddConnection(cmd)
	cmd.ValidArgsFunction = completeReleased(connection)
	dryRun := cmd.Flags().Bool("dry-run", false, "show what would be done, without doing it")
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML)
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		r := &releasing{dryRun: *dryRun}
		text := strings.Join(args, "/")
		var err error
		if kind, _, _ := strings.Cut(text, "/"); targetKind(kind) == "" {
			r.name = text
		} else if r.target, err = parseTarget(text); err != nil {
			return err
		}
		if r.client, err = newQuarantineClient(connection); err != nil {
			return err
		}
		result, err := r.run(cmd.Context())
		if len(result.Released) > 0 {
			err = errors.Join(a.Write(result, format), err)
		}
		return err
	})
	return cmd
}

// completeReleased offers what completeTarget does, and the names of Quarantines.
func completeReleased(connection *command.Connection) cobra.CompletionFunc {
	targets := completeTarget(&command.StateFlags{Connection: connection})
	of := resources.Resource{
		Name: policyv1alpha1.QuarantineResource, Group: policyv1alpha1.Group, Kind: policyv1alpha1.QuarantineKind,
		Versions: []string{policyv1alpha1.Version},
	}
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		words, directive := targets(cmd, args, text)
		if len(args) > 0 || strings.Contains(text, "/") {
			return words, directive
		}
		named := (&command.StateFlags{Connection: connection}).Names(cmd.Context(), of, "", text)
		return append(command.BeginningWith(text, words), named...), directive
	}
}

// releasing is one run of the command. It has a target or a name.
type releasing struct {
	client *quarantineClient
	target quarantineTarget
	name   string
	dryRun bool
}

// run deletes the Quarantines. The result says what was deleted, even if there is an error.
func (r *releasing) run(ctx context.Context) (ReleaseResult, error) {
	result := ReleaseResult{DryRun: r.dryRun, Released: []releasedQuarantine{}, Remaining: []string{}}
	all, err := r.client.all(ctx)
	if err != nil {
		return result, err
	}
	chosen, rest, err := r.choose(all)
	if err != nil {
		return result, err
	}
	for _, q := range rest {
		result.Remaining = append(result.Remaining, q.Name)
	}
	var unfinished []error
	for _, q := range chosen {
		if err := r.delete(ctx, q); err != nil {
			unfinished = append(unfinished, fmt.Errorf("delete quarantine %s: %w", q.Name, err))
			result.Remaining = append(result.Remaining, q.Name)
			continue
		}
		result.Released = append(result.Released, releasedQuarantine{
			Quarantine: q.Name, quarantineTarget: targetOf(q), Reason: q.Spec.Reason, Since: q.CreationTimestamp,
		})
	}
	return result, errors.Join(unfinished...)
}

// choose returns the Quarantines to delete, and others about the same.
func (r *releasing) choose(all []policyv1alpha1.Quarantine) (chosen, rest []*policyv1alpha1.Quarantine, err error) {
	if r.name == "" {
		if chosen = quarantinesOf(all, r.target); len(chosen) == 0 {
			return nil, nil, fmt.Errorf("%s is not quarantined%s", r.target, r.near(all))
		}
		return chosen, nil, nil
	}
	for i := range all {
		if all[i].Name == r.name {
			chosen = append(chosen, &all[i])
		}
	}
	if len(chosen) == 0 {
		return nil, nil, fmt.Errorf("there is no quarantine %q%s", r.name, r.near(all))
	}
	for _, q := range quarantinesOf(all, targetOf(chosen[0])) {
		if q.Name != r.name {
			rest = append(rest, q)
		}
	}
	return chosen, rest, nil
}

func (r *releasing) near(all []policyv1alpha1.Quarantine) string {
	var names []string
	for i := range all {
		if r.name == "" {
			names = append(names, targetOf(&all[i]).String())
			continue
		}
		if all[i].Spec.Node == r.name {
			return "; did you mean node/" + r.name + "?"
		}
		names = append(names, all[i].Name)
	}
	return command.DidYouMean(cmp.Or(r.name, r.target.String()), names) + "; node-authorizer quarantine list shows all"
}

func (r *releasing) delete(ctx context.Context, q *policyv1alpha1.Quarantine) error {
	if r.dryRun {
		return nil
	}
	err := r.client.Delete(ctx, q.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &q.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ReleaseResult is what was released.
type ReleaseResult struct {
	// DryRun is true if nothing was changed.
	DryRun bool `json:"dryRun,omitempty"`
	// Released are the Quarantines that were deleted.
	Released []releasedQuarantine `json:"released"`
	// Remaining are the names of Quarantines about the same that still exist.
	Remaining []string `json:"remaining"`
}

// releasedQuarantine is a Quarantine that was deleted.
type releasedQuarantine struct {
	// Quarantine is the name of the Quarantine.
	Quarantine string `json:"quarantine"`
	quarantineTarget
	// Reason is its reason.
	Reason string `json:"reason,omitempty"`
	// Since is when it was created.
	Since metav1.Time `json:"since"`
}

// Text writes what was released, and what to know.
func (r ReleaseResult) Text(p *render.Page) {
	did := "Released"
	if r.DryRun {
		did = "Would be released (nothing was changed)"
	}
	p.Section("%s", did)
	rows := [][]string{}
	for i := range r.Released {
		q := &r.Released[i]
		rows = append(rows, []string{
			"quarantine " + q.Quarantine, q.quarantineTarget.String(), "since " + q.Since.UTC().Format(time.RFC3339), q.Reason,
		})
	}
	p.Table(2, nil, rows)
	what := r.Released[0].quarantineTarget
	if len(r.Remaining) > 0 {
		p.Section("Still quarantined")
		for _, name := range r.Remaining {
			p.Line("  quarantine %s is about %s too", name, what)
		}
		return
	}
	p.Section("What to know")
	p.Line("  API servers may use refusals that they know for as long as the unauthorizedTTL of their configuration.")
	p.Line("  Certificate requests that were denied stay denied; the kubelet makes new ones.")
	if what.Node != "" {
		p.Line("  If the node was cordoned:")
		p.Command("    kubectl uncordon %s", what.Node)
	}
}

func (ReleaseResult) DocumentKind() string { return "Release" }
