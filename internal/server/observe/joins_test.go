package observe_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func attestation(outcome bootstrap.Outcome, code verdict.Code) *bootstrap.Event {
	return &bootstrap.Event{
		Attestor: "aws", Outcome: outcome, Code: code, Asked: "ip-10-0-0-7.ec2.internal",
		RemoteAddr: netip.MustParseAddr("10.0.0.7"), InstanceID: "i-0123456789abcdef0",
		Detail: "the instance runs in vpc-1", Duration: 20 * time.Millisecond,
	}
}

func TestJoinsAreCounted(t *testing.T) {
	m := observe.NewMetrics()
	m.Attested(attestation(bootstrap.Issued, "TokenIssued"))
	m.Attested(attestation(bootstrap.Refused, "WrongVPC"))
	m.Attested(attestation(bootstrap.Refused, "WrongVPC"))
	m.Decided(&controller.Event{
		Request: "csr-1", Kind: approve.Client, Outcome: approve.Approve,
		Code: "ClientCertificateApproved", Node: "worker-1", Waited: time.Second,
	})
	m.HasApprover()
	want(t, m, `node_authorizer_approver_leader 0`)
	m.Leading(true)
	m.WatchLedger(func() []*v1alpha1.NodeAttestation {
		certified := &v1alpha1.NodeAttestation{}
		certified.Status.Phase = v1alpha1.Certified
		// This machine was attested again.
		again := &v1alpha1.NodeAttestation{}
		again.Spec.TokenID, again.Status.TokenID, again.Status.Phase = "newone", "oldone", v1alpha1.Registered
		return []*v1alpha1.NodeAttestation{certified, {}, again}
	})
	want(t, m,
		`node_authorizer_attestations_total{attestor="aws",code="TokenIssued",outcome="issued"} 1`,
		`node_authorizer_attestations_total{attestor="aws",code="WrongVPC",outcome="refused"} 2`,
		`node_authorizer_attestation_duration_seconds_sum{attestor="aws",outcome="refused"} 0.04`,
		`node_authorizer_certificate_requests_total{code="ClientCertificateApproved",kind="client",outcome="approved"} 1`,
		`node_authorizer_certificate_request_duration_seconds_sum{kind="client",outcome="approved"} 1`,
		`node_authorizer_approver_leader 1`,
		`node_authorizer_ledger_entries{phase="Issued"} 2`,
		`node_authorizer_ledger_entries{phase="Certified"} 1`,
		`node_authorizer_ledger_entries{phase="Registered"} 0`,
		`node_authorizer_ledger_entries{phase="Revoked"} 0`,
	)
	for _, line := range scrape(t, m) {
		for _, name := range []string{"ip-10-0-0-7", "10.0.0.7", "i-0123456789abcdef0", "worker-1", "csr-1"} {
			if strings.Contains(line, name) {
				t.Errorf("a label has the name %s: %s", name, line)
			}
		}
	}
}

func TestReplicasWithoutAnApproverDoNotExportTheLeader(t *testing.T) {
	for _, line := range scrape(t, observe.NewMetrics()) {
		if strings.HasPrefix(line, "node_authorizer_approver_leader") {
			t.Errorf("unexpected %s", line)
		}
	}
}

func TestLinesOfJoins(t *testing.T) {
	failed := attestation(bootstrap.Failed, "BootstrapUnavailable")
	failed.Detail, failed.Err = "", errors.New("get node: connection refused")
	unnamed := attestation(bootstrap.Refused, "SignatureInvalid")
	unnamed.InstanceID = ""
	const ofTheMachine = `"node"="ip-10-0-0-7.ec2.internal" "instance"="i-0123456789abcdef0" "address"="10.0.0.7" "attestor"="aws" `
	for _, tc := range []struct {
		rule string
		log  func(*observe.Refusals)
		want string
	}{
		{
			"a join",
			func(r *observe.Refusals) {
				joined := attestation(bootstrap.Issued, "TokenIssued")
				joined.Detail = ""
				r.Attested(joined)
			},
			`"level"=0 "msg"="machine attested: token issued" ` + ofTheMachine + `"code"="TokenIssued"`,
		},
		{
			"a retry",
			func(r *observe.Refusals) { r.Attested(attestation(bootstrap.Repeated, "TokenRepeated")) },
			`"level"=0 "msg"="machine attested again: same token" ` + ofTheMachine +
				`"code"="TokenRepeated" "detail"="the instance runs in vpc-1"`,
		},
		{
			"a refusal of an unidentified machine",
			func(r *observe.Refusals) { r.Attested(unnamed) },
			`"level"=0 "msg"="machine refused" "node"="ip-10-0-0-7.ec2.internal" "address"="10.0.0.7" "attestor"="aws" ` +
				`"code"="SignatureInvalid" "detail"="the instance runs in vpc-1"`,
		},
		{
			"an error",
			func(r *observe.Refusals) { r.Attested(failed) },
			`"level"=0 "msg"="machine could not be attested" ` + ofTheMachine +
				`"code"="BootstrapUnavailable" "error"="get node: connection refused"`,
		},
		{
			"an approval",
			func(r *observe.Refusals) {
				r.Decided(&controller.Event{
					Request: "csr-1", Kind: approve.Renewal, Outcome: approve.Approve,
					Code: "RenewalApproved", Node: "worker-1", Message: "as before",
				})
			},
			`"level"=0 "msg"="certificate request approved" "node"="worker-1" "request"="csr-1" ` +
				`"kind"="renewal" "code"="RenewalApproved" "reason"="as before"`,
		},
		{
			"a denial",
			func(r *observe.Refusals) {
				r.Decided(&controller.Event{
					Request: "csr-1", Kind: approve.Client, Outcome: approve.Deny,
					Code: "WrongNodeName", Node: "worker-1", Message: "it asks for worker-2",
				})
			},
			`"level"=0 "msg"="certificate request denied" "node"="worker-1" "request"="csr-1" ` +
				`"kind"="client" "code"="WrongNodeName" "reason"="it asks for worker-2"`,
		},
		{
			"a request that could not be decided",
			func(r *observe.Refusals) {
				r.Decided(&controller.Event{Request: "csr-1", Kind: approve.Client, Err: errors.New("get secret: timeout")})
			},
			`"level"=0 "msg"="certificate request could not be decided" "request"="csr-1" ` +
				`"kind"="client" "error"="get secret: timeout"`,
		},
		{
			"a request of another signer is not logged",
			func(r *observe.Refusals) {
				r.Decided(&controller.Event{Request: "csr-1", Outcome: approve.Leave, Code: "NotOurs"})
			},
			"",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			j := &journal{}
			tc.log(observe.NewRefusals(j.logger(0), plenty()))
			if got := strings.Join(j.drain(), "\n"); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// If one address repeats its request without end, refusals of other addresses are still
// logged. Joins are not limited.
func TestRefusedMachinesDoNotFillTheLog(t *testing.T) {
	j := &journal{}
	left := 0
	r := observe.NewRefusals(j.logger(0), tenLines(&left))
	for range 100 {
		r.Attested(attestation(bootstrap.Refused, "WrongVPC"))
	}
	other := attestation(bootstrap.Refused, "WrongVPC")
	other.RemoteAddr = netip.MustParseAddr("10.0.0.8")
	r.Attested(other)
	for i := range 20 {
		joined := attestation(bootstrap.Issued, "TokenIssued")
		joined.Asked = fmt.Sprintf("worker-%d", i)
		r.Attested(joined)
	}
	lines := j.drain()
	refused, joined := 0, 0
	for _, line := range lines {
		if strings.Contains(line, `"machine refused"`) {
			refused++
		}
		if strings.Contains(line, "token issued") {
			joined++
		}
	}
	if refused != 6 || left != 95 || joined != 20 {
		t.Errorf("%d refusals and %d joins are logged, %d left out; want 6, 20 and 95", refused, joined, left)
	}
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "10.0.0.8") }) {
		t.Error("the refusal of another machine is not logged")
	}
	r.Flush()
	if lines := j.drain(); len(lines) != 1 || !strings.Contains(lines[0], `"refusals left out of the log" "count"=95`) {
		t.Errorf("got %q", lines)
	}
}
