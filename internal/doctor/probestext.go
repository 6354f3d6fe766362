package doctor

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/probe"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/sarif"
)

// probesText writes each probe with what it sent and what was answered.
func (s *Shown) probesText(p *render.Page) {
	for i := range s.Probes {
		if i == 0 {
			p.Section("Probes: what the API server was asked; nothing was changed")
		} else {
			p.Line("")
		}
		s.Probes[i].text(p)
	}
}

func (asked *ShownProbe) text(p *render.Page) {
	style := map[probe.Outcome]render.Style{
		probe.Holds: render.Good, probe.DoesNotHold: render.Bad, probe.Undetermined: render.Unsure,
	}[asked.Outcome]
	p.Line("  %s  %s", render.Strong.In(string(asked.ID)), asked.Question)
	p.Line("    %s: %s", style.In(asked.Words), asked.Why)
	for _, line := range asked.Sent {
		p.Line("    %s", render.Faint.In(line))
	}
}

func outcomeWords(o probe.Outcome) string {
	if o == probe.DoesNotHold {
		return "does not hold"
	}
	return string(o)
}

// sentLine returns a request and the response as one line.
func sentLine(s *probe.Sent) string {
	line := s.Method + " " + s.Path
	switch {
	case s.Anonymous:
		line += " without a credential"
	case len(s.Groups) > 0:
		line += fmt.Sprintf(" as %s in %s", s.As, strings.Join(s.Groups, ", "))
	case s.As != "":
		line += " as " + s.As
	}
	if s.Body != "" {
		line += " (" + s.Body + ")"
	}
	if s.Status == 0 {
		return line + ": " + s.Answer
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %d %s", line, s.Status, s.Answer))
}

// sarifProbes adds a notification for each probe.
func (r *Report) sarifProbes(run *sarif.Run) {
	for i := range r.Probes {
		asked := &r.Probes[i]
		id := "probe/" + string(asked.ID)
		run.Tool.Driver.Notifications = append(run.Tool.Driver.Notifications, sarif.Notice{
			ID: id, ShortDescription: sarif.Text("A probe of the API server: " + asked.Question), HelpURI: findingsURL + "#probes",
		})
		lines := []string{fmt.Sprintf("%s %s: %s.", asked.Question, outcomeWords(asked.Outcome), asked.Why)}
		for j := range asked.Sent {
			lines = append(lines, sentLine(&asked.Sent[j]))
		}
		run.Invocations[0].ToolExecutionNotifications = append(run.Invocations[0].ToolExecutionNotifications, sarif.Notification{
			Descriptor: sarif.Reference{ID: id}, Level: "note", Message: sarif.Text(strings.Join(lines, "\n")),
		})
	}
}
