package contain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/cli/query"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// QuarantineResult is what was quarantined, whether that has an effect, and what to do next.
type QuarantineResult struct {
	// Quarantine is the name of the Quarantine.
	Quarantine string `json:"quarantine"`
	quarantineTarget
	// DryRun is true if nothing was changed.
	DryRun bool `json:"dryRun,omitempty"`
	// State is where the state comes from, with --from; omitted for a cluster.
	State string `json:"state,omitempty"`
	// CutsOff is what the Quarantine of a node refuses, and Limit whether the servers would accept it; both
	// only with --from.
	CutsOff *cutOff          `json:"cutsOff,omitempty"`
	Limit   *quarantineLimit `json:"limit,omitempty"`
	// Written says what was done with the Quarantine, or would be.
	Written written `json:"written"`
	// Reason is its reason.
	Reason string `json:"reason,omitempty"`
	// Until is when it ends by itself; null if it does not.
	Until *metav1.Time `json:"until"`
	// Allow are the words of --allow for what is not refused, and OtherRules counts the rules that no
	// word stands for.
	Allow      []string `json:"allow"`
	OtherRules int      `json:"otherRules,omitempty"`
	// Accepted is whether the servers accept the Quarantine, and Refused whether the API server that
	// was asked refuses what it is about; both are omitted after a dry run.
	Accepted *effect `json:"accepted,omitempty"`
	Refused  *effect `json:"refused,omitempty"`
	// Secrets counts the secrets that the node's credential could read; omitted for credentials.
	Secrets *secretCount `json:"secrets,omitempty"`
	// UnboundTokens are the secrets among them whose tokens the Quarantine does not refuse; omitted if these
	// could not be counted.
	UnboundTokens *unboundTokens `json:"unboundTokens,omitempty"`
	// Open lists the access that the Quarantine does not end.
	Open []string `json:"open"`
	// Next are the next actions for the user.
	Next []nextStep `json:"next"`
}

// secretCount counts the secrets that a node could read.
type secretCount struct {
	// Count is how many reach lists; null if they could not be counted.
	Count *int `json:"count"`
	// Incomplete says why there may be more, or why they could not be counted.
	Incomplete string `json:"incomplete,omitempty"`
}

// nextStep is one thing to do.
type nextStep struct {
	// Do says what, and Command is the command line for it.
	Do      string `json:"do"`
	Command string `json:"command"`
}

func newQuarantineResult(object *policyv1alpha1.Quarantine, did written, dryRun bool) *QuarantineResult {
	words, otherRules := allowed(&object.Spec)
	r := &QuarantineResult{
		Quarantine: object.Name, quarantineTarget: targetOf(object), DryRun: dryRun, Written: did,
		Reason: object.Spec.Reason, Until: object.Spec.ExpirationTime, Allow: words, OtherRules: otherRules,
	}
	r.Open, r.Next = r.open(), r.next()
	return r
}

func (r *QuarantineResult) status() int {
	switch {
	case r.DryRun:
		return command.StatusAllowed
	case r.Accepted.Answer == command.No || r.Refused.Answer == command.No:
		return command.StatusDenied
	case r.Accepted.Answer == command.Yes && r.Refused.Answer == command.Yes:
		return command.StatusAllowed
	}
	return command.StatusUndecided
}

// countTime bounds how long secrets are counted.
const countTime = 20 * time.Second

// findSecrets counts the secrets that the command reach lists for the node, and finds those with tokens that the
// Quarantine does not refuse.
func (q *quarantining) findSecrets(ctx context.Context, r *QuarantineResult) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	flags := &command.StateFlags{App: q.app, Connection: q.connection, Parts: true}
	state, err := flags.ReadState(ctx)
	if err != nil {
		r.Secrets = &secretCount{Incomplete: command.OneLine(err).Error()}
		return
	}
	s, err := flags.NewSession(ctx, state, nil)
	if err != nil {
		r.Secrets = &secretCount{Incomplete: command.OneLine(err).Error()}
		return
	}
	q.findSecretsIn(ctx, r, s)
}

func (q *quarantining) findSecretsIn(ctx context.Context, r *QuarantineResult, s *command.Session) {
	r.Secrets = &secretCount{}
	secrets, incomplete, err := secretsOf(s, r.Node)
	if err != nil {
		r.Secrets.Incomplete = command.OneLine(err).Error()
		return
	}
	count := len(secrets)
	r.Secrets.Count = &count
	if incomplete {
		r.Secrets.Incomplete = "not everything could be read"
	}
	if q.client != nil {
		r.UnboundTokens = q.findTokens(ctx, secrets)
	} else {
		r.UnboundTokens = findTokens(s, secrets)
	}
	r.Open, r.Next = r.open(), r.next()
}

// secretsOf returns the secrets that a node could read, sorted.
func secretsOf(s *command.Session, node string) (secrets []tokenSecret, incomplete bool, err error) {
	only, err := s.NewFilter([]string{"secrets"}, "")
	if err != nil {
		return nil, false, err
	}
	reached, err := query.Reach(s, node, only)
	if err != nil {
		return nil, false, err
	}
	for _, o := range reached.Objects {
		if o.Kind == graph.Secret.String() {
			secrets = append(secrets, tokenSecret{Namespace: o.Namespace, Name: o.Name})
		}
	}
	return secrets, len(reached.Missing) > 0, nil
}

func (r *QuarantineResult) drains() bool {
	return slices.Contains(r.Allow, allowDrain)
}

// open describes what the Quarantine does not end.
func (r *QuarantineResult) open() []string {
	lines := []string{
		"Watches, logs and execs that are open run on until they end.",
		"Members of the group system:masters are not refused: no authorizer is asked about them.",
	}
	if r.Node == "" {
		return append(lines,
			"Other credentials of the same user are not refused.",
			"API servers name certificates since Kubernetes 1.32, and tokens since 1.30: one that is older does not refuse them.")
	}
	lines = append(lines,
		"Tokens that are bound to no pod, and credentials of others that were read on the node, are not refused.",
		"What runs on the machine runs on, and the kubelet's own port answers: stop the machine, or cut off its network.",
		"Bootstrap tokens that kubeadm left on its disk make a node of another name, which is not quarantined: delete them.",
		"API servers accept the token of a deleted pod for some ten seconds more: do not end the Quarantine before that.",
		"On AWS, an entry of aws-auth with the ARN of a session does not replace an older one for the role: change that one.",
	)
	lines = append(lines, r.UnboundTokens.open()...)
	if r.drains() {
		return append(lines, "The node stays Ready, because its kubelet may write its status: cordon it.")
	}
	return append(lines,
		"By default, the node counts as unreachable within a minute, and its pods are started elsewhere after five more. "+
			"Those on the machine still run.")
}

func (r *QuarantineResult) next() []nextStep {
	if r.Node == "" {
		return []nextStep{{"End it", "node-authorizer release " + r.String()}}
	}
	pods := nextStep{
		"Delete its pods; the kubelet cannot say that they have ended, so force it when the machine is stopped",
		"kubectl delete pods --all-namespaces --field-selector spec.nodeName=" + r.Node,
	}
	if r.drains() {
		pods = nextStep{"Delete its pods", "kubectl drain " + r.Node + " --ignore-daemonsets --delete-emptydir-data"}
	}
	return slices.Concat([]nextStep{
		{"Keep new pods away from the node", "kubectl cordon " + r.Node},
		pods,
		{"Rotate the secrets that its pods use", "node-authorizer reach " + r.Node + " --kind secrets"},
	}, r.UnboundTokens.steps(), []nextStep{
		{
			"Delete all bootstrap tokens; nodes that join later need new ones",
			"kubectl delete secrets --namespace kube-system --field-selector type=bootstrap.kubernetes.io/token",
		},
		{
			"Look for nodes that joined with one of them since, and quarantine these too",
			"kubectl get nodes --sort-by .metadata.creationTimestamp",
		},
		{"Keep the machine from joining again for good", "node-authorizer revoke " + r.Node},
		{"End it", "node-authorizer release " + r.String()},
	})
}

func (c *secretCount) text() string {
	switch {
	case c.Count == nil:
		return "not known how many it could read: " + c.Incomplete
	case c.Incomplete != "":
		return fmt.Sprintf("it could read %d at least: %s", *c.Count, c.Incomplete)
	}
	return fmt.Sprintf("it could read %d", *c.Count)
}

func (QuarantineResult) DocumentKind() string { return "QuarantineResult" }

// Text writes whether the quarantine has an effect, what it does not end, and what to do next.
func (r QuarantineResult) Text(p *render.Page) {
	p.Section("%s", r.heading())
	object := "quarantine " + r.Quarantine + ", " + string(r.Written)
	if r.DryRun {
		object = "quarantine " + r.Quarantine
	}
	fields := []render.Field{
		{Name: "node", Value: r.Node},
		{Name: "credential", Value: r.Credential},
		{Name: "object", Value: object},
		{Name: "reason", Value: r.Reason},
		{Name: "until", Value: untilText(r.Until)},
		{Name: "allowed", Value: r.allowedText()},
		{Name: "cuts off", Value: r.CutsOff.text()},
		{Name: "limit", Value: r.Limit.text()},
		{Name: "state", Value: r.State},
	}
	if !r.DryRun {
		fields = append(fields,
			render.Field{Name: "servers accept it", Value: r.Accepted.String()},
			render.Field{Name: "API server refuses", Value: r.Refused.String()})
	}
	if r.Secrets != nil {
		fields = append(fields, render.Field{Name: "secrets", Value: r.Secrets.text()})
	}
	p.Fields(fields...)
	p.Section("What stays open")
	for _, line := range r.Open {
		p.Line("  %s", line)
	}
	p.Section("What to do next")
	for _, step := range r.Next {
		p.Line("  %s:", step.Do)
		p.Command("    %s", step.Command)
	}
}

func (r QuarantineResult) heading() string {
	switch {
	case r.DryRun && r.Written == quarantineUnchanged:
		return "Is quarantined already (nothing was changed)"
	case r.DryRun:
		return "Would be quarantined (nothing was changed)"
	}
	switch r.status() {
	case command.StatusAllowed:
		return render.Good.In("Quarantined")
	case command.StatusDenied:
		return render.Bad.In("Not quarantined")
	}
	return render.Unsure.In("Not known to be quarantined")
}

func (e *effect) String() string {
	return command.AnswerStyle(e.Answer).In(e.Answer) + ": " + e.Detail
}

func untilText(end *metav1.Time) string {
	if end == nil {
		return "it is released"
	}
	return end.UTC().Format(time.RFC3339)
}

func (r QuarantineResult) allowedText() string {
	words := append([]string{}, r.Allow...)
	if r.OtherRules > 0 {
		words = append(words, fmt.Sprintf("%d other rules", r.OtherRules))
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}
