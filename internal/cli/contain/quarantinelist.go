package contain

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

func newQuarantineList(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the quarantines of a cluster",
		Long: `Lists the Quarantines of a cluster: what each cuts off, since when and until when, and
whether the servers accept it. Whether they do is what a server wrote last.

Exit status: 0 the list was made, 2 the Quarantines could not be read.`,
		Example: `  node-authorizer quarantine list
  node-authorizer quarantine list -o json`,
	}
	connection := command.AddConnection(cmd)
	output := command.AddFormat(cmd, render.ForRows()...)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		client, err := newQuarantineClient(connection)
		if err != nil {
			return err
		}
		all, err := client.all(cmd.Context())
		if err != nil {
			return err
		}
		result := QuarantinesResult{Quarantines: []listedQuarantine{}}
		for i := range all {
			q := &all[i]
			words, otherRules := allowed(&q.Spec)
			result.Quarantines = append(result.Quarantines, listedQuarantine{
				Quarantine: q.Name, quarantineTarget: targetOf(q), Reason: q.Spec.Reason, Since: q.CreationTimestamp,
				Until: q.Spec.ExpirationTime, Allow: words, OtherRules: otherRules, Accepted: acceptance(q, time.Now()),
			})
		}
		return a.Write(result, format)
	})
	return cmd
}

// QuarantinesResult are the Quarantines of a cluster.
type QuarantinesResult struct {
	// Quarantines are sorted by name.
	Quarantines []listedQuarantine `json:"quarantines"`
}

// listedQuarantine is one Quarantine.
type listedQuarantine struct {
	// Quarantine is the name of the Quarantine.
	Quarantine string `json:"quarantine"`
	quarantineTarget
	// Reason is its reason.
	Reason string `json:"reason,omitempty"`
	// Since is when it was created.
	Since metav1.Time `json:"since"`
	// Until is when it ends by itself; null if it does not.
	Until *metav1.Time `json:"until"`
	// Allow are the words of --allow for what is not refused, and OtherRules counts the rules that no
	// word stands for.
	Allow      []string `json:"allow"`
	OtherRules int      `json:"otherRules,omitempty"`
	// Accepted is whether the servers accept it.
	Accepted effect `json:"accepted"`
}

func (r QuarantinesResult) Text(p *render.Page) {
	if len(r.Quarantines) == 0 {
		p.Line("There are no quarantines.")
		return
	}
	p.Table(0, r.Listing().Columns, r.cells(p.Wide()))
}

func (r QuarantinesResult) cells(wide bool) [][]string {
	rows := [][]string{}
	for i := range r.Quarantines {
		q := &r.Quarantines[i]
		rows = append(rows, []string{
			q.Quarantine, q.quarantineTarget.String(), q.Since.UTC().Format(time.RFC3339), untilText(q.Until), q.Reason,
			q.Accepted.short(wide),
		})
	}
	return rows
}

// short writes the answer, and the code of a no; with everything, all of it.
func (e *effect) short(everything bool) string {
	code, _, _ := strings.Cut(e.Detail, ":")
	switch short := (&effect{e.Answer, code}); {
	case everything:
		return e.String()
	case e.Answer == command.No:
		return short.String()
	default:
		return command.AnswerStyle(e.Answer).In(e.Answer)
	}
}

func (r QuarantinesResult) Listing() render.Rows {
	all := render.Rows{Field: "quarantines", Columns: []string{"NAME", "CUTS OFF", "SINCE", "UNTIL", "REASON", "ACCEPTED"}}
	for i, cells := range r.cells(true) {
		all.Rows = append(all.Rows, render.Row{Name: "quarantine/" + r.Quarantines[i].Quarantine, Cells: cells})
	}
	return all
}

func (QuarantinesResult) DocumentKind() string { return "Quarantines" }
