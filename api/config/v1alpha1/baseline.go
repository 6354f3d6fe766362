package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DoctorBaselineKind is the kind of a file with findings of the doctor that do not fail a run.
const DoctorBaselineKind = "DoctorBaseline"

// MaxDoctorBaseline is the maximum size of such a file, in bytes.
const MaxDoctorBaseline = 8 << 20

// DoctorBaseline has findings of the doctor that do not fail a run.
type DoctorBaseline struct {
	metav1.TypeMeta `json:",inline"`

	// Suppressions are written by people.
	Suppressions []Suppression `json:"suppressions,omitempty"`
	// Findings are written by the doctor (--write-baseline).
	Findings []KnownFinding `json:"findings,omitempty"`
	// Undetermined are the checks that could not be made when the file was written (--allow-undetermined).
	// They suppress nothing: what such a check finds later is new.
	Undetermined []UndeterminedCheck `json:"undetermined,omitempty"`
}

// Suppression suppresses the findings of a code about some objects.
type Suppression struct {
	// Code is the code of the findings.
	Code string `json:"code"`
	// Object is the object of the finding, or its file if it has no object:
	// "ClusterRoleBinding dev-admins". A star stands for any text.
	Object string `json:"object"`
	// Subject is what the finding is about, such as the ARN of a role; empty for any. A star
	// stands for any text.
	Subject string `json:"subject,omitempty"`
	// Reason is why the finding is accepted, in one line.
	Reason string `json:"reason"`
	// Expires is the last day of the suppression, in UTC; empty for none.
	Expires Day `json:"expires,omitempty"`
}

// Day is a date, in the form 2006-01-02.
type Day string

// PassedAt reports whether the day has ended in UTC.
func (d Day) PassedAt(now time.Time) bool {
	day, err := time.Parse(time.DateOnly, string(d))
	return d != "" && (err != nil || !now.Before(day.AddDate(0, 0, 1)))
}

// KnownFinding is one finding that was there when the file was written.
type KnownFinding struct {
	// Code, Severity, Subject and Message equal the fields of the finding.
	Code     string `json:"code"`
	Severity string `json:"severity"`
	// Object is as in Suppression, without stars.
	Object  string `json:"object,omitempty"`
	Subject string `json:"subject,omitempty"`
	Message string `json:"message"`
}

// UndeterminedCheck is a check that could not be made.
type UndeterminedCheck struct {
	// Check is its name, as in --checks.
	Check string `json:"check"`
	// Lacks are the resources that it lacked, as in kubectl.
	Lacks []string `json:"lacks,omitempty"`
}

// ParseDoctorBaseline reads a file with findings of the doctor, YAML or JSON, and validates it. The
// error is Problems. Lines has the line of each suppression. Names are case-sensitive. Anchors and
// aliases are rejected.
func ParseDoctorBaseline(file []byte) (baseline *DoctorBaseline, lines []int, err error) {
	if len(file) > MaxDoctorBaseline {
		return nil, nil, Problems{{Message: "the file is larger than 8 MiB"}}
	}
	baseline = &DoctorBaseline{}
	d, err := decodeFile(file, baseline, &baseline.TypeMeta, DoctorBaselineKind, "node-authorizer doctor --write-baseline writes one")
	if err != nil {
		return nil, nil, err
	}
	v := &baselineValidation{}
	v.baseline(baseline)
	if problems := d.located(v.problems); len(problems) > 0 {
		return nil, nil, problems
	}
	for i := range baseline.Suppressions {
		lines = append(lines, d.lines[elementPath("suppressions", i)])
	}
	return baseline, lines, nil
}

// baselineValidation finds mistakes in files with findings of the doctor.
type baselineValidation struct{ techniqueValidation }

func (v *baselineValidation) baseline(b *DoctorBaseline) {
	for i, s := range b.Suppressions {
		field := elementPath("suppressions", i)
		v.findingCode(field+".code", s.Code)
		v.line(field+".object", s.Object, maxTextLength, true, `the object of the findings, such as "ClusterRoleBinding dev-*"`)
		v.line(field+".subject", s.Subject, maxTextLength, false, "")
		v.line(field+".reason", s.Reason, maxTextLength, true, "why these findings are accepted")
		if _, err := time.Parse(time.DateOnly, string(s.Expires)); s.Expires != "" && err != nil {
			v.wrong(field+".expires", "want a day such as 2027-01-31%s", given(string(s.Expires)))
		}
	}
	for i, f := range b.Findings {
		field := elementPath("findings", i)
		v.findingCode(field+".code", f.Code)
		v.required(field+".severity", f.Severity, "the severity of the finding, or write the file again with --write-baseline")
		v.required(field+".message", f.Message, "the message of the finding, or write the file again with --write-baseline")
	}
	for i, u := range b.Undetermined {
		v.required(elementPath("undetermined", i)+".check", u.Check, "the name of a check, as in --checks")
	}
}

func (v *baselineValidation) findingCode(field, code string) {
	if !hasForm(techniqueCode, code) {
		v.wrong(field, "want the code of a finding, for example NodeRoleIsAdministrator%s", given(code))
	}
}
