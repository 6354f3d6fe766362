package paths

import (
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// withoutKnown moves the findings that a baseline has, and writes one.
func (r *DiffResult) withoutKnown(a *command.App, known *command.KnownFlags) error {
	r.showKnown, r.report = known.Show, &doctor.Report{Summary: doctor.Summary{Checks: 1}}
	check := doctor.CheckResult{ID: doctor.CheckID("diff"), Status: doctor.Made, Findings: len(r.Widened)}
	if len(r.Missing) > 0 {
		check.Status, r.report.Summary.Undetermined = doctor.Undetermined, 1
		for _, m := range r.Missing {
			check.Missing = append(check.Missing, doctor.Missing{Resource: m.Resource, Reason: m.Reason})
		}
	}
	r.report.Checks = []doctor.CheckResult{check}
	rows := map[finding.Finding][]diffRow{}
	for _, row := range r.Widened {
		f := row.finding()
		rows[f] = append(rows[f], row)
		r.report.Findings = append(r.report.Findings, f)
	}
	if err := known.Apply(a, r.report, a.Now()); err != nil {
		return err
	}
	r.Widened, r.Baseline = []diffRow{}, r.report.Baseline
	for _, f := range r.report.Findings {
		r.Widened, rows[f] = append(r.Widened, rows[f][0]), rows[f][1:]
	}
	for _, s := range r.report.Suppressed {
		row := rows[s.Finding][0]
		row.Reason, rows[s.Finding] = s.Reason, rows[s.Finding][1:]
		r.Suppressed = append(r.Suppressed, row)
	}
	return nil
}

// finding is a row as baselines have it. The id in its message stands for all starts and holdings of the row.
func (r *diffRow) finding() finding.Finding {
	f := finding.Finding{
		Code: "Widened", Severity: finding.Warning, Place: finding.Place{Object: holdingList(r.Starts, r.StartKind, false)},
		Subject: r.reachedText(false), Message: r.Before.String() + " → " + r.After.String() + " (" + r.ID + ")",
	}
	if len(r.Path) > 0 {
		f.Code = finding.Code(r.Path[len(r.Path)-1].Technique)
	}
	if r.After == attackpaths.Certain {
		f.Severity = finding.Error
	}
	return f
}
