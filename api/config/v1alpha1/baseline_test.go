package v1alpha1_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

const baselineHead = "apiVersion: config.node-authorizer.io/v1alpha1\nkind: DoctorBaseline\n"

func TestParseDoctorBaseline(t *testing.T) {
	got, lines, err := v1alpha1.ParseDoctorBaseline([]byte(baselineHead + `suppressions:
- code: NodeRoleIsAdministrator
  object: ConfigMap kube-system/aws-auth
  reason: a lab
  expires: 2027-01-31
- {code: AnonymousAccess, object: "*", subject: "system:*", reason: known, expires: "2027-02-01"}
findings:
- {code: NoNodeRole, severity: warning, object: a.yaml, message: none}
undetermined:
- {check: bindings, lacks: [clusterroles]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 || lines[0] != 4 || lines[1] != 8 || got.Suppressions[0].Expires != "2027-01-31" ||
		got.Suppressions[1].Subject != "system:*" || got.Findings[0].Message != "none" ||
		got.Undetermined[0].Check != "bindings" || got.Undetermined[0].Lacks[0] != "clusterroles" {
		t.Errorf("got %+v, %v", got, lines)
	}
}

func TestMistakesInABaseline(t *testing.T) {
	for rule, tc := range map[string]struct{ text, want string }{
		"another kind":     {"apiVersion: config.node-authorizer.io/v1alpha1\nkind: Baseline\n", "line 2: kind: want DoctorBaseline"},
		"an empty file":    {"", "node-authorizer doctor --write-baseline writes one"},
		"an unknown field": {baselineHead + "suppression: []\n", "line 3: suppression: unknown field"},
		"no reason": {
			baselineHead + "suppressions:\n- {code: NoNodeRole, object: a}\n",
			"line 4: suppressions[0].reason: required",
		},
		"no object": {
			baselineHead + "suppressions:\n- {code: NoNodeRole, reason: a}\n",
			"line 4: suppressions[0].object: required",
		},
		"a pattern for codes": {
			baselineHead + "suppressions:\n- {code: \"*\", object: a, reason: a}\n",
			"suppressions[0].code: want the code",
		},
		"no day": {
			baselineHead + "suppressions:\n- {code: NoNodeRole, object: a, reason: a, expires: soon}\n",
			`want a day such as 2027-01-31, got "soon"`,
		},
		"a day that does not exist": {
			baselineHead + "suppressions:\n- {code: NoNodeRole, object: a, reason: a, expires: 2027-02-30}\n", "want a day",
		},
		"a number as day": {baselineHead + "suppressions:\n- {code: NoNodeRole, object: a, reason: a, expires: 2027}\n", "want a day"},
		"a finding without message": {
			baselineHead + "findings:\n- {code: NoNodeRole, severity: error}\n", "findings[0].message: required",
		},
		"an undetermined check without name": {
			baselineHead + "undetermined:\n- {lacks: [pods]}\n", "undetermined[0].check: required",
		},
	} {
		_, _, err := v1alpha1.ParseDoctorBaseline([]byte(tc.text))
		var problems v1alpha1.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", rule, err, tc.want)
		}
	}
}

func TestADayPassesAtItsEndInUTC(t *testing.T) {
	day := v1alpha1.Day("2027-01-31")
	end := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	if day.PassedAt(end.Add(-time.Second)) || !day.PassedAt(end) || v1alpha1.Day("").PassedAt(end) || !v1alpha1.Day("never").PassedAt(end) {
		t.Error("wrong")
	}
}

func FuzzParseDoctorBaseline(f *testing.F) {
	f.Add(baselineHead + "suppressions:\n- {code: NoNodeRole, object: a, reason: a, expires: 2027-01-31}\n")
	f.Add(baselineHead + "undetermined:\n- {check: bindings, lacks: [pods]}\n")
	f.Add(baselineHead + "findings: [{code: A, \"\": 1}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, lines, err := v1alpha1.ParseDoctorBaseline([]byte(text))
		if err != nil {
			return
		}
		if len(lines) != len(got.Suppressions) {
			t.Fatalf("%d lines of %d suppressions", len(lines), len(got.Suppressions))
		}
		for _, s := range got.Suppressions {
			if s.Code == "" || s.Object == "" || s.Reason == "" {
				t.Fatalf("accepted %+v", s)
			}
		}
	})
}
