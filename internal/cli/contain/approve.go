package contain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/resources"
)

// statusOtherKey is the exit status if the machine has another key than the expected one.
const statusOtherKey = 1

func NewApprove(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve [MACHINE]",
		Short: "Approve a machine that nobody registered; without a name, list the pending ones",
		Long: `Approves a pending Machine: the bootstrap service wrote it for a machine that nobody
registered, with what the machine can prove to have (bootstrap.approval: Manual). The
machine's client waits, and asks again at its --interval.

Compare the hash with the machine itself before you approve; the address and the
description are not proof. With --expect-key or --expect-ek the command compares, and
does not ask. Only what was shown is approved: if the Machine has changed since, nothing
happens.

Exit status: 0 approved or listed, 1 the machine has another key, 2 nothing was changed.`,
		Example: `  node-authorizer approve
  node-authorizer approve key-4f0c0b8f1c0f6a3d9e21 --expect-key sha256:4f0c0b8f1c0f6a3d9e21c1d4a7b02f63e8a5d90b7c316f42d8e09a1b5c7d3e6f
  node-authorizer approve tpm-9a1b5c7d3e6f4f0c0b8f --node-name worker-7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return command.Exactly("MACHINE")(cmd, args)
		},
	}
	connection := command.AddConnection(cmd)
	cmd.ValidArgsFunction = completeMachine(connection)
	p := &approving{app: a}
	flags := cmd.Flags()
	keyHash := func(into *string) func(string) error {
		return func(text string) (err error) {
			*into, err = machines.KeyHash(text)
			return err
		}
	}
	flags.Func("expect-ek", "approve only a machine with this endorsement key: PEM, or sha256: and its hash", keyHash(&p.expectedEK))
	flags.Func("expect-key", "approve only a machine with this public key: PEM, a line of OpenSSH, or sha256: and its hash",
		keyHash(&p.expectedKey))
	flags.StringVar(&p.nodeName, "node-name", "", "name of its node, instead of the name that the machine asked for")
	flags.BoolVar(&p.yes, "yes", false, "do not ask for confirmation")
	command.CompleteNothing(cmd, "expect-ek", "expect-key", "node-name")
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML)
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		config, err := connection.Config()
		if err != nil {
			return err
		}
		result, err := p.run(cmd.Context(), config, strings.Join(args, ""))
		if err != nil || result == nil {
			return err
		}
		return a.Write(*result, format)
	})
	return cmd
}

func completeMachine(connection *command.Connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		of := resources.Resource{
			Name: v1alpha1.MachineResource, Group: v1alpha1.Group, Kind: v1alpha1.MachineKind, Versions: []string{v1alpha1.Version},
		}
		return (&command.StateFlags{Connection: connection}).Names(cmd.Context(), of, "", text), cobra.ShellCompDirectiveNoFileComp
	}
}

type approving struct {
	app                     *command.App
	client                  *machines.Client
	expectedEK, expectedKey string
	nodeName                string
	yes                     bool
}

// run returns nothing if the machine has another key.
func (p *approving) run(ctx context.Context, config *rest.Config, name string) (*ApprovalResult, error) {
	if err := p.check(name); err != nil {
		return nil, err
	}
	var err error
	if p.client, err = machines.NewClient(config); err != nil {
		return nil, err
	}
	list, err := p.client.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster does not know machines: install the CustomResourceDefinition, or check which cluster "+
			"you asked: %w", err)
	}
	if err != nil {
		return nil, command.ExplainRequest(ctx, config.Host, "list machines", err)
	}
	result, chosen, names := &ApprovalResult{Pending: []pendingMachine{}}, (*v1alpha1.Machine)(nil), []string{}
	for i := range list.Items {
		switch m := &list.Items[i]; {
		case m.Name == name:
			chosen = m
		case !m.IsApproved():
			result.Pending, names = append(result.Pending, newPendingMachine(m)), append(names, m.Name)
		}
	}
	switch {
	case name == "":
		return result, nil
	case chosen == nil:
		return nil, fmt.Errorf("there is no machine %q%s; node-authorizer approve lists the pending ones",
			name, command.DidYouMean(name, names))
	case chosen.IsApproved():
		return nil, fmt.Errorf("machine %s is approved already, as node %s: nothing was changed", name, chosen.Spec.NodeName)
	}
	wanted := chosen.DeepCopy()
	wanted.Spec.NodeName = cmp.Or(p.nodeName, wanted.Spec.NodeName)
	for i := range list.Items {
		if m := &list.Items[i]; m.IsApproved() && m.Spec.NodeName == wanted.Spec.NodeName {
			return nil, fmt.Errorf("node %s is the node of machine %s: give another name with --node-name, or delete that machine if it "+
				"is gone; nothing was changed", m.Spec.NodeName, m.Name)
		}
	}
	approved, err := p.approve(ctx, chosen, wanted)
	if err != nil || approved == nil {
		return nil, err
	}
	shown := newPendingMachine(approved)
	result.Approved = &shown
	return result, nil
}

// check refuses flags that do nothing.
func (p *approving) check(name string) error {
	if name == "" && (p.yes || p.expectedEK+p.expectedKey+p.nodeName != "") {
		return command.Usagef("the name of the machine is missing: node-authorizer approve lists the pending ones")
	}
	if p.nodeName == "" {
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(p.nodeName); len(problems) > 0 {
		return command.Usagef("--node-name %q: %s", p.nodeName, problems[0])
	}
	if err := attest.CheckName(p.nodeName); err != nil {
		return command.Usagef("--node-name %q: %v", p.nodeName, err)
	}
	return nil
}

// approve makes a pending machine the wanted one, and returns it; none if it has another key.
func (p *approving) approve(ctx context.Context, m, wanted *v1alpha1.Machine) (*v1alpha1.Machine, error) {
	shown := newPendingMachine(wanted)
	if p.expectedEK+p.expectedKey != "" && !shown.hasOnly(p.expectedEK, p.expectedKey) {
		p.app.Status = statusOtherKey
		p.app.Failure("machine %s is not approved: it has the %s", m.Name, shown.proofs())
		return nil, nil
	}
	if !p.yes && p.expectedEK+p.expectedKey == "" {
		for _, line := range shown.lines() {
			fmt.Fprintln(p.app.ErrOut, render.Printable(line))
		}
		if err := p.app.Confirm(ctx, "Approve this machine as node "+render.Printable(wanted.Spec.NodeName)+"?"); err != nil {
			return nil, err
		}
	}
	wanted.Spec.Approval = v1alpha1.Approved
	// The service may have recorded another request meanwhile, which is no other machine.
	var approved *v1alpha1.Machine
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if approved, err = p.client.Update(ctx, wanted, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
		latest, readErr := p.client.Get(ctx, m.Name, metav1.GetOptions{})
		if readErr != nil {
			return readErr
		}
		if latest.UID != m.UID || !sameBesideTime(m, latest) {
			return errors.New("it has changed since it was shown: look at it again")
		}
		wanted.ResourceVersion, wanted.Spec.Evidence = latest.ResourceVersion, latest.Spec.Evidence
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("approve machine %s: %w; nothing was changed", m.Name, err)
	}
	return approved, nil
}

func sameBesideTime(a, b *v1alpha1.Machine) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, m := range []*v1alpha1.Machine{a, b} {
		if m.Spec.Evidence != nil {
			m.Spec.Evidence.RequestTime = metav1.Time{}
		}
	}
	return reflect.DeepEqual(a.Spec, b.Spec)
}

// pendingMachine is a Machine that waits for approval, or was just approved.
type pendingMachine struct {
	// Machine is the name of the Machine.
	Machine string `json:"machine"`
	// Node is the name of its node.
	Node string `json:"node"`
	// EKHashes and Keys are "sha256:" and the hashes, in hexadecimal, of its endorsement keys and of its public keys.
	EKHashes []string `json:"ekHashes"`
	Keys     []string `json:"keys"`
	// Subject is the subject of its certificate.
	Subject string `json:"subject,omitempty"`
	// Description is what the machine says about its TPM or its key. It is not proof.
	Description string `json:"description,omitempty"`
	// From is the source address of its last request, and Requested the time.
	From      string       `json:"from,omitempty"`
	Requested *metav1.Time `json:"requested"`
}

func newPendingMachine(m *v1alpha1.Machine) pendingMachine {
	p := pendingMachine{Machine: m.Name, Node: m.Spec.NodeName, EKHashes: []string{}, Keys: []string{}}
	if m.Spec.TPM != nil {
		p.EKHashes = append(p.EKHashes, m.Spec.TPM.EKHashes...)
	}
	hashes, err := machines.KeyHashes(m)
	p.Keys = append(p.Keys, hashes...)
	if err != nil {
		p.Keys = append(p.Keys, "unreadable: "+err.Error())
	}
	if m.Spec.X509 != nil {
		p.Subject = m.Spec.X509.Subject
	}
	if e := m.Spec.Evidence; e != nil {
		p.Description, p.From, p.Requested = e.Description, e.RemoteAddress, &e.RequestTime
	}
	return p
}

func (m *pendingMachine) hasOnly(ek, key string) bool {
	only := func(hashes []string, want string) bool {
		return want == "" && len(hashes) == 0 || want != "" && slices.Equal(hashes, []string{want})
	}
	return only(m.EKHashes, ek) && only(m.Keys, key) && m.Subject == ""
}

// proofs are what the machine can prove to have.
func (m *pendingMachine) proofs() string {
	var all []string
	for _, hash := range m.EKHashes {
		all = append(all, "endorsement key "+hash)
	}
	for _, hash := range m.Keys {
		all = append(all, "public key "+hash)
	}
	if m.Subject != "" {
		all = append(all, "subject "+m.Subject)
	}
	return strings.Join(all, ", ")
}

func (m *pendingMachine) lines() []string {
	return []string{
		"machine " + m.Machine, "  node       " + m.Node, "  has        " + m.proofs(),
		"  says       " + m.Description, "  asked      " + m.when() + " from " + m.From,
	}
}

func (m *pendingMachine) when() string {
	if m.Requested == nil {
		return "at an unknown time"
	}
	return m.Requested.UTC().Format(time.RFC3339)
}

// ApprovalResult is a machine that was approved, or the pending ones.
type ApprovalResult struct {
	// Approved is the machine that was approved; missing if none was named.
	Approved *pendingMachine `json:"approved,omitempty"`
	// Pending are the machines that wait for approval, sorted by name.
	Pending []pendingMachine `json:"pending"`
}

// Text writes the approved machine, or a row for each pending one.
func (r ApprovalResult) Text(p *render.Page) {
	switch {
	case r.Approved != nil:
		p.Line("Approved %s as node %s: %s", r.Approved.Machine, r.Approved.Node, r.Approved.proofs())
	case len(r.Pending) == 0:
		p.Line("No machine waits for approval.")
	default:
		rows := [][]string{}
		for i := range r.Pending {
			m := &r.Pending[i]
			rows = append(rows, []string{m.Machine, m.Node, m.when(), m.From, m.Description, m.proofs()})
		}
		p.Table(0, []string{"MACHINE", "NODE", "ASKED", "FROM", "SAYS", "HAS"}, rows)
	}
}

func (ApprovalResult) DocumentKind() string { return "Approval" }
