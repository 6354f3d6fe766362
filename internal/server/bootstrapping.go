package server

import (
	"errors"
	"net/http"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
)

// newBootstrap returns the service that gives tokens to machines.
func newBootstrap(j *join) *bootstrap.Service {
	b := &j.config.Bootstrap
	return bootstrap.New(bootstrap.Options{
		Attestor: j.attestor, Ledger: j.ledger, Known: j.known, Client: j.client,
		TokenTTL:           b.Token.TTL.Duration,
		Reattestation:      bootstrap.Policy(b.Reattestation),
		VerifyRegistration: b.VerifyRegistration,
		Quarantines:        j.contained.quarantined(),
		Limits: bootstrap.Limits{
			PerSecond: float64(b.RateLimit.PerSecond), Burst: int(b.RateLimit.Burst),
			PerSourcePerSecond: float64(b.RateLimit.PerSource.PerSecond), PerSourceBurst: int(b.RateLimit.PerSource.Burst),
		},
		Timeout:  b.RequestTimeout.Duration,
		Observer: j.observer,
	})
}

func (j *join) httpOptions(certificates *certificates) bootstrap.HTTPOptions {
	b := &j.config.Bootstrap
	options := bootstrap.HTTPOptions{Version: j.version, MaxBodyBytes: b.MaxBodyBytes}
	if b.ClientCAFile != "" {
		options.Certificates = &machineCertificates{certificates, b.ClientCommonName}
	}
	if j.attestor.challenger != nil {
		options.Challenger = j.attestor.challenger
	}
	return options
}

// machineCertificates decides which machines may request tokens, by their client certificates.
type machineCertificates struct {
	certificates *certificates
	// name is the required common name.
	name string
}

// Check implements bootstrap.ClientCertificate.
func (m *machineCertificates) Check(r *http.Request) error {
	name, err := m.certificates.caller(r)
	switch invalid := new(invalidCertificateError); {
	case errors.As(err, &invalid):
		return attest.Refuse(bootstrap.ClientCertificateInvalid, "%v", invalid)
	case err != nil:
		return attest.Refuse(bootstrap.ClientCertificateRequired, "%v", err)
	case name != m.name:
		return attest.Refuse(bootstrap.ClientNameNotAllowed, "the client certificate is of %.253q, want %q", name, m.name)
	}
	return nil
}
