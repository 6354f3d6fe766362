package observe

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// AttestationOutcome is what became of a machine's request.
type AttestationOutcome string

// The outcomes of attestations.
const (
	TokenIssued      AttestationOutcome = "issued"
	TokenRepeated    AttestationOutcome = "repeated"
	MachineRefused   AttestationOutcome = "refused"
	NotAttestedError AttestationOutcome = "error"
)

// Attestation is a machine's request for a token and its answer. It has neither
// the token nor the evidence.
type Attestation struct {
	// Attestor is what checks evidence.
	Attestor string
	Outcome  AttestationOutcome
	Code     verdict.Code
	// Node is the name that was asked for, RemoteAddr where from.
	Node       string
	RemoteAddr string
	// InstanceID is the machine, as far as its evidence was good.
	InstanceID string
	// Detail is what was found; Err is why nothing could be.
	Detail   string
	Err      error
	Duration time.Duration
}

// CertificateOutcome is what became of a CertificateSigningRequest.
type CertificateOutcome string

// The outcomes of certificate requests.
const (
	CertificateApproved   CertificateOutcome = "approved"
	CertificateDenied     CertificateOutcome = "denied"
	CertificateLeft       CertificateOutcome = "left"
	CertificateUnanswered CertificateOutcome = "error"
)

// CertificateRequest is a decision about a CertificateSigningRequest.
type CertificateRequest struct {
	// Name is that of the object, Kind one of client, renewal and serving.
	Name, Kind string
	Outcome    CertificateOutcome
	Code       verdict.Code
	// Node is whom it is about, as far as that is known.
	Node    string
	Message string
	Err     error
	// Waited is for how long the request had existed.
	Waited time.Duration
}

// joins are the metrics of machines that join.
type joins struct {
	attestations    *metrics.CounterVec
	attestSeconds   *metrics.HistogramVec
	certificates    *metrics.CounterVec
	certificateTime *metrics.HistogramVec
	leader          *metrics.Gauge
}

func newJoins() joins {
	return joins{
		attestations: counters("attestations_total", "Machines' requests for tokens by attestor, outcome and code of the reason.",
			"attestor", "outcome", "code"),
		attestSeconds: histograms("attestation_duration_seconds", "Time from a machine's request to its answer.", requestBuckets(), "attestor", "outcome"),
		certificates: counters("certificate_requests_total", "Decisions about CertificateSigningRequests by kind, outcome and code of the reason.",
			"kind", "outcome", "code"),
		certificateTime: histograms("certificate_request_duration_seconds", "Time from the creation of a CertificateSigningRequest to a decision about it.",
			decisionBuckets(), "kind", "outcome"),
		leader: gauge("approver_leader", "1 when this replica decides about CertificateSigningRequests."),
	}
}

// decisionBuckets go from seconds, which is how exactly the API server tells when
// something was created, to what a kubelet waits for its certificate.
func decisionBuckets() []float64 { return []float64{1, 2, 3, 5, 10, 30, 60, 300, 900} }

func (j *joins) all() []metrics.Registerable {
	return []metrics.Registerable{j.attestations, j.attestSeconds, j.certificates, j.certificateTime}
}

// Attested counts a machine's request.
func (m *Metrics) Attested(a *Attestation) {
	m.staleAnswer(EndpointBootstrap, a.Err)
	m.attestations.WithLabelValues(a.Attestor, string(a.Outcome), string(a.Code)).Inc()
	m.attestSeconds.WithLabelValues(a.Attestor, string(a.Outcome)).Observe(a.Duration.Seconds())
}

// CertificateRequested counts a decision about a CertificateSigningRequest.
func (m *Metrics) CertificateRequested(c *CertificateRequest) {
	m.certificates.WithLabelValues(c.Kind, string(c.Outcome), string(c.Code)).Inc()
	m.certificateTime.WithLabelValues(c.Kind, string(c.Outcome)).Observe(c.Waited.Seconds())
}

// HasApprover exports whether this replica leads. It is called once.
func (m *Metrics) HasApprover() {
	m.registry.MustRegister(m.leader)
	m.Leading(false)
}

// Leading tells whether this replica decides about CertificateSigningRequests.
func (m *Metrics) Leading(leads bool) { m.leader.Set(one(leads)) }

// WatchLedger exports the number of ledger entries in each phase, as it is when
// metrics are asked for. It may be called once.
func (m *Metrics) WatchLedger(entries func() []*v1alpha1.NodeAttestation) {
	m.registry.CustomMustRegister(&ledgerCollector{
		entries: entries,
		count:   metrics.NewDesc(prefix+"ledger_entries", "Entries of the ledger by phase.", []string{"phase"}, nil, metrics.ALPHA, ""),
	})
}

type ledgerCollector struct {
	metrics.BaseStableCollector
	entries func() []*v1alpha1.NodeAttestation
	count   *metrics.Desc
}

// DescribeWithStability implements metrics.StableCollector.
func (c *ledgerCollector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- c.count }

// CollectWithStability implements metrics.StableCollector.
func (c *ledgerCollector) CollectWithStability(ch chan<- metrics.Metric) {
	entries := map[v1alpha1.Phase]int{v1alpha1.Issued: 0, v1alpha1.Certified: 0, v1alpha1.Registered: 0, v1alpha1.Revoked: 0}
	for _, entry := range c.entries() {
		entries[entry.Phase()]++
	}
	for phase, n := range entries {
		ch <- metrics.NewLazyConstMetric(c.count, metrics.GaugeValue, float64(n), string(phase))
	}
}
