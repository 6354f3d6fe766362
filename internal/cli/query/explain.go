package query

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ExplainResult is the answer with the opinions of the authorizers and the answer of
// NodeRestriction.
type ExplainResult struct {
	answer
	// Authorizers are the answers of the authorizers, in the order in which they were asked.
	Authorizers []chain.Opinion `json:"authorizers"`
	// NotAsked are the authorizers that were not asked, because one before them decided.
	NotAsked []string `json:"notAsked,omitempty"`
	// Admission is nil if NodeRestriction is not involved: for reads, and for users that
	// are not nodes.
	Admission *admission `json:"admission,omitempty"`

	// decidedBefore is the authorizer that decided before the others were asked.
	decidedBefore string
	// again is the command line, for the next command.
	again repeat
}

func NewExplain(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain VERB TYPE[/NAME] --node NODE",
		Short: "Explain a decision: the user, the answer of each authorizer, and the reason",
		Long: `Explains a decision: the user, the answer of each authorizer, the rule and the path
that it rests on or the nearest path that exists, and what would change it.

When a node writes, it also says what NodeRestriction decides after the
authorizers have allowed it: by the name and the state, and of the rest, which
conditions have to be met. With the object that is written (-f), and where they are
compared the one before (--old-object), it decides these too. The answer is yes only
if both allow. A patch is an update with the object that results from it.

With --fix it prints instead what to change so that the answer becomes yes, as a
shell script to read before you run it: manifests and patches for kubectl, the
question in another form, flags of kube-apiserver; or a comment that says why
nothing can be changed. The other formats always hold this, as reason.remedy.

The arguments are the same as for can-i.

Exit status: 0 yes, 1 no, 2 it is not known; with --fix too.`,
		Example: `  # Why may worker-1 not read this secret?
  node-authorizer explain get secrets/db -n shop --node worker-1

  # May worker-1 change its Node object from this to that?
  node-authorizer explain update nodes/worker-1 --node worker-1 --old-object this.yaml -f that.yaml

  # Why may an agent's token of worker-1 not change worker-2?
  node-authorizer explain patch nodes/worker-2 --as system:serviceaccount:kube-system:agent --token-node worker-1

  # What would have to change?
  node-authorizer explain get secrets/db -n shop --node worker-1 --fix

  # Draw the path
  node-authorizer explain get secrets/db -n shop --node worker-2 -o dot | dot -Tsvg > path.svg`,
		Args: command.QuestionArgs,
	}
	ask := addAsk(a, cmd)
	objects := command.AddObjects(cmd)
	fix := cmd.Flags().Bool("fix", false, "print what to change so that the answer becomes yes, as a shell script")
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML, render.Dot)
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		if *fix && format == render.Dot {
			return command.Usagef("--fix does not go with -o dot, which draws the path")
		}
		written, err := objects.Read(a, ask.state)
		if err != nil {
			return err
		}
		s, who, q, err := ask.load(cmd, args)
		if err != nil {
			return err
		}
		result, err := decide(cmd.Context(), s, who, q, written)
		if err != nil {
			return err
		}
		a.WarnMissing(result.Missing, command.AnswerDepends)
		a.Status = result.status()
		explained := result.explained()
		explained.again = newRepeat(cmd, objects)
		if explained.Reason.Remedy, err = remedy(cmd.Context(), s, result); err != nil {
			return err
		}
		if *fix {
			return a.Write(fixResult{explained}, format)
		}
		return a.Write(explained, format)
	})
	return cmd
}

func (r ruling) explained() ExplainResult {
	return ExplainResult{
		answer: r.answer, Authorizers: r.said.Opinions, NotAsked: r.said.NotAsked, Admission: r.admission, decidedBefore: r.said.DecidedBy,
	}
}

func (r ExplainResult) Text(p *render.Page) {
	p.Section("Identity")
	p.Fields(
		render.Field{Name: "node", Value: r.Identity.Node},
		render.Field{Name: "user", Value: r.Identity.User},
		render.Field{Name: "token of pod", Value: r.Identity.Pod},
		render.Field{Name: "token of node", Value: r.Identity.TokenNode},
		render.Field{Name: "groups", Value: strings.Join(r.Identity.Groups, ", ")},
	)
	p.Section("Question")
	p.Fields(
		render.Field{Name: "request", Value: r.Request.String()},
		render.Field{Name: "state", Value: r.State.Origin},
		render.Field{Name: "rules of", Value: "Kubernetes " + r.State.KubernetesVersion},
		render.Field{Name: "chain", Value: r.State.AuthorizationConfig},
	)
	for _, o := range r.Authorizers {
		r.opinion(p, o)
	}
	for _, name := range r.NotAsked {
		p.Section("%s authorizer: not asked", name)
		p.Line("  %s decided before", r.decidedBefore)
	}
	if r.State.AuthorizationConfig == "" && !slices.Contains(r.State.Authorizers, chain.NameRBAC) {
		p.Section("%s authorizer: not asked", chain.NameRBAC)
		p.Line("  the state has no roles and bindings")
	}
	if r.Admission != nil {
		r.Admission.text(p, r.Reason.Hint)
	}
	decision := r.styled() + r.onlyNameText()
	if len(conditionsExceptName(r.Conditions)) > 0 {
		decision += ", if " + passesRestriction(r.Request)
	}
	p.Section("Decision: %s", decision)
	if r.Reason.Code != command.CodeInputIncomplete { // printed below, with what to do
		p.Line("  %s", r.Reason.Message)
	}
	if r.Admission != nil && len(r.Admission.Needs) > 0 {
		p.Line("  see what %s decides with %s", nameRestriction, strings.Join(r.Admission.Needs, " and "))
	}
	command.MissingText(p, r.Missing)
	for _, note := range r.Notes {
		p.Line("  %s", render.Unsure.In(note))
	}
	if r.Reason.Hint != "" {
		p.Section("Hint")
		p.Line("  %s", r.Reason.Hint)
	}
	if r.Answer == command.No {
		prints, line := r.next()
		p.Section("Next: %s", prints)
		p.Script("  %s", line)
	}
}

func (r ExplainResult) opinion(p *render.Page, o chain.Opinion) {
	decision := map[verdict.Decision]string{
		verdict.Allow:     render.Good.In("allows"),
		verdict.Deny:      render.Bad.In("denies"),
		verdict.NoOpinion: "no opinion",
	}[o.Decision]
	if o.Error != "" && o.Decision == verdict.NoOpinion {
		decision = render.Unsure.In("failed")
	}
	p.Section("%s authorizer: %s", o.Authorizer, decision)
	hint := o.Hint
	if hint == r.Reason.Hint {
		hint = "" // has a section of its own
	}
	failure := o.Error
	if strings.Contains(o.Message, failure) {
		failure = "" // printed already
	}
	p.Fields(
		render.Field{Name: "code", Value: string(o.Code)},
		render.Field{Name: "rule", Value: o.Rule},
		render.Field{Name: "reason", Value: o.Message},
		render.Field{Name: "error", Value: failure},
		render.Field{Name: "hint", Value: hint},
	)
	if len(o.Path) == 0 {
		return
	}
	if o.Decision == verdict.Allow {
		p.Line("  %s", render.Faint.In("path"))
	} else {
		p.Line("  %s", render.Faint.In("nearest path"))
	}
	p.Path(4, o.Path)
}

// Drawing shows the path, or the nearest one, and the node.
func (r ExplainResult) Drawing() *render.Graph {
	g := render.NewGraph(r.Identity.Kind() + ": " + r.Request.String())
	if r.Identity.Node != "" {
		g.Vertex(verdict.Object{Kind: "Node", Name: r.Identity.Node})
	}
	for _, o := range r.Authorizers {
		g.Path(o.Path)
	}
	return g
}

func (ExplainResult) DocumentKind() string { return "Explanation" }

// next returns the command to run after a refusal, and what it prints: a change if there is one, else the meaning of the code. A few
// codes have commands of their own.
func (r ExplainResult) next() (prints, line string) {
	switch r.Reason.Code {
	case chain.CodeNoBindingAllows:
		return "what the user may do", r.again.line("can-i", []string{"--list"}, r.Identity, r.Identity.Groups, nil)
	case quarantine.NodeQuarantined, quarantine.CredentialQuarantined:
		return "who cut it off, and until when", r.again.root + " quarantine list"
	}
	if r.Reason.Remedy != nil && r.Reason.Remedy.None == "" {
		return "what to change", r.again.command("explain", r.Request, r.Identity, nil, "--fix")
	}
	return "what the code means, and what to do", r.again.root + " explain-code " + string(r.Reason.Code)
}
