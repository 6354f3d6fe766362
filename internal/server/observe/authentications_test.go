package observe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
)

const secretToken = "k8s-aws-v1.c2VjcmV0"

// always returns an evaluator that gives every token the same result.
func always(user *iam.User, err error) review.Authenticate {
	return func(context.Context, string) (*iam.User, error) { return user, err }
}

func aNode() *iam.User { return &iam.User{Username: "system:node:worker-1"} }

func TestAuthenticationsAreCounted(t *testing.T) {
	m := observe.NewMetrics()
	for _, next := range []review.Authenticate{
		always(aNode(), nil),
		always(nil, iam.Refuse("NotMapped", "nothing maps arn:aws:iam::111122223333:role/other")),
		always(nil, fmt.Errorf("wrapped: %w", iam.Refuse("NotMapped", "nothing maps it"))),
		always(nil, fmt.Errorf("wrapped: %w", &iam.Throttled{Service: "STS"})),
		always(nil, errors.New("connection refused")),
		always(nil, nil),
	} {
		want, wantErr := next(t.Context(), secretToken)
		if got, err := m.Authenticate(next)(t.Context(), secretToken); got != want || !errors.Is(err, wantErr) {
			t.Errorf("got %+v, %v, want %+v, %v", got, err, want, wantErr)
		}
	}
	m.Unasked(iam.Refuse(review.AudienceMismatch, "x"))
	m.TokenCache(true)
	m.TokenCache(false)
	m.TokenCache(true)
	m.STSRequest("answered", 200, 20*time.Millisecond)
	m.STSRequest("throttled", 400, 30*time.Millisecond)
	m.EC2Request("EC2", "answered")
	m.EC2Request("IAM", "failed")
	want(t, m,
		`node_authorizer_authentications_total{code="",outcome="authenticated"} 1`,
		`node_authorizer_authentications_total{code="NotMapped",outcome="refused"} 2`,
		`node_authorizer_authentications_total{code="AudienceMismatch",outcome="refused"} 1`,
		`node_authorizer_authentications_total{code="",outcome="throttled"} 1`,
		`node_authorizer_authentications_total{code="",outcome="error"} 2`,
		`node_authorizer_authentication_duration_seconds_count{outcome="refused"} 2`,
		`node_authorizer_token_cache_total{result="hit"} 2`,
		`node_authorizer_token_cache_total{result="miss"} 1`,
		`node_authorizer_sts_requests_total{outcome="answered"} 1`,
		`node_authorizer_sts_requests_total{outcome="throttled"} 1`,
		`node_authorizer_sts_request_duration_seconds_sum{outcome="answered"} 0.02`,
		`node_authorizer_instance_requests_total{outcome="answered",service="EC2"} 1`,
		`node_authorizer_instance_requests_total{outcome="failed",service="IAM"} 1`,
	)
	for _, line := range scrape(t, m) {
		for _, name := range []string{"c2VjcmV0", "111122223333", "worker-1"} {
			if strings.Contains(line, name) {
				t.Errorf("a label has %s: %s", name, line)
			}
		}
	}
}

func TestScrapesShowTheCurrentSourcesOfMappings(t *testing.T) {
	m := observe.NewMetrics()
	var sources []observe.MappingSource
	m.WatchMappings(func() []observe.MappingSource { return sources })
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "node_authorizer_mapping") {
			t.Errorf("unexpected %s", line)
		}
	}
	sources = []observe.MappingSource{
		{Name: "File", Healthy: true, Mappings: map[iam.MappingKind]int{iam.RoleMapping: 3, iam.AccountMapping: 1}},
		{Name: "ConfigMap", Findings: []finding.Finding{
			{Code: iam.MappingSyntax, Severity: finding.Error},
			{Code: iam.MappingInvalid, Severity: finding.Error},
			{Code: iam.MappingInvalid, Severity: finding.Error},
		}},
	}
	want(t, m,
		`node_authorizer_mapping_source_healthy{source="File"} 1`,
		`node_authorizer_mapping_source_healthy{source="ConfigMap"} 0`,
		`node_authorizer_mappings{kind="role",source="File"} 3`,
		`node_authorizer_mappings{kind="user",source="File"} 0`,
		`node_authorizer_mappings{kind="account",source="File"} 1`,
		`node_authorizer_mappings{kind="role",source="ConfigMap"} 0`,
		`node_authorizer_mapping_findings{code="MappingSyntax",severity="error",source="ConfigMap"} 1`,
		`node_authorizer_mapping_findings{code="MappingInvalid",severity="error",source="ConfigMap"} 2`,
	)
	sources = nil
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "node_authorizer_mapping") {
			t.Errorf("unexpected: %s", line)
		}
	}
}

func TestLinesOfTokens(t *testing.T) {
	for _, tc := range []struct {
		rule string
		user *iam.User
		err  error
		want string // empty: none
	}{
		{"a user is not logged", aNode(), nil, ""},
		{
			"a refusal says which check failed", nil, iam.Refuse("NotMapped", "nothing maps arn:aws:iam::111122223333:role/other"),
			`"level"=0 "msg"="token refused" "type"="authenticate" "code"="NotMapped" ` +
				`"detail"="nothing maps arn:aws:iam::111122223333:role/other"`,
		},
		{
			"an error is not a refusal", nil, errors.New("asking EC2: connection refused"),
			`"level"=0 "msg"="token could not be examined" "type"="authenticate" "error"="asking EC2: connection refused"`,
		},
		{
			"throttling by AWS is not a refusal", nil, &iam.Throttled{Service: "STS", Detail: "Rate exceeded"},
			`"level"=0 "msg"="token could not be examined" "type"="authenticate" "error"="STS throttles: Rate exceeded"`,
		},
		{
			"the parts of a token that an error quotes are left out", nil,
			errors.New(`Get "https://sts.amazonaws.com/?X-Amz-Security-Token=IQoJb3Jp%2F&x-amz-signature=0a1b": ` +
				`k8s-aws-v1.c2VjcmV0 x%26X-Amz-Signature%3D0a1b`),
			`"level"=0 "msg"="token could not be examined" "type"="authenticate" ` +
				`"error"="Get \"https://sts.amazonaws.com/?X-Amz-Security-Token=…&x-amz-signature=…\": ` +
				`k8s-aws-v1.… x%26X-Amz-Signature%3D…"`,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			j := &journal{}
			r := observe.NewRefusals(j.logger(0), plenty())
			if user, err := r.Authenticate(always(tc.user, tc.err))(t.Context(), secretToken); user != tc.user || !errors.Is(err, tc.err) {
				t.Errorf("%+v, %v", user, err)
			}
			if got := strings.Join(j.drain(), "\n"); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// If refusals of one code repeat without end, other codes and errors are still logged.
func TestRefusedTokensDoNotFillTheLog(t *testing.T) {
	j := &journal{}
	left := 0
	r := observe.NewRefusals(j.logger(0), tenLines(&left))
	ask := func(err error) { _, _ = r.Authenticate(always(nil, err))(t.Context(), secretToken) }
	for range 100 {
		ask(iam.Refuse("TokenExpired", "it was signed an hour ago"))
	}
	ask(iam.Refuse("NotMapped", "nothing maps it"))
	ask(errors.New("connection refused"))
	r.Unasked(iam.Refuse(review.AudienceMismatch, "x"))
	lines := strings.Join(j.drain(), "\n")
	if strings.Count(lines, "\n") != 7 || left != 95 || !strings.Contains(lines, "NotMapped") ||
		!strings.Contains(lines, "connection refused") || !strings.Contains(lines, "AudienceMismatch") {
		t.Errorf("%d left out of\n%s", left, lines)
	}
}

func TestRefusedTokensAreNotLoggedBelowTheLevel(t *testing.T) {
	j := &journal{}
	r := observe.NewRefusals(j.logger(1), observe.RefusalOptions{Verbosity: 2, PerSecond: 100, Burst: 100})
	for _, err := range []error{iam.Refuse("NotMapped", "x"), errors.New("y")} {
		_, _ = r.Authenticate(always(nil, err))(t.Context(), secretToken)
	}
	if lines := j.drain(); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}
}
