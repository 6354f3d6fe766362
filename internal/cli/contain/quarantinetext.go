package contain

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

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
