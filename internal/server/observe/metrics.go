package observe

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/component-base/metrics"
)

// prefix begins the name of every metric.
const prefix = "node_authorizer_"

// Metrics are the metrics of one server. They are safe for concurrent use.
type Metrics struct {
	registry metrics.KubeRegistry

	decisions        *metrics.CounterVec
	requests         *metrics.CounterVec
	duration         *metrics.HistogramVec
	inFlight         *metrics.GaugeVec
	bodyErrors       *metrics.CounterVec
	waits            *metrics.CounterVec
	waitSeconds      *metrics.HistogramVec
	accessReviews    *metrics.Counter
	tooOld           *metrics.CounterVec
	notLogged        *metrics.Counter
	certificateUntil *metrics.GaugeVec
	certificateFails *metrics.Counter
	build            *metrics.GaugeVec
	compared         *metrics.CounterVec
	differences      *metrics.CounterVec
	scopes           *scopeRefusals
	joins
	authentications
}

// NewMetrics returns metrics with all counts at zero.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: metrics.NewKubeRegistry(),
		decisions: counters("decisions_total",
			"Decisions by type, outcome, code of the reason and resource.", "type", "decision", "code", "resource"),
		requests: counters("requests_total", "HTTP requests by endpoint and status code.", "endpoint", "status"),
		duration: histograms("request_duration_seconds",
			"Time from the arrival of a request to its answer, including waits.", requestBuckets(), "endpoint"),
		inFlight: gauges("requests_in_flight", "Requests that are being answered.", "endpoint"),
		bodyErrors: counters("request_body_errors_total",
			"Requests without a valid body, by the mistake.", "endpoint", "reason"),
		waits: counters("freshness_waits_total",
			"Requests that waited because a lag of the watch could explain a refusal, by outcome.", "type", "outcome"),
		waitSeconds: histograms("freshness_wait_seconds", "How long these requests waited.", waitBuckets(), "type", "outcome"),
		accessReviews: counter("access_review_errors_total",
			"SubjectAccessReviews for audiences and signers that the cluster did not answer."),
		tooOld: counters("stale_answers_total",
			"Answers that were errors because the state of the cluster was too old.", "endpoint"),
		notLogged: counter("refusals_not_logged_total", "Refusals that were not logged because of the rate limit."),
		certificateUntil: gauges("certificate_expiration_timestamp_seconds",
			"When the certificate in a file expires, in seconds since 1970.", "file"),
		certificateFails: counter("certificate_reload_errors_total", "Changed certificate files that could not be loaded."),
		build: gauges("build_info", "The running version; always 1.",
			"version", "commit", "go_version", "kubernetes_version"),
		compared: counters("observed_requests_total",
			"Requests whose in-tree decision was compared with what this server would decide.", "type"),
		differences: counters("observed_differences_total",
			"Observed requests that this server would decide in another way, or could not decide.", "type", "difference"),
		scopes:          newScopeRefusals(),
		joins:           newJoins(),
		authentications: newAuthentications(),
	}
	m.registry.MustRegister(m.joins.all()...)
	m.registry.MustRegister(m.authentications.all()...)
	m.registry.MustRegister(
		m.decisions, m.requests, m.duration, m.inFlight, m.bodyErrors, m.waits, m.waitSeconds,
		m.accessReviews, m.tooOld, m.notLogged, m.certificateUntil, m.certificateFails, m.build, m.compared, m.differences,
		m.scopes.counts,
	)
	m.registry.RawMustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler serves the metrics in Prometheus' text form.
func (m *Metrics) Handler() http.Handler {
	return metrics.HandlerFor(m.registry, metrics.HandlerOpts{ErrorHandling: metrics.ContinueOnError})
}

// Build describes the running version.
type Build struct {
	Version string
	Commit  string
	// KubernetesVersion is the minor whose rules are applied: "1.37".
	KubernetesVersion string
}

// Build exports the running version.
func (m *Metrics) Build(b Build) {
	m.build.Reset()
	m.build.WithLabelValues(b.Version, b.Commit, runtime.Version(), b.KubernetesVersion).Set(1)
}

// Waited counts a wait of package freshness.
func (m *Metrics) Waited(kind, outcome string, took time.Duration) {
	m.waits.WithLabelValues(kind, outcome).Inc()
	m.waitSeconds.WithLabelValues(kind, outcome).Observe(took.Seconds())
}

// BodyError returns a function that counts requests without a valid body to an endpoint.
func (m *Metrics) BodyError(endpoint string) func(reason string) {
	return func(reason string) { m.bodyErrors.WithLabelValues(endpoint, reason).Inc() }
}

// AccessReviewFailed counts a SubjectAccessReview that was not answered.
func (m *Metrics) AccessReviewFailed() { m.accessReviews.Inc() }

// TooOld counts an answer that was an error because a copy is too old.
func (m *Metrics) TooOld(endpoint string) { m.tooOld.WithLabelValues(endpoint).Inc() }

// RefusalsNotLogged counts refusals that the limit kept out of the log.
func (m *Metrics) RefusalsNotLogged(n int) { m.notLogged.Add(float64(n)) }

// CertificateExpires sets when the first of the certificates in a file expires.
func (m *Metrics) CertificateExpires(file string, at time.Time) {
	m.certificateUntil.WithLabelValues(file).Set(float64(at.Unix()))
}

// CertificateReloadFailed counts a changed file that could not be loaded.
func (m *Metrics) CertificateReloadFailed() { m.certificateFails.Inc() }

// requestBuckets begin at the time of a single decision and end at the longest timeout of a
// webhook.
func requestBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

func waitBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
}

// series is a metric that is read at each scrape.
type series struct {
	desc *metrics.Desc
	of   metrics.ValueType
}

func scrapedGauge(name, help string, labels ...string) *series {
	return &series{metrics.NewDesc(prefix+name, help, labels, nil, metrics.ALPHA, ""), metrics.GaugeValue}
}

func scrapedCounter(name, help string, labels ...string) *series {
	return &series{metrics.NewDesc(prefix+name, help, labels, nil, metrics.ALPHA, ""), metrics.CounterValue}
}

// sendFunc sends a value to a scrape.
type sendFunc func(to *series, value float64, labels ...string)

// scraped exports series. Read sends their values at each scrape.
type scraped struct {
	metrics.BaseStableCollector
	series []*series
	read   func(send sendFunc)
}

func (m *Metrics) scrape(read func(send sendFunc), all ...*series) {
	m.registry.CustomMustRegister(&scraped{series: all, read: read})
}

// DescribeWithStability implements metrics.StableCollector.
func (c *scraped) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, s := range c.series {
		ch <- s.desc
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *scraped) CollectWithStability(ch chan<- metrics.Metric) {
	c.read(func(to *series, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(to.desc, to.of, value, labels...)
	})
}

func one(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

func counter(name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Name: prefix + name, Help: help})
}

func counters(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Name: prefix + name, Help: help}, labels)
}

func gauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Name: prefix + name, Help: help})
}

func gauges(name, help string, labels ...string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{Name: prefix + name, Help: help}, labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
}

// HTTP counts and times the requests to an endpoint.
func (m *Metrics) HTTP(endpoint string, next http.Handler) http.Handler {
	inFlight := m.inFlight.WithLabelValues(endpoint)
	duration := m.duration.WithLabelValues(endpoint)
	ok := m.requests.WithLabelValues(endpoint, strconv.Itoa(http.StatusOK))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		inFlight.Inc()
		recorder := &statusRecorder{ResponseWriter: w}
		defer func() {
			inFlight.Dec()
			duration.Observe(time.Since(begin).Seconds())
			if status := recorder.status; status == http.StatusOK {
				ok.Inc()
			} else {
				m.requests.WithLabelValues(endpoint, statusLabel(status)).Inc()
			}
		}()
		next.ServeHTTP(recorder, r)
	})
}

// statusLabel returns "none" for a request without a response, because its handler
// panicked.
func statusLabel(status int) string {
	if status == 0 {
		return "none"
	}
	return strconv.Itoa(status)
}

// statusRecorder records the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *statusRecorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *statusRecorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
