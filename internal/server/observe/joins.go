package observe

import (
	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
)

// certificateOutcome returns the label value for the decision about a
// CertificateSigningRequest.
func certificateOutcome(event *controller.Event) string {
	switch {
	case event.Err != nil:
		return "error"
	case event.Outcome == approve.Approve:
		return "approved"
	case event.Outcome == approve.Deny:
		return "denied"
	}
	return "left"
}

// joins holds the metrics of machines that join.
type joins struct {
	attestations    *metrics.CounterVec
	attestSeconds   *metrics.HistogramVec
	certificates    *metrics.CounterVec
	certificateTime *metrics.HistogramVec
	leader          *metrics.Gauge
}

func newJoins() joins {
	return joins{
		attestations: counters("attestations_total",
			"Machines' requests for tokens by attestor, outcome and code of the reason.", "attestor", "outcome", "code"),
		attestSeconds: histograms("attestation_duration_seconds",
			"Time from a machine's request to its answer.", requestBuckets(), "attestor", "outcome"),
		certificates: counters("certificate_requests_total",
			"Decisions about CertificateSigningRequests by kind, outcome and code of the reason.", "kind", "outcome", "code"),
		certificateTime: histograms("certificate_request_duration_seconds",
			"Time from the creation of a CertificateSigningRequest to a decision about it.",
			decisionBuckets(), "kind", "outcome"),
		leader: gauge("approver_leader", "1 if this replica decides about CertificateSigningRequests."),
	}
}

// decisionBuckets begin at one second, which is the precision of creation timestamps, and
// end at the time that a kubelet waits for its certificate.
func decisionBuckets() []float64 { return []float64{1, 2, 3, 5, 10, 30, 60, 300, 900} }

func (j *joins) all() []metrics.Registerable {
	return []metrics.Registerable{j.attestations, j.attestSeconds, j.certificates, j.certificateTime}
}

// Attested counts a machine's request.
func (m *Metrics) Attested(event *bootstrap.Event) {
	m.staleAnswer(EndpointBootstrap, event.Err)
	m.attestations.WithLabelValues(event.Attestor, string(event.Outcome), string(event.Code)).Inc()
	m.attestSeconds.WithLabelValues(event.Attestor, string(event.Outcome)).Observe(event.Duration.Seconds())
}

// Decided counts a decision about a CertificateSigningRequest.
func (m *Metrics) Decided(event *controller.Event) {
	kind, outcome := event.Kind.String(), certificateOutcome(event)
	m.certificates.WithLabelValues(kind, outcome, string(event.Code)).Inc()
	m.certificateTime.WithLabelValues(kind, outcome).Observe(event.Waited.Seconds())
}

// HasApprover registers the metric of the leader. It must not be called twice.
func (m *Metrics) HasApprover() {
	m.registry.MustRegister(m.leader)
	m.Leading(false)
}

// Leading sets whether this replica decides about CertificateSigningRequests.
func (m *Metrics) Leading(leads bool) { m.leader.Set(one(leads)) }

// WatchLedger exports the current number of ledger entries in each phase at each scrape. It
// must not be called twice.
func (m *Metrics) WatchLedger(entries func() []*v1alpha1.NodeAttestation) {
	count := scrapedGauge("ledger_entries", "Entries of the ledger by phase.", "phase")
	m.scrape(func(send sendFunc) {
		phases := map[v1alpha1.Phase]int{v1alpha1.Issued: 0, v1alpha1.Certified: 0, v1alpha1.Registered: 0, v1alpha1.Revoked: 0}
		for _, entry := range entries() {
			phases[entry.Phase()]++
		}
		for phase, n := range phases {
			send(count, float64(n), string(phase))
		}
	}, count)
}
