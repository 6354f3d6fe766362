package sts

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// The regions of each partition. The AWS SDK has them but does not export them; a test
// compares. The SDK resolves a host name for any region: it assigns a region that does
// not exist to the partition aws.
//
//go:embed regions.json
var regionFiles embed.FS

// globalRegion is the pseudo region of the global host sts.amazonaws.com in the endpoint
// rules, and globalScope the region in the signatures of requests to it
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp_region-endpoints.html).
const (
	commercial   = "aws"
	globalRegion = "aws-global"
	globalScope  = "us-east-1"
)

// Hosts are the hosts of STS that receive requests. They do not change.
type Hosts struct {
	partition string
	regions   map[string][]string // by host
}

// NewHosts returns the regional hosts of a partition ("aws", "aws-us-gov",
// "aws-cn", …) including FIPS and dual-stack variants, the global host of aws, and the
// extra hosts, which are not in the endpoint rules, such as VPC endpoints or the host of a region that is newer than this program.
func NewHosts(ctx context.Context, partition string, extra []v1alpha1.STSHost) (*Hosts, error) {
	partitions, err := readPartitions()
	if err != nil {
		return nil, err
	}
	regions, ok := partitions[partition]
	if !ok {
		return nil, fmt.Errorf("AWS has no partition %q: want %s", partition, strings.Join(slices.Sorted(maps.Keys(partitions)), ", "))
	}
	h := &Hosts{partition: partition, regions: map[string][]string{}}
	for _, region := range regions {
		for _, variant := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			if err := h.addRegional(ctx, region, variant[0], variant[1]); err != nil {
				return nil, err
			}
		}
	}
	if partition == commercial {
		if err := h.resolve(ctx, sts.EndpointParameters{Region: new(globalRegion)}, globalScope); err != nil {
			return nil, err
		}
	}
	for _, host := range extra {
		if err := h.addExtra(host, partitions); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Host returns the regions whose signatures a host accepts; ok is false for a host that
// is not among these. Names are compared exactly: they are in lower case, without a port
// and without a trailing dot.
func (h *Hosts) Host(host string) (regions []string, ok bool) {
	regions, ok = h.regions[host]
	return slices.Clone(regions), ok
}

// Partition returns the partition of the hosts.
func (h *Hosts) Partition() string { return h.partition }

// Names returns all hosts, sorted.
func (h *Hosts) Names() []string { return slices.Sorted(maps.Keys(h.regions)) }

func readPartitions() (map[string][]string, error) {
	text, err := regionFiles.ReadFile("regions.json")
	if err != nil {
		return nil, err
	}
	var partitions map[string][]string
	if err := json.Unmarshal(text, &partitions); err != nil {
		return nil, fmt.Errorf("read the regions of AWS: %w", err)
	}
	return partitions, nil
}

func (h *Hosts) addRegional(ctx context.Context, region string, fips, dualStack bool) error {
	return h.resolve(ctx, sts.EndpointParameters{Region: &region, UseFIPS: &fips, UseDualStack: &dualStack}, region)
}

// resolve adds the host that the endpoint rules have for parameters.
func (h *Hosts) resolve(ctx context.Context, parameters sts.EndpointParameters, scope string) error {
	endpoint, err := sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, parameters)
	if err != nil {
		return fmt.Errorf("find the host of STS in %s: %w", *parameters.Region, err)
	}
	if endpoint.URI.Scheme != "https" || endpoint.URI.Port() != "" {
		return fmt.Errorf("find the host of STS in %s: the SDK has %s", *parameters.Region, endpoint.URI.String())
	}
	h.add(endpoint.URI.Host, scope)
	return nil
}

var (
	dnsName    = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	regionName = regexp.MustCompile(`^[a-z]{2,6}(-[a-z]+)+-[0-9]+$`)
)

func (h *Hosts) addExtra(extra v1alpha1.STSHost, partitions map[string][]string) error {
	switch {
	case len(extra.Host) > 253 || !dnsName.MatchString(extra.Host):
		return fmt.Errorf("the host %q of STS is not a DNS name: want lower case, without scheme, port and path", extra.Host)
	case !regionName.MatchString(extra.Region):
		return fmt.Errorf("the region %q of the host %s of STS is invalid: want a region such as eu-west-1", extra.Region, extra.Host)
	}
	for partition, regions := range partitions {
		if partition != h.partition && slices.Contains(regions, extra.Region) {
			return fmt.Errorf("the region %s of the host %s of STS is in the partition %s, not in %s", extra.Region, extra.Host, partition,
				h.partition)
		}
	}
	h.add(extra.Host, extra.Region)
	return nil
}

func (h *Hosts) add(host, region string) {
	if !slices.Contains(h.regions[host], region) {
		h.regions[host] = append(h.regions[host], region)
	}
}
