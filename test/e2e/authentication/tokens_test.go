package authentication

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// TestTokensOfBothMakers makes tokens with our command and with the client of
// aws-iam-authenticator, from the same credentials. Both authenticate as the same user.
func TestTokensOfBothMakers(t *testing.T) {
	ctx := t.Context()
	user := "arn:aws:iam::" + fakeaws.DefaultAccount + ":user/alice"
	err := blue.Map(ctx, map[string]string{
		"mapRoles": mapRoles(),
		"mapUsers": "- userarn: " + user + "\n  username: alice\n  groups: [readers]\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	instance, _ := blue.Launch(rightNode)
	for _, who := range []struct {
		name        string
		credentials fakeaws.Credentials
		username    string
		groups      []string
		arn         string
	}{
		{
			"the session of an instance's role is its node", blue.Cloud.Role(instance.ID),
			"system:node:" + instance.PrivateDNSName,
			[]string{"system:authenticated", "system:bootstrappers", "system:nodes"},
			RoleARN(rightNode),
		},
		{
			"a user is the one of the mapping", blue.Cloud.User(fakeaws.DefaultAccount, "alice"),
			"alice",
			[]string{"readers", "system:authenticated"},
			user,
		},
	} {
		t.Run(who.name, func(t *testing.T) {
			ours, err := blue.Token(ctx, who.credentials, ClusterID)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := ReferenceToken(who.credentials, ClusterID)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := parametersOf(t, ours), parametersOf(t, theirs); !slices.Equal(got, want) {
				t.Errorf("our tokens have the parameters %v, those of the reference %v", got, want)
			}
			for maker, token := range map[string]string{"ours": ours, "the reference": theirs} {
				eventually(t, "the token of "+maker+" is accepted", func(ctx context.Context) error {
					info, err := blue.WhoAmI(ctx, token)
					if err != nil {
						return err
					}
					groups := slices.Sorted(slices.Values(info.Groups))
					if info.Username != who.username || !slices.Equal(groups, who.groups) {
						return fmt.Errorf("the API server authenticates %s in %v", info.Username, groups)
					}
					if !strings.HasPrefix(info.UID, "aws-iam-authenticator:"+fakeaws.DefaultAccount+":") {
						return fmt.Errorf("the uid is %s", info.UID)
					}
					if canonical := info.Extra["canonicalArn"]; len(canonical) != 1 || canonical[0] != who.arn {
						return fmt.Errorf("the canonical ARN is %v", canonical)
					}
					return nil
				})
			}
		})
	}
}

// parametersOf returns the sorted names of the query parameters in a token.
func parametersOf(t *testing.T, token string) []string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "k8s-aws-v1."))
	if err != nil {
		t.Fatal(err)
	}
	asked, err := url.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(asked.Query()))
}

// TestRefusedTokens makes tokens with both makers that the cluster must refuse.
func TestRefusedTokens(t *testing.T) {
	ctx := t.Context()
	if err := blue.Map(ctx, map[string]string{"mapRoles": mapRoles()}); err != nil {
		t.Fatal(err)
	}
	instance, _ := blue.Launch(rightNode)
	other, _ := blue.Launch("bystander")
	stopped, _ := blue.Launch(rightNode)
	blue.Cloud.Terminate(stopped.ID)
	account := fakeaws.DefaultAccount
	for _, tc := range []struct {
		rule        string
		credentials fakeaws.Credentials
		clusterID   string
		code        string
	}{
		{"a token for another cluster is not signed for this one", blue.Cloud.Role(instance.ID), "green", "STSRefused"},
		{"a role without a mapping is refused", blue.Cloud.Role(other.ID), ClusterID, "NotMapped"},
		{
			"another account's role of the same name is refused", blue.Cloud.Session("444455556666", rightNode, instance.ID),
			ClusterID, "NotMapped",
		},
		{
			"a session named after another role's instance is refused", blue.Cloud.Session(account, rightNode, other.ID),
			ClusterID, "SessionRoleMismatch",
		},
		{
			"a session named after no instance is refused", blue.Cloud.Session(account, rightNode, "i-0123456789abcdef0"),
			ClusterID, "SessionInstanceUnknown",
		},
		{"a session with any other name is refused", blue.Cloud.Session(account, rightNode, "mallory"), ClusterID, "SessionNotInstance"},
		{"a terminated instance is refused", blue.Cloud.Session(account, rightNode, stopped.ID), ClusterID, "SessionInstanceEnded"},
		{
			"unknown credentials are refused",
			fakeaws.Credentials{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
			ClusterID, "STSRefused",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			ours, err := blue.Token(ctx, tc.credentials, tc.clusterID)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := ReferenceToken(tc.credentials, tc.clusterID)
			if err != nil {
				t.Fatal(err)
			}
			for maker, token := range map[string]string{"ours": ours, "the reference": theirs} {
				before := refusals(t, tc.code)
				if info, err := blue.WhoAmI(ctx, token); err == nil {
					t.Errorf("the bearer of a token of %s is %s", maker, info.Username)
				}
				if after := refusals(t, tc.code); after <= before {
					t.Errorf("the token of %s is not refused as %s, but the refusals are %s", maker, tc.code, refusalLines(t))
				}
				if text, err := blue.Authenticator.Log(); err != nil || strings.Contains(text, token[:100]) {
					t.Errorf("the log has the token of %s, or cannot be read: %v", maker, err)
				}
			}
		})
	}
}

// refusals returns the number of tokens that the server has refused for a reason.
func refusals(t *testing.T, code string) (n int) {
	t.Helper()
	for line := range strings.Lines(refusalLines(t)) {
		if _, value, found := strings.Cut(line, "} "); found && strings.Contains(line, fmt.Sprintf("code=%q", code)) {
			count, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			n += int(count)
		}
	}
	return n
}

// refusalLines returns the lines about refusals in the server's metrics.
func refusalLines(t *testing.T) string {
	t.Helper()
	text, err := blue.Authenticator.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "node_authorizer_authentications_total{") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}
