package contain

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	registrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

func newScopeAdmissionPolicy(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admission-policy",
		Short: "Print ValidatingAdmissionPolicies that enforce NodeScopes as far as admission can",
		Long: `Prints a ValidatingAdmissionPolicy with its binding for each NodeScope, for clusters
whose API server cannot be configured: EKS, GKE, AKS. The policies need Kubernetes 1.30
and no server of node-authorizer.

Policies see writes only. Policies enforce which tokens may write, objects with the name
of the node, pods whose node the written object shows, what the Node authorizer and
NodeRestriction let a node write, and what no rule names. Policies see no reads, and not
the pod of an eviction or of an exec. Of an impersonated request they see the user and
the extra values that the requester chose, so they do not hold an account that may
impersonate others. Comments name the parts that are not enforced; -o json has them in
cannotExpress. The enforced part is never weaker than the NodeScope, and about labels of
nodes and mirror pods it is stricter.

A scope in mode Observe gets a binding that audits, and one in mode Enforce one that
denies, unless --mode says otherwise.

Exit status: 0 printed, 2 the scopes could not be read, or are not valid.`,
		Example: `  node-authorizer scope admission-policy -f scopes/ | kubectl apply -f -

  # Warn first
  node-authorizer scope admission-policy -f cilium.yaml --mode Warn

  # What the policies do not enforce
  node-authorizer scope admission-policy -f scopes/ -o json | jq '.policies[] | {scope, cannotExpress}'`,
	}
	scopes := addScopes(a, cmd)
	modes := []string{string(registrationv1.Audit), string(registrationv1.Warn), string(registrationv1.Deny)}
	mode := cmd.Flags().String("mode", "", "what happens to refused writes: Audit, Warn or Deny (default: by the mode of the scope)")
	command.Must(cmd.RegisterFlagCompletionFunc("mode", command.Complete(func() []string { return modes })))
	output := command.AddFormat(cmd, manifestFormat, render.JSON, render.YAML)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		if *mode != "" && !slices.Contains(modes, *mode) {
			return command.Usagef("--mode %q: want Audit, Warn or Deny%s", *mode, command.DidYouMean(*mode, modes))
		}
		objects, _, err := scopes.load(cmd)
		if err != nil {
			return err
		}
		return writePolicies(a, objects, registrationv1.ValidationAction(*mode), format)
	})
	return cmd
}

func writePolicies(a *command.App, scopes []*v1alpha1.NodeScope, action registrationv1.ValidationAction, format render.Format) error {
	if len(scopes) == 0 {
		return errors.New("the cluster has no NodeScopes: name manifests of scopes with -f")
	}
	var policies []*generate.Policy
	var problems []error
	for _, s := range scopes {
		for _, err := range nodescope.Validate(s) {
			problems = append(problems, fmt.Errorf("NodeScope %s: %w", s.Name, err))
		}
		policies = append(policies, generate.Generate(s, action))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	written, err := generate.Write(policies)
	if err != nil {
		return err
	}
	where := "cannotExpress of each policy"
	if format == manifestFormat {
		where = "the comment above each policy"
	}
	a.Warn("the policies do not enforce all that the NodeScopes say, and see no reads: %s lists what is missing", where)
	if format == manifestFormat {
		_, err := io.WriteString(a.Out, written.Manifest)
		return err
	}
	return a.Write(written, format)
}
