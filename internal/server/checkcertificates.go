package server

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// expiryWarning is how long before the end of a certificate it is reported, as by the alert
// NodeAuthorizerCertificateExpires.
const expiryWarning = 7 * 24 * time.Hour

// endpoint checks the files of a listener.
func (c *fileCheck) endpoint(files *certificateFiles) {
	certificate := c.read(files.field("certificateFile"), files.certificate)
	key := c.read(files.field("keyFile"), files.key)
	if key != nil {
		c.secret(files.field("keyFile"), files.key)
	}
	if certificate != nil && key != nil {
		c.pair(files, certificate, key)
	}
	if files.authorities == "" {
		return
	}
	field := files.field("clientCAFile")
	text := c.read(field, files.authorities)
	if text == nil {
		return
	}
	authorities, err := parseAuthorities(text)
	if err != nil {
		c.wrong(field, "%s: %v", files.authorities, err)
		return
	}
	c.authorities(field, files.authorities+": certificate", authorities, x509.ExtKeyUsageClientAuth)
}

// pair checks a certificate and its key.
func (c *fileCheck) pair(files *certificateFiles, certificate, key []byte) {
	field := files.field("certificateFile")
	pair, err := parsePair(certificate, key)
	if err != nil {
		c.wrong(field, "%s with %s %s: %v", files.certificate, files.field("keyFile"), files.key, err)
		return
	}
	c.validity(field, files.certificate+": the certificate", pair.Leaf)
	if len(pair.Leaf.DNSNames)+len(pair.Leaf.IPAddresses) == 0 {
		c.wrong(field, "%s: the certificate has no DNS name and no IP address as subject alternative name, "+
			"so that its callers refuse it: issue one with the names that they use", files.certificate)
	}
	if !hasUsage(pair.Leaf, x509.ExtKeyUsageServerAuth) {
		c.wrong(field, "%s: the extended key usage of the certificate is not for servers, so that its callers refuse it: "+
			"issue one with the usage serverAuth", files.certificate)
	}
}

func hasUsage(certificate *x509.Certificate, usage x509.ExtKeyUsage) bool {
	return len(certificate.ExtKeyUsage)+len(certificate.UnknownExtKeyUsage) == 0 ||
		slices.Contains(certificate.ExtKeyUsage, usage) || slices.Contains(certificate.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// validity checks the dates of a certificate.
func (c *fileCheck) validity(field, what string, certificate *x509.Certificate) {
	if problem := c.dates(certificate); problem != "" {
		c.wrong(field, "%s %s", what, problem)
		return
	}
	c.expiresSoon(field, what, certificate)
}

func (c *fileCheck) expiresSoon(field, what string, certificate *x509.Certificate) {
	if certificate.NotAfter.Sub(c.now) < expiryWarning {
		c.warn(field, "%s expires at %s: renew it", what, day(certificate.NotAfter))
	}
}

// dates returns why a certificate is not valid now; empty if it is.
func (c *fileCheck) dates(certificate *x509.Certificate) string {
	switch {
	case c.now.After(certificate.NotAfter):
		return fmt.Sprintf("expired at %s: renew it", day(certificate.NotAfter))
	case c.now.Before(certificate.NotBefore):
		return fmt.Sprintf("is not valid before %s: correct the clock of this machine, or issue another one", day(certificate.NotBefore))
	}
	return ""
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// authorities checks certificates that verify other certificates, with a usage. It is an error only
// if no authority can: unusable ones do no harm.
func (c *fileCheck) authorities(field, what string, authorities []*x509.Certificate, usage x509.ExtKeyUsage) {
	verifies := func(a *x509.Certificate) bool { return c.dates(a) == "" && (signs(a) || hasUsage(a, usage)) }
	usable := slices.ContainsFunc(authorities, verifies)
	for i, authority := range authorities {
		name := fmt.Sprintf("%s %d (%.80q)", what, i+1, authority.Subject.CommonName)
		problem := c.dates(authority)
		if problem == "" && !signs(authority) {
			problem = "is not a certificate authority: give the certificate of the one that signs"
			if verifies(authority) {
				problem = "is not a certificate authority, so that it is accepted itself, and no certificate that it signed: " +
					"give the certificate of the one that signs"
			}
		}
		switch {
		case problem == "":
			c.expiresSoon(field, name, authority)
		case usable:
			c.warn(field, "%s %s", name, problem)
		default:
			c.wrong(field, "%s %s", name, problem)
		}
	}
}

// signs reports whether certificates that a certificate signed are accepted.
func signs(a *x509.Certificate) bool {
	authority := a.Version != 3 || a.BasicConstraintsValid
	return authority && (!a.BasicConstraintsValid || a.IsCA) && (a.KeyUsage == 0 || a.KeyUsage&x509.KeyUsageCertSign != 0)
}

// certificates checks certificates that verify evidence, or a server that is asked about it. Their dates do not count.
func (c *fileCheck) certificates(field, path string) {
	if path == "" {
		return
	}
	if text := c.read(field, path); text != nil {
		if _, err := parseAuthorities(text); err != nil {
			c.wrong(field, "%s: %v", path, err)
		}
	}
}
