package iam_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// TestMessagesOfFindings compares the findings about a ConfigMap with every mistake with
// a golden file. UPDATE_GOLDEN=1 writes it.
func TestMessagesOfFindings(t *testing.T) {
	const golden = "testdata/mistakes.golden"
	text, err := os.ReadFile("testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var data map[string]string
	if err := yaml.Unmarshal(text, &data); err != nil {
		t.Fatal(err)
	}
	m, findings := iam.ParseConfigMap(data, awsAuth.Object, awsAuth)
	findings = append(findings, m.Check(iam.Rules{Partition: "aws", RolePaths: iam.MatchName, Reserved: iam.DefaultReserved()})...)
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s\n  about:  %s\n  then:   %s\n  remedy: %s\n", f, f.Subject, f.Consequence, f.Remedy)
	}
	for _, mapping := range m.All() {
		fmt.Fprintf(&b, "mapped: %s\n", strings.TrimSpace(shown(mapping)))
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("not what %s says; run with UPDATE_GOLDEN=1 and look at the difference\n%s", golden, b.String())
	}
}
