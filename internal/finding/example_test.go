package finding_test

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// Findings are sorted, so that two runs print the same output.
func Example() {
	findings := []finding.Finding{
		{
			Code: "DuplicateARN", Severity: finding.Error, Place: finding.Place{Object: "ConfigMap kube-system/aws-auth", Line: 12},
			Message: "the role is mapped twice", Remedy: "remove one of the entries",
		},
		{
			Code: "UserARNInRoles", Severity: finding.Warning, Place: finding.Place{Object: "ConfigMap kube-system/aws-auth", Line: 4},
			Message: "userarn in mapRoles",
		},
	}
	finding.Sort(findings)
	for _, f := range findings {
		fmt.Println(f)
	}
	// Output:
	// error: ConfigMap kube-system/aws-auth: the role is mapped twice [DuplicateARN]
	// warning: ConfigMap kube-system/aws-auth: userarn in mapRoles [UserARNInRoles]
}
