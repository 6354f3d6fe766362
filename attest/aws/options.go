package aws

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"

	"github.com/node-authorizer/node-authorizer/ec2instances"
)

// Options are settings of an [Attestor].
type Options struct {
	// ClusterName is the cluster whose tag an instance must have. It must be given.
	ClusterName string
	// ClusterTag is the tag's key, "KubernetesCluster" if it is empty. The tag
	// kubernetes.io/cluster/NAME with the value owned or shared is as good.
	ClusterTag string
	// Accounts, Regions and VPCs are those whose instances may join; empty lists
	// mean those of the machine that the server runs on (see [Own]).
	Accounts, Regions, VPCs []string
	// InstanceProfiles are names or ARNs of instance profiles of which an instance
	// must have one; empty for any, or none.
	InstanceProfiles []string
	// Naming is how a machine's node is named: PrivateDNSName (also if empty),
	// InstanceID, ResourceName, or a template; see [NameFields].
	Naming string
	// SkipSignature takes documents without looking at their signature, which is
	// to believe every machine what it says of itself.
	SkipSignature bool
	// SkipSourceAddress takes requests from any address.
	SkipSourceAddress bool
	// CallerIdentity asks for a signed request to STS.
	CallerIdentity CallerIdentity
	// Certificates are more certificates to verify documents with; see
	// [identitydocument.NewVerifier].
	Certificates []*x509.Certificate
	// EC2 is asked about instances; nil for a client of this attestor's own, with the
	// settings and credentials of the environment. Who asks EC2 elsewhere in the same
	// program gives the same client to both.
	EC2 *ec2instances.Client
	// HTTP carries the machines' requests to STS; nil for http.DefaultTransport.
	HTTP http.RoundTripper
}

// CallerIdentity are settings of the check that a machine has the credentials of
// its instance's role.
type CallerIdentity struct {
	Required bool
	// Endpoint is the URL of STS if it is not the public one of the instance's
	// region: "https://vpce-0a1b2c.sts.eu-west-1.vpce.amazonaws.com".
	Endpoint string
	// Challenger makes the challenges that are signed. It must be there if the
	// check is required.
	Challenger Challenger
}

// Challenger makes challenges, and knows its own; see [attest.Challenges].
type Challenger interface {
	Challenge() string
	Check(challenge string) error
}

// DefaultClusterTag is the key of the tag that names an instance's cluster.
const DefaultClusterTag = "KubernetesCluster"

// The forms of what options name.
var (
	accountForm  = regexp.MustCompile(`^[0-9]{12}$`)
	regionForm   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,61}[a-z0-9]$`)
	vpcForm      = regexp.MustCompile(`^vpc-([0-9a-f]{8}|[0-9a-f]{17})$`)
	instanceForm = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)
)

// complete checks options, and adds what the server's own machine says.
func (o Options) complete(ctx context.Context) (Options, error) {
	if o.ClusterTag == "" {
		o.ClusterTag = DefaultClusterTag
	}
	if err := o.Validate(); err != nil {
		return o, err
	}
	if len(o.Accounts) > 0 && len(o.Regions) > 0 && len(o.VPCs) > 0 {
		return o, nil
	}
	account, region, vpc, err := Own(ctx)
	if err != nil {
		return o, fmt.Errorf("finding this server's own account, region and VPC, which are used where none are configured: %w", err)
	}
	o.Accounts = orElse(o.Accounts, account)
	o.Regions = orElse(o.Regions, region)
	o.VPCs = orElse(o.VPCs, vpc)
	return o, nil
}

func orElse(configured []string, own string) []string {
	if len(configured) > 0 {
		return configured
	}
	return []string{own}
}

// Validate says everything that is wrong with options and that no answer of AWS can
// heal. It asks nobody.
func (o Options) Validate() error {
	var problems []error
	if o.ClusterName == "" {
		problems = append(problems, errors.New("the name of the cluster is missing: without it, every machine of the VPC could join"))
	}
	for _, list := range []struct {
		what   string
		values []string
		form   *regexp.Regexp
	}{
		{"account", o.Accounts, accountForm},
		{"region", o.Regions, regionForm},
		{"VPC", o.VPCs, vpcForm},
		{"instance profile", o.InstanceProfiles, profileForm},
	} {
		for _, value := range list.values {
			if !list.form.MatchString(value) {
				problems = append(problems, fmt.Errorf("%s %q: want %s", list.what, value, list.form))
			}
		}
	}
	if o.CallerIdentity.Required && o.CallerIdentity.Challenger == nil {
		problems = append(problems, errors.New("the identity of callers is asked for, and nothing makes challenges"))
	}
	if o.CallerIdentity.Endpoint != "" {
		if _, err := parseEndpoint(o.CallerIdentity.Endpoint); err != nil {
			problems = append(problems, err)
		}
	}
	if _, err := parseNaming(o.Naming); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// parseEndpoint reads the URL of an endpoint: a scheme and a host, no more. Who
// answers there decides whose credentials a machine has, so that it is https, or an
// address of this machine's own.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) ||
		u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("endpoint %q of STS: want a URL like https://sts.eu-west-1.amazonaws.com", text)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}, nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
