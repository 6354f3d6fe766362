package iam_test

import (
	"context"
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// The keys of the ConfigMap aws-auth map roles to users.
func Example() {
	mappings, findings := iam.ParseConfigMap(map[string]string{"mapRoles": `
- rolearn: arn:aws:iam::111122223333:role/ops
  username: ops:{{SessionName}}
  groups: [operators]
`}, "kube-system/aws-auth", finding.Place{Object: "ConfigMap kube-system/aws-auth"})
	fmt.Println(len(findings), "findings")

	// Package iam/sts has the verifier that calls STS. This example uses a stub.
	jane := verifier{caller: iam.Caller{
		ARN: "arn:aws:sts::111122223333:assumed-role/ops/jane", Account: "111122223333", UserID: "AROAEXAMPLE:jane",
	}}
	authenticator := iam.NewAuthenticator(iam.Options{
		Verifier: jane, Mappings: oneSource{mappings}, Reserved: iam.DefaultReserved(),
	})
	user, err := authenticator.Authenticate(context.Background(), "k8s-aws-v1.…")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(user.Username, user.Groups)
	// Output:
	// 0 findings
	// ops:jane [operators]
}

// oneSource finds mappings in one source. Package mappings follows several.
type oneSource struct{ *iam.Mappings }

func (s oneSource) Find(canonical, account string) (iam.Mapping, bool, error) {
	found, ok := s.Mappings.Find(canonical, account, iam.MatchName)
	return found, ok, nil
}
