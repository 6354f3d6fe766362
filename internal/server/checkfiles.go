package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/apiserver"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/oidc"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/tpm"
)

// FileProblem is something wrong with a file that a configuration names. Messages contain nothing of
// keys and tokens.
type FileProblem struct {
	v1alpha1.Problem
	// Warning is true if the server works with the file.
	Warning bool
	// Missing is true if the file, or one that it names, does not exist.
	Missing bool
}

// CheckFiles reads the files that a valid configuration names, with the functions that the server
// reads them with, and returns what is wrong with them at a time. Without a warning, the server does
// not start, does not become ready, or refuses the callers that the file is for.
func CheckFiles(config *v1alpha1.ServerConfiguration, now time.Time) []FileProblem {
	c := &fileCheck{now: now, found: CheckExpressions(config)}
	if needsCluster(config) {
		c.kubeconfig(clusterKubeconfig, config.Cluster.Kubeconfig)
	}
	w, b := &config.Webhook, &config.Bootstrap
	if w.Address != "" {
		c.endpoint(&certificateFiles{
			section: "webhook", certificate: w.CertificateFile, key: w.KeyFile, authorities: w.ClientCAFile,
		})
	}
	if b.Address != "" {
		c.endpoint(&certificateFiles{
			section: "bootstrap", certificate: b.CertificateFile, key: b.KeyFile, authorities: b.ClientCAFile,
		})
		if path := b.ClusterAPI.Kubeconfig; path != "" {
			c.kubeconfig(managementKubeconfig, path)
		}
		switch b.Attestor {
		case v1alpha1.AWSAttestor:
			c.certificates("bootstrap.aws.certificatesFile", b.AWS.CertificatesFile)
		case v1alpha1.KeyAttestor:
			c.certificates("bootstrap.key.certificateAuthorityFile", b.Key.CertificateAuthorityFile)
		case v1alpha1.OIDCAttestor:
			c.certificates("bootstrap.oidc.certificateAuthorityFile", b.OIDC.CertificateAuthorityFile)
			c.keys("bootstrap.oidc.keysFile", b.OIDC.KeysFile)
		case v1alpha1.TPMAttestor:
			c.tpmAuthorities(b.TPM.CertificateAuthorities)
		case v1alpha1.ExecAttestor:
			c.program(&b.Exec)
		}
	}
	if decides(config) && config.Authorization.Mode == v1alpha1.ChainMode {
		c.chain(config.Authorization.ConfigFile)
	}
	if w.Answers(v1alpha1.ServeAuthentication) && slices.Contains(config.IAM.Sources, v1alpha1.FileSource) {
		c.mappings(&config.IAM)
	}
	return c.found
}

// CheckExpressions returns what is wrong with the expressions of a valid configuration, which needs no files.
func CheckExpressions(config *v1alpha1.ServerConfiguration) (found []FileProblem) {
	b := &config.Bootstrap
	switch {
	case b.Address == "":
		return nil
	case b.Attestor == v1alpha1.TPMAttestor && b.TPM.NodeName != "":
		if _, err := tpm.ParseName(b.TPM.NodeName); err != nil {
			found = append(found, FileProblem{Problem: v1alpha1.Problem{Field: "bootstrap.tpm.nodeName", Message: err.Error()}})
		}
		return found
	case b.Attestor != v1alpha1.OIDCAttestor:
		return nil
	}
	options := oidc.NewOptions(&b.OIDC)
	for _, wrong := range options.Check() {
		found = append(found, FileProblem{Problem: v1alpha1.Problem{Field: "bootstrap.oidc." + wrong.Field, Message: wrong.Err.Error()}})
	}
	return found
}

// tpmAuthorities checks the authorities of TPMs.
func (c *fileCheck) tpmAuthorities(path string) {
	if path == "" {
		return
	}
	files, err := authorityFiles(path)
	if err != nil {
		c.unusable(tpmAuthorities, shortError{err, "read " + tpmAuthorities + ": "})
	}
	for _, file := range files {
		c.certificates(tpmAuthorities, file)
	}
}

func (c *fileCheck) keys(field, path string) {
	if path == "" {
		return
	}
	if _, err := oidc.ReadKeys(path); err != nil {
		c.unusable(field, err)
	}
}

// fileCheck collects what is wrong with files.
type fileCheck struct {
	now   time.Time
	found []FileProblem
	// exposed are the files with secrets that were already reported.
	exposed []string
}

func (c *fileCheck) wrong(field, format string, args ...any) {
	c.found = append(c.found, FileProblem{Problem: v1alpha1.Problem{Field: field, Message: fmt.Sprintf(format, args...)}})
}

func (c *fileCheck) warn(field, format string, args ...any) {
	c.wrong(field, format, args...)
	c.found[len(c.found)-1].Warning = true
}

// unusable reports why a file cannot be used.
func (c *fileCheck) unusable(field string, err error) {
	c.wrong(field, "%v", err)
	c.found[len(c.found)-1].Missing = isMissing(err)
}

// isMissing also recognizes errors of libraries that wrap only the text.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), syscall.ENOENT.Error())
}

// read returns nil if a file cannot be read.
func (c *fileCheck) read(field, path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		c.unusable(field, err)
		return nil
	}
	return append([]byte{}, text...)
}

// secret warns if everybody on the host may read or replace a file with a secret.
func (c *fileCheck) secret(field, path string) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || slices.Contains(c.exposed, path) {
		return
	}
	if mode := info.Mode().Perm(); mode&0o006 != 0 {
		c.exposed = append(c.exposed, path)
		c.warn(field, "%s has the mode %04o, so that every user of the host can read or replace it: "+
			"take these permissions away with chmod o-rw", path, mode)
	}
}

func (c *fileCheck) kubeconfig(field, path string) {
	if path == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		c.warn(field, "empty, and this is not a pod: the service account that the server uses is not checked")
		return
	}
	found, err := apiserver.Inspect(field, path)
	if err != nil {
		c.unusable(field, shortError{err, "read " + field + ": "})
		return
	}
	if path == "" {
		return // the kubelet keeps the files of a pod's service account
	}
	for _, file := range found.SecretFiles {
		c.secret(field, file)
	}
	if found.ClientCertificate != nil {
		c.validity(field, path+": the client certificate", found.ClientCertificate)
	}
	if len(found.Authorities) > 0 {
		c.authorities(field, path+": the certificate authority", found.Authorities, x509.ExtKeyUsageServerAuth)
	}
}

// shortError is an error without the beginning of its text.
type shortError struct {
	error
	prefix string
}

func (e shortError) Error() string { return strings.TrimPrefix(e.error.Error(), e.prefix) }
func (e shortError) Unwrap() error { return e.error }

func (c *fileCheck) chain(path string) {
	const field = "authorization.configFile"
	_, err := chain.Load(path)
	var problems chain.Problems
	switch {
	case err == nil:
	case errors.As(err, &problems):
		for _, p := range problems {
			c.unusable(field, fmt.Errorf("%s: %w", path, p))
		}
	default:
		c.unusable(field, err)
	}
}

func (c *fileCheck) mappings(config *v1alpha1.IAM) {
	const field = "iam.file"
	text, err := mappings.ReadFile(config.File)
	if err != nil {
		c.unusable(field, err)
		return
	}
	parsed, findings := iam.ParseFile(text, config.File)
	rules := iam.Rules{Partition: config.Partition, RolePaths: iam.PathPolicy(config.RolePaths), Reserved: reserved(config)}
	findings = append(findings, parsed.Check(rules)...)
	finding.Sort(findings)
	for _, f := range findings {
		if !f.Severity.AtLeast(finding.Warning) {
			continue
		}
		c.warn(field, "%v: %s [%s]; %s", f.Place, f.Message, f.Code, f.Remedy)
	}
	if len(parsed.Broken) > 0 {
		c.wrong(field, "%s: the server cannot read %s, and does not become ready: correct the file",
			config.File, strings.Join(parsed.Broken, ", "))
	}
}

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
