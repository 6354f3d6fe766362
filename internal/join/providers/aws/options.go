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

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
)

// Options are settings of an [Attestor].
type Options struct {
	// ClusterName is the cluster whose tag an instance must have. Required.
	ClusterName string
	// ClusterTag is the tag's key. The default is "KubernetesCluster". The tag
	// kubernetes.io/cluster/NAME with the value owned or shared is an alternative.
	ClusterTag string
	// Accounts, Regions and VPCs say where instances must be to join. By default, instances
	// must be where the server's own instance is (see [Own]).
	Accounts, Regions, VPCs []string
	// InstanceProfiles are names or ARNs of instance profiles. An instance must have one
	// of them. If there are none, this is not checked.
	InstanceProfiles []string
	// Naming is the rule for names of nodes: PrivateDNSName (also if empty), InstanceID,
	// ResourceName, or a template with the placeholders of [nametemplate.Placeholders].
	Naming string
	// SkipSignature accepts documents without checking their signature. Every machine can
	// then claim to be any instance.
	SkipSignature bool
	// SkipSourceAddress accepts requests from any address.
	SkipSourceAddress bool
	// CallerIdentity is the check with a signed request to STS.
	CallerIdentity CallerIdentity
	// Certificates are additional certificates for documents; see
	// [identitydocument.NewVerifier].
	Certificates []*x509.Certificate
	// EC2 is the client of EC2. The default is a new one with the settings and
	// credentials of the environment. Share it with other users of EC2 in the program.
	EC2 *ec2instances.Client
	// HTTP carries the machines' requests to STS. The default is http.DefaultTransport.
	HTTP http.RoundTripper
}

// CallerIdentity are settings of the check that a machine has the credentials of its
// instance's role.
type CallerIdentity struct {
	Required bool
	// Endpoint is the URL of STS: "https://vpce-0a1b2c.sts.eu-west-1.vpce.amazonaws.com".
	// The default is the public one of the instance's region.
	Endpoint string
	// Challenger makes the challenges that are signed. It is required if the check is.
	Challenger Challenger
}

// Challenger makes and verifies challenges; see [attest.Challenges].
type Challenger interface {
	Challenge() string
	Check(challenge string) error
}

// DefaultClusterTag is the key of the tag that names an instance's cluster.
const DefaultClusterTag = "KubernetesCluster"

// The forms of values in options.
var (
	accountForm  = regexp.MustCompile(`^[0-9]{12}$`)
	regionForm   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,61}[a-z0-9]$`)
	vpcForm      = regexp.MustCompile(`^vpc-([0-9a-f]{8}|[0-9a-f]{17})$`)
	instanceForm = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)
)

// complete checks options, and sets defaults from the server's own instance.
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
		return o, fmt.Errorf("get the defaults for account, region and VPC from this server's own instance: %w", err)
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

// Validate returns all problems of options that do not depend on AWS. It sends no
// requests.
func (o Options) Validate() error {
	var problems []error
	if o.ClusterName == "" {
		problems = append(problems, errors.New("the name of the cluster is missing: without it, every machine in the VPC could join"))
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
		problems = append(problems, errors.New("the identity of callers is required, and no challenger is configured"))
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

// parseEndpoint reads the URL of an endpoint: a scheme and a host. The answers of the
// endpoint decide whose credentials a machine has, so it must be https, or a loopback
// address.
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
