package aws

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
)

// nameFields returns the fields of templates for node names, by their placeholders: "{{.InstanceID}}.{{.Region}}.example.com".
// PrivateIP is the primary private IPv4 address, and DashedIP the same with dashes, "10-0-0-7".
//
// All fields are properties of the instance that cannot be changed by tagging or renaming it.
func (i *instance) nameFields(clusterName string) map[string]string {
	privateIP := ""
	if i.primary.IsValid() {
		privateIP = i.primary.String()
	}
	return map[string]string{
		"InstanceID": i.id, "PrivateDNSName": i.privateDNSName, "PrivateIP": privateIP,
		"DashedIP": strings.ReplaceAll(privateIP, ".", "-"), "Account": i.account, "Region": i.region, "Zone": i.zone,
		"ClusterName": clusterName,
	}
}

// namingRule makes the name of a node of its fields. The caller checks that it is valid.
type namingRule func(fields map[string]string) string

// parseNaming reads the Naming of options.
func parseNaming(text string) (namingRule, error) {
	switch text {
	case "", privateDNSName:
		return func(f map[string]string) string { return f["PrivateDNSName"] }, nil
	case instanceID:
		return func(f map[string]string) string { return f["InstanceID"] }, nil
	case resourceName:
		return inDomain, nil
	}
	if !strings.Contains(text, "{{") {
		return nil, fmt.Errorf("naming %q: want %s, %s, %s, or a template like {{.InstanceID}}", text, privateDNSName, instanceID,
			resourceName)
	}
	parsed, err := nametemplate.Parse(text, nametemplate.Placeholders()...)
	if err != nil {
		return nil, fmt.Errorf("naming %q: %w", text, err)
	}
	rule := func(f map[string]string) string { return strings.ToLower(parsed.Execute(f)) }
	if err := checkUnique(rule); err != nil {
		return nil, fmt.Errorf("naming %q: %w", text, err)
	}
	return rule, nil
}

// inDomain returns the name of an instance in a subnet with resource names: its id in
// the domain of its private DNS name
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-naming.html).
func inDomain(f map[string]string) string {
	_, domain, found := strings.Cut(f["PrivateDNSName"], ".")
	switch {
	case found:
	case f["Region"] == "us-east-1":
		domain = "ec2.internal"
	default:
		domain = f["Region"] + ".compute.internal"
	}
	return f["InstanceID"] + "." + domain
}

// checkUnique applies a template to two instances that differ in nothing but what no other instance has.
func checkUnique(rule namingRule) error {
	sample := instance{
		id: "i-0000000000000000a", privateDNSName: "ip-10-0-0-10.eu-west-1.compute.internal", primary: netip.MustParseAddr("10.0.0.10"),
		account: "111122223333", region: "eu-west-1", zone: "eu-west-1a",
	}
	other := sample
	other.id, other.privateDNSName = "i-0000000000000000b", "ip-10-0-0-11.eu-west-1.compute.internal"
	other.primary = netip.MustParseAddr("10.0.0.11")
	if rule(sample.nameFields("cluster")) == rule(other.nameFields("cluster")) {
		return errors.New("it gives two instances the same name; use .InstanceID, .PrivateDNSName, .PrivateIP or .DashedIP")
	}
	return nil
}
