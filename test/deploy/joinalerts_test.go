package deploy

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// fires reports whether an alert's expression has a result half an hour into a history.
func fires(t *testing.T, alert, history string) bool {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 100_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	t.Cleanup(func() { _ = engine.Close() })
	query, err := engine.NewInstantQuery(t.Context(), readHistory(t, history), nil, expressionOf(t, alert),
		time.Unix(0, 0).Add(30*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return len(vector) > 0
}

func expressionOf(t *testing.T, alert string) string {
	t.Helper()
	for _, group := range ruleGroups(t) {
		for _, rule := range group.Rules {
			if rule.Alert == alert {
				return rule.Expr
			}
		}
	}
	t.Fatalf("there is no alert %s", alert)
	return ""
}

func TestJoinAlertsFire(t *testing.T) {
	refused := `node_authorizer_attestations_total{job="joins",instance="a",attestor="aws",outcome="refused",code="WrongSourceAddress"} `
	denied := `node_authorizer_certificate_requests_total{job="joins",instance="a",kind="client",outcome="denied",code="TokenAlreadyUsed"} `
	leader := func(instance, values string) string {
		return `node_authorizer_approver_leader{job="joins",instance="` + instance + `"} ` + values + "\n"
	}
	for name, c := range map[string]struct {
		alert, history string
		want           bool
	}{
		"the first replay of all":         {"NodeAuthorizerEvidenceRefused", refused + "_x28 1 1 1", true},
		"another replay":                  {"NodeAuthorizerEvidenceRefused", refused + "1x27 2 2 2", true},
		"a replay of an hour ago":         {"NodeAuthorizerEvidenceRefused", refused + "1x30", false},
		"the first denied request of all": {"NodeAuthorizerCertificateRequestDenied", denied + "_x28 1 1 1", true},
		"another denied request":          {"NodeAuthorizerCertificateRequestDenied", denied + "1x27 2 2 2", true},
		"a denied request of an hour ago": {"NodeAuthorizerCertificateRequestDenied", denied + "1x30", false},
		"one of two leads":                {"NodeAuthorizerNoApprover", leader("a", "0x30") + leader("b", "1x30"), false},
		"none of two leads":               {"NodeAuthorizerNoApprover", leader("a", "0x30") + leader("b", "0x30"), true},
		"the services have gone":          {"NodeAuthorizerBootstrapGone", leader("a", "1x10"), true},
		"the services are there":          {"NodeAuthorizerBootstrapGone", leader("a", "1x30"), false},
		"there was never a service":       {"NodeAuthorizerBootstrapGone", `node_authorizer_build_info{job="webhooks"} 1x30`, false},
		"a token that nobody uses": {
			"NodeAuthorizerTokensUnused", `node_authorizer_ledger_entries{job="joins",instance="a",phase="Issued"} 1x30`,
			true,
		},
		"machines that come and are ready": {
			"NodeAuthorizerTokensUnused",
			`node_authorizer_ledger_entries{job="joins",instance="a",phase="Issued"} 0 5 0 7 0x26`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fires(t, c.alert, c.history); got != c.want {
				t.Errorf("%s fires: %v", c.alert, got)
			}
		})
	}
}
