package doctor

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Listing has a row for each finding, named by its code, and for each check that could not be made.
func (r *Report) Listing() render.Rows {
	all := render.Rows{
		Field: "findings", Short: 5,
		Columns: []string{"SEVERITY", "CODE", "PLACE", "SUBJECT", "MESSAGE", "CONSEQUENCE", "REMEDY"},
	}
	for _, f := range r.Findings {
		all.Rows = append(all.Rows, render.Row{Name: string(f.Code), Cells: []string{
			string(f.Severity), string(f.Code), f.Place.String(), f.Subject, f.Message, f.Consequence, f.Remedy,
		}})
	}
	for _, c := range r.Undetermined() {
		all.Rows = append(all.Rows, render.Row{Cells: []string{
			string(c.Status), string(c.ID), "", "", c.Title + ": not checked, because it lacks " + strings.Join(c.lacks(), ", "), "", "",
		}})
	}
	return all
}
