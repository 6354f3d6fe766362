package doctor

import (
	"bytes"
	"testing"
)

// FuzzAccessEntries checks that any input as access entries or data of aws-auth is an error or
// is examined, that every finding has a place, and that no role has two predictions.
func FuzzAccessEntries(f *testing.F) {
	f.Add([]byte(describedEntry("node", "EC2_LINUX", "system:node:{{EC2PrivateDNSName}}", "system:nodes")))
	f.Add([]byte(listedEntries))
	f.Add([]byte(
		`{"accessEntries": [null, {}, "x", {"principalArn": "arn:aws:iam::111122223333:role/a/b", "type": "HYBRID_LINUX", ` +
			`"username": "{{"}]}`,
	))
	f.Add([]byte(
		"apiVersion: eks.services.k8s.aws/v1alpha1\nkind: AccessEntry\nmetadata: {name: a}\n" +
			"spec: {principalARN: 'arn:aws:iam::111122223333:role/x', kubernetesGroups: [a]}\n",
	))
	f.Add([]byte("data:\n  mapRoles: |\n    - {rolearn: 'arn:aws:iam::111122223333:role/x', username: a, groups: b}\n  accessEntry: x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Read(t.Context(), []string{"-"}, ReadOptions{Stdin: bytes.NewReader(text)})
		if err != nil {
			return
		}
		report := Examine(c, Options{})
		for _, f := range report.Findings {
			if f.Place.File == "" && f.Place.Object == "" {
				t.Errorf("finding without a place: %+v", f)
			}
		}
		seen := map[string]bool{}
		for _, r := range report.Roles {
			if r.Source == accessEntrySourceName {
				if seen[r.ARN] {
					t.Errorf("%s has two predictions", r.ARN)
				}
				seen[r.ARN] = true
			}
		}
	})
}
