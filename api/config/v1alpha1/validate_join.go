package v1alpha1

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
)

// Limits of reasonable values for machines that join.
const (
	minEvidenceBytes   = 1 << 10
	maxEvidenceBytes   = 1 << 20
	minTokenTTL        = 10 * time.Second
	maxTokenTTL        = 24 * time.Hour
	maxTokenAge        = 10 * time.Minute
	maxRequestTimeout  = 10 * time.Minute
	maxCertificateWait = 24 * time.Hour
	minElection        = 100 * time.Millisecond
	maxElection        = 10 * time.Minute
)

func (v *validation) bootstrap(b *Bootstrap) {
	if b.Address == "" {
		if b.Attestor != "" {
			v.wrong("bootstrap.address", `required with bootstrap.attestor: write host:port, for example ":10443", or remove the attestor`)
		}
		return
	}
	v.address("bootstrap.address", b.Address)
	v.required("bootstrap.certificateFile", b.CertificateFile, "the path of the server's certificate")
	v.required("bootstrap.keyFile", b.KeyFile, "the path of the server's key")
	if b.ClientCAFile != "" {
		v.required("bootstrap.clientCommonName", b.ClientCommonName,
			"the common name of the certificates of machines, or remove bootstrap.clientCAFile")
	}
	v.duration("bootstrap.certificateWait", b.CertificateWait, 0, maxCertificateWait)
	v.duration("bootstrap.requestTimeout", b.RequestTimeout, time.Second, maxRequestTimeout)
	v.number("bootstrap.maxBodyBytes", b.MaxBodyBytes, minEvidenceBytes, maxEvidenceBytes)
	oneOf(v, "bootstrap.reattestation", b.Reattestation, NeverReattest, ReattestNodeAbsent, ReattestNewerEvidence, AlwaysReattest)
	v.duration("bootstrap.token.ttl", b.Token.TTL, minTokenTTL, maxTokenTTL)
	v.number("bootstrap.rateLimit.perSecond", int64(b.RateLimit.PerSecond), 1, maxPerSecond)
	v.number("bootstrap.rateLimit.burst", int64(b.RateLimit.Burst), 1, maxPerSecond)
	v.number("bootstrap.rateLimit.perSource.perSecond", int64(b.RateLimit.PerSource.PerSecond), 1, maxPerSecond)
	v.number("bootstrap.rateLimit.perSource.burst", int64(b.RateLimit.PerSource.Burst), 1, maxPerSecond)
	v.oidcValues(&b.OIDC)
	v.tpmValues(&b.TPM)
	v.approval(b)
	v.execValues(&b.Exec)
	v.clusterAPI(b)
	v.attestor(b)
}

func (v *validation) attestor(b *Bootstrap) {
	oneOf(v, "bootstrap.attestor", b.Attestor, AWSAttestor, OIDCAttestor, TPMAttestor, KeyAttestor, ExecAttestor, AlwaysAllowAttestor)
	switch {
	case b.Attestor == AWSAttestor:
		v.aws(&b.AWS)
	case b.Attestor == OIDCAttestor:
		v.oidc(b)
	case b.Attestor == KeyAttestor:
		v.key(b)
	case b.Attestor == TPMAttestor:
		v.tpm(b)
	case b.Attestor == ExecAttestor:
		v.exec(b)
	case b.Attestor == AlwaysAllowAttestor && !b.AcceptAlwaysAllow:
		v.wrong("bootstrap.acceptAlwaysAllow",
			"required with bootstrap.attestor: alwaysallow, which gives a token to every caller that can connect: set it "+
				"to true to accept that, or choose another attestor")
	}
}

// oidcValues checks each value alone.
func (v *validation) oidcValues(o *OIDC) {
	if o.Preset != "" {
		oneOf(v, "bootstrap.oidc.preset", o.Preset, GooglePreset)
	}
	v.list("bootstrap.oidc.google.projects", o.Google.Projects, isGoogleProject, "the id of a project such as shop-prod-1")
	v.list("bootstrap.oidc.google.zones", o.Google.Zones, isGoogleZone, "a zone such as europe-west1-b")
	v.list("bootstrap.oidc.audiences", o.Audiences, nil, "an audience of the issuer's tokens")
	v.duration("bootstrap.oidc.maxAge", o.MaxAge, time.Second, maxTokenAge)
}

// oidc checks everything but the expressions, which the server compiles.
func (v *validation) oidc(b *Bootstrap) {
	o := &b.OIDC
	v.tokenAudience(o)
	for i := range o.Conditions {
		v.required(elementPath("bootstrap.oidc.conditions", i)+".expression", o.Conditions[i].Expression,
			"a CEL expression over claims and request")
	}
	if o.Preset == GooglePreset {
		if len(o.Google.Projects) == 0 {
			v.wrong("bootstrap.oidc.google.projects", "required with the preset Google: the projects whose instances may join")
		}
		for _, set := range []struct{ field, value string }{
			{"issuerURL", o.IssuerURL}, {"nodeName", o.NodeName}, {"instanceID", o.InstanceID},
		} {
			if set.value != "" {
				v.wrong("bootstrap.oidc."+set.field, "the preset Google sets it: remove one of both")
			}
		}
	} else {
		v.issuer(o)
	}
	if b.Reattestation == ReattestNewerEvidence {
		v.alwaysNewer(b.Attestor)
	}
}

// issuer checks what a preset would set.
func (v *validation) issuer(o *OIDC) {
	if len(o.Google.Projects)+len(o.Google.Zones) > 0 {
		v.wrong("bootstrap.oidc.google", "has no effect without bootstrap.oidc.preset: Google")
	}
	u, err := url.Parse(o.IssuerURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		v.wrong("bootstrap.oidc.issuerURL", "want the claim iss of the tokens, a URL such as https://issuer.example.com%s",
			given(o.IssuerURL))
	}
	v.required("bootstrap.oidc.nodeName", o.NodeName, "a CEL expression for the name of the node, such as claims.machine.name")
	v.required("bootstrap.oidc.instanceID", o.InstanceID,
		"a CEL expression for a permanent identity of the machine, such as claims.machine.id")
	if len(o.Conditions) == 0 {
		v.wrong("bootstrap.oidc.conditions",
			"required: without one, every machine to which the issuer gives tokens could join; write which may")
	}
}

// maxSharedTokenAge is the maximum age of a token that others than the machine may have read.
const maxSharedTokenAge = 5 * time.Minute

var isClusterID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`).MatchString

func (v *validation) tokenAudience(o *OIDC) {
	switch {
	case (o.ClusterID == "") == (len(o.Audiences) == 0):
		v.wrong("bootstrap.oidc.clusterID",
			"want it if machines choose the audience of their tokens, and bootstrap.oidc.audiences otherwise: set one of both")
	case o.ClusterID != "" && !isClusterID(o.ClusterID):
		v.wrong("bootstrap.oidc.clusterID", "want up to 63 letters, digits, dots, dashes and underscores%s", given(o.ClusterID))
	case o.ClusterID == "" && o.MaxAge.Duration > maxSharedTokenAge:
		v.wrong("bootstrap.oidc.maxAge", "want %v at most with bootstrap.oidc.audiences, because others may have read the token, got %v",
			maxSharedTokenAge, o.MaxAge.Duration)
	}
}

// The forms of names in Google Cloud (https://cloud.google.com/resource-manager/docs/creating-managing-projects,
// https://cloud.google.com/compute/docs/regions-zones).
var (
	isGoogleProject = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$`).MatchString
	isGoogleZone    = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$`).MatchString
)

func (v *validation) aws(a *AWS) {
	v.required("bootstrap.aws.clusterName", a.ClusterName, "the name of the cluster, which is in a tag of its instances")
	v.required("bootstrap.aws.clusterTag", a.ClusterTag, "the key of the tag that holds the cluster's name")
	v.list("bootstrap.aws.accounts", a.Accounts, regexp.MustCompile(`^[0-9]{12}$`).MatchString,
		`an account of 12 digits, in quotes: "123456789012"`)
	v.list("bootstrap.aws.regions", a.Regions, isRegion, "a region such as eu-west-1")
	v.vpcs("bootstrap.aws.vpcs", a.VPCs)
	v.list("bootstrap.aws.instanceProfiles", a.InstanceProfiles, nil, "the name or ARN of an instance profile")
	v.naming(a.Naming)
	if a.CallerIdentity.Endpoint != "" {
		v.url("bootstrap.aws.callerIdentity.endpoint", a.CallerIdentity.Endpoint)
		if !a.CallerIdentity.Required {
			v.wrong("bootstrap.aws.callerIdentity.endpoint",
				"has no effect with bootstrap.aws.callerIdentity.required: false: remove it, or require the caller identity")
		}
	}
}

// naming accepts the predefined rules and templates.
func (v *validation) naming(rule string) {
	const field = "bootstrap.aws.naming"
	if slices.Contains([]string{PrivateDNSNaming, InstanceIDNaming, ResourceNameNaming}, rule) {
		return
	}
	if !strings.Contains(rule, "{{") {
		v.wrong(field, "want PrivateDNSName, InstanceID, ResourceName or a template such as {{.InstanceID}}%s", given(rule))
	} else if _, err := nametemplate.Parse(rule, nametemplate.Placeholders()...); err != nil {
		v.wrong(field, "%s is not a template: %s", quoted(rule), err)
	}
}

// url accepts https, and http to a loopback address.
func (v *validation) url(field, value string) {
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && (parsed.Scheme != "http" || !isLoopback(parsed.Hostname())) {
		v.wrong(field, "want a URL such as https://sts.eu-west-1.amazonaws.com%s", given(value))
	}
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

func (v *validation) approver(a *Approver) {
	if !a.Enabled {
		return
	}
	oneOf(v, "approver.unattestedNodes", a.UnattestedNodes, DenyUnattested, LeaveUnattested, ApproveUnattested)
	oneOf(v, "approver.servingAddresses", a.ServingAddresses, LedgerAddresses, LedgerAndNodeAddresses)
	v.servingCertificates(a.ServingCertificates)
	e := &a.LeaderElection
	v.required("approver.leaderElection.namespace", e.Namespace, "the namespace of the lease")
	v.required("approver.leaderElection.name", e.Name, "the name of the lease")
	v.duration("approver.leaderElection.retryPeriod", e.RetryPeriod, minElection, maxElection)
	// A try may begin later than planned by up to a fifth of the period.
	if least := e.RetryPeriod.Duration * 6 / 5; e.RenewDeadline.Duration <= least {
		v.wrong("approver.leaderElection.renewDeadline", "want more than 1.2 times retryPeriod, %v, got %v", least,
			e.RenewDeadline.Duration)
	}
	if e.LeaseDuration.Duration <= e.RenewDeadline.Duration || e.LeaseDuration.Duration > maxElection {
		v.wrong("approver.leaderElection.leaseDuration", "want more than renewDeadline, %v, and up to %v, got %v",
			e.RenewDeadline.Duration, maxElection, e.LeaseDuration.Duration)
	}
}
