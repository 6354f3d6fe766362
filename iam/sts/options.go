package sts

import (
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/calleridentity"
)

// What [Options] mean where they are zero.
const (
	DefaultTimeout     = 10 * time.Second
	DefaultMaxInFlight = 100
	DefaultPerSecond   = 200
	DefaultBurst       = 400
	DefaultCacheTTL    = time.Minute
	DefaultCacheSize   = 10000
)

// Options are settings of a [Verifier].
type Options struct {
	// ClusterID is the cluster that tokens must be signed for. It must be given.
	ClusterID string
	// Hosts are those that are asked. They must be given; see [NewHosts].
	Hosts iam.Hosts
	// Transport carries the requests; nil for one that uses the proxy of the
	// environment, as HTTPS_PROXY has it.
	Transport http.RoundTripper
	// Timeout bounds one request, and before that the wait until it may be sent.
	Timeout time.Duration
	// MaxInFlight is how many requests may be under way. Those that are too many
	// wait. A quarter is for those who were recognised lately, as [Verifier.Recognised]
	// tells. Beside them there may be one to each host that has not answered lately.
	MaxInFlight int
	// PerSecond is how many requests may be sent in a second, and Burst how many at
	// once after a rest. Those that are too many are turned away. A quarter of the burst,
	// rounded down, is for those who were recognised lately; they come first.
	PerSecond float64
	Burst     int
	// CacheTTL is how long an answer is used for the same token, if the token lives
	// that long; below zero answers are not kept.
	CacheTTL time.Duration
	// CacheSize is how many answers are kept, and how many access keys of those who were
	// recognised.
	CacheSize int
	// Now is the time; nil for that of the system.
	Now func() time.Time
	// Observe is told what happens; it may be nil.
	Observe Observer
}

// Observer is told what a [Verifier] does. It is called by many goroutines.
type Observer interface {
	// STSRequest is about one request: what came of it, with which HTTP status, 0 for
	// none, and after which time.
	STSRequest(outcome Outcome, status int, took time.Duration)
	// TokenCache tells whether the answer about a token was known.
	TokenCache(hit bool)
}

// Outcome is what came of a request to STS. It is the value of a metric's label.
type Outcome string

// All outcomes.
const (
	// Answered: STS said whose the token is.
	Answered Outcome = "answered"
	// Refused: STS does not take the token.
	Refused Outcome = "refused"
	// Throttled: STS had too many requests.
	Throttled Outcome = "throttled"
	// Failed: there was no answer, or none of STS's.
	Failed Outcome = "failed"
	// Limited: the request was not sent, because of the limits in [Options].
	Limited Outcome = "limited"
	// Abandoned: nobody waited for the answer any more.
	Abandoned Outcome = "abandoned"
)

type unobserved struct{}

func (unobserved) STSRequest(Outcome, int, time.Duration) {}
func (unobserved) TokenCache(bool)                        {}

// complete checks options and gives those that are zero their defaults.
func (o Options) complete() (Options, error) {
	if err := iam.CheckClusterID(o.ClusterID); err != nil {
		return Options{}, err
	}
	if o.Hosts == nil {
		return Options{}, errors.New("verifying tokens: no hosts of STS are given")
	}
	setDefault(&o.Timeout, DefaultTimeout)
	setDefault(&o.MaxInFlight, DefaultMaxInFlight)
	setDefault(&o.PerSecond, DefaultPerSecond)
	setDefault(&o.Burst, DefaultBurst)
	setDefault(&o.CacheTTL, DefaultCacheTTL)
	setDefault(&o.CacheSize, DefaultCacheSize)
	if o.Transport == nil {
		o.Transport = newTransport(o.MaxInFlight)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = unobserved{}
	}
	if o.Timeout < 0 || o.MaxInFlight < 0 || o.PerSecond < 0 || o.Burst < 0 || o.CacheSize < 0 {
		return Options{}, errors.New("verifying tokens: a limit is below zero")
	}
	return o, nil
}

func setDefault[T int | float64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// newTransport returns one that keeps as many connections as may be in use.
func newTransport(connections int) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: calleridentity.MaxAnswer, DisableCompression: true, ForceAttemptHTTP2: true,
	}
}
