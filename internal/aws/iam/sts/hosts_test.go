package sts_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
)

var _ iam.Hosts = (*sts.Hosts)(nil)

func newHosts(t testing.TB, partition string, extra ...v1alpha1.STSHost) *sts.Hosts {
	t.Helper()
	hosts, err := sts.NewHosts(t.Context(), partition, extra)
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

// TestRegionsAreThoseOfTheSDK compares the regions with a package of the SDK.
// UPDATE_GOLDEN=1 rewrites them.
func TestRegionsAreThoseOfTheSDK(t *testing.T) {
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "internal", "endpoints", "awsrulesfn", "partitions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sdk struct {
		Partitions []struct {
			ID      string
			Regions map[string]any
		}
	}
	if err := json.Unmarshal(text, &sdk); err != nil {
		t.Fatal(err)
	}
	partitions := map[string][]string{}
	for _, partition := range sdk.Partitions {
		partitions[partition.ID] = slices.DeleteFunc(slices.Sorted(maps.Keys(partition.Regions)),
			func(region string) bool { return strings.HasSuffix(region, "-global") })
	}
	want, err := json.MarshalIndent(partitions, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("regions.json", want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("regions.json"); err != nil || string(got) != string(want) {
		t.Errorf("regions.json does not match the SDK; run this test with UPDATE_GOLDEN=1: %v", err)
	}
}

func TestHosts(t *testing.T) {
	for _, test := range []struct {
		name, partition, host, region string // no region: not asked
	}{
		{"a region", "aws", "sts.eu-west-1.amazonaws.com", "eu-west-1"},
		{"FIPS", "aws", "sts-fips.us-east-2.amazonaws.com", "us-east-2"},
		{"dual stack", "aws", "sts.eu-west-1.api.aws", "eu-west-1"},
		{"FIPS and dual stack", "aws", "sts-fips.us-west-2.api.aws", "us-west-2"},
		{"the global host takes signatures for us-east-1 only", "aws", "sts.amazonaws.com", "us-east-1"},
		{"us-east-1 has a host of its own", "aws", "sts.us-east-1.amazonaws.com", "us-east-1"},
		{"GovCloud", "aws-us-gov", "sts.us-gov-west-1.amazonaws.com", "us-gov-west-1"},
		{"GovCloud, dual stack", "aws-us-gov", "sts.us-gov-east-1.api.aws", "us-gov-east-1"},
		{"China", "aws-cn", "sts.cn-north-1.amazonaws.com.cn", "cn-north-1"},
		{"China, dual stack", "aws-cn", "sts.cn-northwest-1.api.amazonwebservices.com.cn", "cn-northwest-1"},
		{"iso", "aws-iso", "sts.us-iso-east-1.c2s.ic.gov", "us-iso-east-1"},
		{"iso-b", "aws-iso-b", "sts.us-isob-east-1.sc2s.sgov.gov", "us-isob-east-1"},
		{"iso-e", "aws-iso-e", "sts.eu-isoe-west-1.cloud.adc-e.uk", "eu-isoe-west-1"},
		{"iso-f", "aws-iso-f", "sts.us-isof-south-1.csp.hci.ic.gov", "us-isof-south-1"},
		{"the European sovereign cloud", "aws-eusc", "sts.eusc-de-east-1.amazonaws.eu", "eusc-de-east-1"},

		{"a host of GovCloud in a commercial cluster", "aws", "sts.us-gov-west-1.amazonaws.com", ""},
		{"a host of GovCloud in a commercial cluster, dual stack", "aws", "sts.us-gov-west-1.api.aws", ""},
		{"a commercial host in GovCloud", "aws-us-gov", "sts.us-east-1.amazonaws.com", ""},
		{"the global host in GovCloud", "aws-us-gov", "sts.amazonaws.com", ""},
		{"the global host in China", "aws-cn", "sts.amazonaws.com", ""},
		{"a commercial host in China", "aws-cn", "sts.eu-west-1.amazonaws.com", ""},
		{"a host of China in a commercial cluster", "aws", "sts.cn-north-1.amazonaws.com.cn", ""},
		{"a region of China under a commercial name", "aws", "sts.cn-north-1.amazonaws.com", ""},
		{"a global host that does not exist", "aws-cn", "sts.amazonaws.com.cn", ""},
		{"no region: a bucket named sts would have this name", "aws", "sts.s3.amazonaws.com", ""},
		{"a region that does not exist", "aws", "sts.eu-moon-1.amazonaws.com", ""},
		{"another service", "aws", "ec2.eu-west-1.amazonaws.com", ""},
		{"a prefix", "aws", "x.sts.eu-west-1.amazonaws.com", ""},
		{"a suffix", "aws", "sts.eu-west-1.amazonaws.com.attacker.example", ""},
		{"a port", "aws", "sts.eu-west-1.amazonaws.com:443", ""},
		{"a dot at the end", "aws", "sts.eu-west-1.amazonaws.com.", ""},
		{"upper case", "aws", "STS.eu-west-1.amazonaws.com", ""},
		{"a letter that folds to s", "aws", "ſts.eu-west-1.amazonaws.com", ""},
		{"nothing", "aws", "", ""},
		{"a VPC endpoint that is not configured", "aws", "vpce-0a1b2c.sts.eu-west-1.vpce.amazonaws.com", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			regions, ok := newHosts(t, test.partition).Host(test.host)
			if ok != (test.region != "") || ok && !slices.Equal(regions, []string{test.region}) {
				t.Errorf("%s: %v, %v, want %q", test.host, regions, ok, test.region)
			}
		})
	}
}

func TestNoHostIsInTwoPartitions(t *testing.T) {
	seen := map[string]string{}
	for _, partition := range []string{"aws", "aws-cn", "aws-eusc", "aws-iso", "aws-iso-b", "aws-iso-e", "aws-iso-f", "aws-us-gov"} {
		hosts := newHosts(t, partition)
		for _, host := range hosts.Names() {
			if other, twice := seen[host]; twice {
				t.Errorf("%s is in %s and %s", host, other, partition)
			}
			seen[host] = partition
			if !regexp.MustCompile(`^sts(-fips)?\.`).MatchString(host) {
				t.Errorf("host %q", host)
			}
		}
		if hosts.Partition() != partition {
			t.Errorf("partition %q", hosts.Partition())
		}
	}
}

func TestExtraHosts(t *testing.T) {
	const endpoint = "vpce-0a1b2c-d3e4.sts.eu-west-1.vpce.amazonaws.com"
	hosts := newHosts(t, "aws", v1alpha1.STSHost{Host: endpoint, Region: "eu-west-1"},
		v1alpha1.STSHost{Host: "sts.eu-north-9.amazonaws.com", Region: "eu-north-9"})
	for host, want := range map[string]string{endpoint: "eu-west-1", "sts.eu-north-9.amazonaws.com": "eu-north-9"} {
		if regions, ok := hosts.Host(host); !ok || !slices.Equal(regions, []string{want}) {
			t.Errorf("%s: %v, %v", host, regions, ok)
		}
	}
	for _, test := range []struct {
		name, partition string
		extra           v1alpha1.STSHost
		want            string
	}{
		{"an unknown partition", "aws-moon", v1alpha1.STSHost{}, `AWS has no partition "aws-moon": want aws, aws-cn, aws-eusc, `},
		{"no host", "aws", v1alpha1.STSHost{Region: "eu-west-1"}, `the host "" of STS is not a DNS name`},
		{
			"a URL", "aws",
			v1alpha1.STSHost{Host: "https://" + endpoint, Region: "eu-west-1"},
			"is not a DNS name: want lower case, without scheme, port and path",
		},
		{"a port", "aws", v1alpha1.STSHost{Host: endpoint + ":443", Region: "eu-west-1"}, "is not a DNS name"},
		{"upper case", "aws", v1alpha1.STSHost{Host: strings.ToUpper(endpoint), Region: "eu-west-1"}, "is not a DNS name"},
		{"an address", "aws", v1alpha1.STSHost{Host: "169.254.169.254", Region: "eu-west-1"}, "is not a DNS name"},
		{"no region", "aws", v1alpha1.STSHost{Host: endpoint}, `the region "" of the host ` + endpoint},
		{
			"a region of another partition", "aws",
			v1alpha1.STSHost{Host: endpoint, Region: "us-gov-west-1"},
			"is in the partition aws-us-gov, not in aws",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := sts.NewHosts(t.Context(), test.partition, []v1alpha1.STSHost{test.extra}); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
