package aws_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

func TestNamesOfNodes(t *testing.T) {
	s := newFixture(t)
	at := func(address string) []fakeaws.Interface {
		return []fakeaws.Interface{{Private: []netip.Addr{netip.MustParseAddr(address)}}}
	}
	for _, test := range []struct {
		name, naming string
		instance     fakeaws.Instance
		want         string
	}{
		{"without a rule", "", fakeaws.Instance{Interfaces: at("10.3.0.1")}, "ip-10-3-0-1.eu-west-1.compute.internal"},
		{"by private DNS name", "PrivateDNSName", fakeaws.Instance{Interfaces: at("10.3.0.2")}, "ip-10-3-0-2.eu-west-1.compute.internal"},
		{"in us-east-1", "PrivateDNSName", fakeaws.Instance{Region: "us-east-1", Interfaces: at("10.3.0.3")}, "ip-10-3-0-3.ec2.internal"},
		{"by private DNS name in upper case", "", fakeaws.Instance{PrivateDNSName: "IP-10-3-0-4.Corp.Example"}, "ip-10-3-0-4.corp.example"},
		{"by instance id", "InstanceID", fakeaws.Instance{ID: "i-00000000000000a05"}, "i-00000000000000a05"},
		{"by resource name", "ResourceName", fakeaws.Instance{ID: "i-00000000000000a06"}, "i-00000000000000a06.eu-west-1.compute.internal"},
		{
			"by resource name in us-east-1", "ResourceName",
			fakeaws.Instance{ID: "i-00000000000000a07", Region: "us-east-1"},
			"i-00000000000000a07.ec2.internal",
		},
		{
			"by resource name in a subnet with such names", "ResourceName",
			fakeaws.Instance{ID: "i-00000000000000a08", PrivateDNSName: "i-00000000000000a08.eu-west-1.compute.internal"},
			"i-00000000000000a08.eu-west-1.compute.internal",
		},
		{
			"by a template", "{{.ClusterName}}-{{.DashedIP}}.{{.Zone}}.example",
			fakeaws.Instance{Interfaces: at("10.3.0.9")},
			"blue-10-3-0-9.eu-west-1a.example",
		},
		{"by a template in upper case", "NODE-{{.InstanceID}}", fakeaws.Instance{ID: "i-00000000000000a0a"}, "node-i-00000000000000a0a"},
		{
			"by id, account and region", `n-{{.InstanceID}}.{{.Account}}.{{.Region}}`,
			fakeaws.Instance{ID: "i-00000000000000a0b"},
			"n-i-00000000000000a0b.111122223333.eu-west-1",
		},
		{"by the address", `{{.PrivateIP}}.example`, fakeaws.Instance{Interfaces: at("10.3.0.12")}, "10.3.0.12.example"},
	} {
		t.Run(test.name, func(t *testing.T) {
			instance := s.launch(func(i *fakeaws.Instance) {
				tags := i.Tags
				*i = test.instance
				i.Tags = tags
			})
			a := s.attestor(t, func(o *aws.Options) {
				o.Naming, o.Regions = test.naming, []string{"eu-west-1", "us-east-1"}
			})
			identity, err := a.Attest(t.Context(), s.request(t, instance))
			if err != nil {
				t.Fatal(err)
			}
			if identity.NodeName != test.want {
				t.Errorf("node name %q, want %q", identity.NodeName, test.want)
			}
			if !slices.Contains(identity.Names, test.want) || !slices.Contains(identity.Names, strings.ToLower(instance.PrivateDNSName)) {
				t.Errorf("names for certificates %q", identity.Names)
			}
		})
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	s := newFixture(t)
	for _, test := range []struct {
		name   string
		change func(*aws.Options)
		want   string
	}{
		{"no cluster", func(o *aws.Options) { o.ClusterName = "" }, "the name of the cluster is missing"},
		{"an account with hyphens", func(o *aws.Options) { o.Accounts = []string{"1111-2222-3333"} }, `account "1111-2222-3333"`},
		{"a zone for a region", func(o *aws.Options) { o.Regions = []string{"EU-WEST-1"} }, `region "EU-WEST-1"`},
		{"a VPC by name", func(o *aws.Options) { o.VPCs = []string{"main"} }, `VPC "main"`},
		{
			"the ARN of a role",
			func(o *aws.Options) { o.InstanceProfiles = []string{"arn:aws:iam::111122223333:role/nodes"} },
			`instance profile "arn:aws:iam::111122223333:role/nodes"`,
		},
		{"an unknown naming rule", func(o *aws.Options) { o.Naming = "Hostname" }, `naming "Hostname"`},
		{"a template that does not parse", func(o *aws.Options) { o.Naming = "{{.InstanceID" }, "has no end"},
		{"a template with an unknown field", func(o *aws.Options) { o.Naming = "{{.Tags}}" }, "Tags"},
		{
			"a template that gives all machines one name", func(o *aws.Options) { o.Naming = "node-{{.Zone}}" },
			"two instances the same name",
		},
		{"no challenger", func(o *aws.Options) { o.CallerIdentity.Required = true }, "no challenger is configured"},
		{
			"an endpoint with a path", func(o *aws.Options) { o.CallerIdentity.Endpoint = "https://sts.example.com/x" },
			`endpoint "https://sts.example.com/x"`,
		},
		{
			"a remote endpoint without TLS", func(o *aws.Options) { o.CallerIdentity.Endpoint = "http://sts.example.com" },
			`endpoint "http://sts.example.com"`,
		},
		{
			"the endpoint localhost without TLS",
			func(o *aws.Options) { o.CallerIdentity.Endpoint = "http://localhost:8080" }, `endpoint "http://localhost:8080"`,
		},
		{
			"an endpoint that is not a URL", func(o *aws.Options) { o.CallerIdentity.Endpoint = "sts.example.com" },
			`endpoint "sts.example.com"`,
		},
	} {
		options := s.options
		test.change(&options)
		_, err := aws.New(t.Context(), options)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestDefaultsAreThoseOfTheServersInstance(t *testing.T) {
	s := newFixture(t)
	server := s.launch(func(i *fakeaws.Instance) { i.Region, i.VPC = "eu-north-1", "vpc-0ffffffffffffffff" })
	open := func(o *aws.Options) { o.Accounts, o.Regions, o.VPCs = nil, nil, nil }

	options := s.options
	open(&options)
	_, err := aws.New(t.Context(), options)
	couldNot(t, err, "get the defaults for account, region and VPC from this server's own instance")

	metadata, err := s.Metadata(server.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	a := s.attestor(t, open)
	beside := s.launch(func(i *fakeaws.Instance) { i.Region, i.VPC = "eu-north-1", "vpc-0ffffffffffffffff" })
	if _, err := a.Attest(t.Context(), s.request(t, beside)); err != nil {
		t.Errorf("a machine in the same VPC: %v", err)
	}
	_, err = a.Attest(t.Context(), s.request(t, s.launch(nil)))
	refused(t, err, aws.WrongRegion)
	elsewhere := s.launch(func(i *fakeaws.Instance) { i.Region = "eu-north-1" })
	_, err = a.Attest(t.Context(), s.request(t, elsewhere))
	refused(t, err, aws.WrongVPC)
}
