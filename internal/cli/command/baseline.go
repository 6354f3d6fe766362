package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
)

// KnownFlags are the flags of doctor about findings that do not count.
type KnownFlags struct {
	baseline, Write string
	Show            bool
	// AllowUndetermined is true if a baseline may lack what checks that could not be made would find.
	AllowUndetermined bool

	// LeaveOut says how to leave out what could not be examined.
	LeaveOut string
	// file is the content of the baseline; nil without one.
	file *doctor.Baseline
}

func (k *KnownFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&k.baseline, "baseline", "", "file with findings that do not count: known ones, and suppressions with reasons")
	flags.StringVar(
		&k.Write, "write-baseline", "",
		"write the findings to this file, with the suppressions of --baseline, and do not count them",
	)
	flags.BoolVar(
		&k.AllowUndetermined, "allow-undetermined", false,
		"write the baseline although checks could not be made: it lists them, and what they find later is new",
	)
	flags.BoolVar(&k.Show, "show-known", false, "show the findings that do not count too")
	for _, name := range []string{"baseline", "write-baseline"} {
		Must(cmd.MarkFlagFilename(name, "yaml", "yml", "json"))
	}
}

// Given reports whether a flag about known findings was given.
func (k *KnownFlags) Given() bool { return k.baseline != "" || k.Write != "" || k.Show }

// Read reads the baseline.
func (k *KnownFlags) Read() error {
	if k.baseline == "" {
		return nil
	}
	text, err := os.ReadFile(k.baseline)
	if err != nil {
		return fmt.Errorf("reading the baseline: %w", err)
	}
	k.file = &doctor.Baseline{Path: k.baseline}
	parsed, lines, err := v1alpha1.ParseDoctorBaseline(text)
	var problems v1alpha1.Problems
	if errors.As(err, &problems) {
		return fmt.Errorf("the baseline is not valid: %s", strings.Join(ConfigProblems(k.baseline, problems), "\n"))
	}
	if err != nil {
		return err
	}
	k.file.DoctorBaseline, k.file.Lines = *parsed, lines
	return nil
}

// Apply moves the findings that do not count, and writes the baseline.
func (k *KnownFlags) Apply(a *App, report *doctor.Report, now time.Time) error {
	report.ShowKnown = k.Show
	file := k.file
	if k.writes(report) {
		next := &doctor.Baseline{Path: k.Write, DoctorBaseline: *doctor.NewBaseline(report, file, now)}
		if err := writeBaseline(next); err != nil {
			return err
		}
		file = next
	}
	if file == nil {
		return nil
	}
	report.Apply(file, now)
	for _, note := range report.Baseline.Notes() {
		a.Warn("%s", note)
	}
	return nil
}

// Refused returns why no baseline was written, if none was: it would not have what checks find that could
// not be made. The report says what they lack.
func (k *KnownFlags) Refused(report *doctor.Report) error {
	if k.Write == "" || k.writes(report) {
		return nil
	}
	var names []string
	for _, c := range report.Undetermined() {
		names = append(names, string(c.ID))
	}
	return fmt.Errorf("%s was not written, because it would not have what these checks find, which could not be made: %s; "+
		"provide what the report says that they lack%s, "+
		"or add --allow-undetermined: the file then lists them, and what they find later is new",
		k.Write, strings.Join(names, ", "), k.LeaveOut)
}

func (k *KnownFlags) writes(report *doctor.Report) bool {
	return k.Write != "" && (k.AllowUndetermined || len(report.Undetermined()) == 0)
}

const baselineHeader = `# Findings of node-authorizer doctor or diff that do not count (--baseline). The lists findings and undetermined
# are written by --write-baseline; write suppressions by hand, each with code, object and reason.
`

func writeBaseline(b *doctor.Baseline) error {
	text, err := yaml.Marshal(&b.DoctorBaseline)
	if err != nil {
		return fmt.Errorf("encoding the baseline: %w", err)
	}
	text = append([]byte(baselineHeader), text...)
	if _, b.Lines, err = v1alpha1.ParseDoctorBaseline(text); err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	if err := os.WriteFile(b.Path, text, 0o644); err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	return nil
}
