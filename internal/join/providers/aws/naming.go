package aws

import (
	"errors"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
)

// NameFields are the fields of templates for node names:
// "{{.InstanceID}}.{{.Region}}.example.com". The name is converted to lower case, and must
// be a valid name of a node.
//
// All fields are properties of the instance that cannot be changed by tagging or renaming
// it. Two instances must never get the same name, so a template must use InstanceID,
// PrivateIP, DashedIP or PrivateDNSName.
type NameFields struct {
	// InstanceID is "i-0123456789abcdef0".
	InstanceID string
	// PrivateDNSName is "ip-10-0-0-7.eu-west-1.compute.internal".
	PrivateDNSName string
	// PrivateIP is the primary private IPv4 address, "10.0.0.7". DashedIP is the same
	// with dashes, "10-0-0-7".
	PrivateIP, DashedIP string
	// Account is "111122223333", Region "eu-west-1", Zone "eu-west-1a".
	Account, Region, Zone string
	// ClusterName is the name in the options.
	ClusterName string
}

func (i *instance) nameFields(clusterName string) NameFields {
	fields := NameFields{
		InstanceID: i.id, PrivateDNSName: i.privateDNSName, Account: i.account, Region: i.region, Zone: i.zone,
		ClusterName: clusterName,
	}
	if i.primary.IsValid() {
		fields.PrivateIP = i.primary.String()
		fields.DashedIP = strings.ReplaceAll(fields.PrivateIP, ".", "-")
	}
	return fields
}

// byName returns the fields by their placeholders.
func (f NameFields) byName() map[string]string {
	return map[string]string{
		"InstanceID": f.InstanceID, "PrivateDNSName": f.PrivateDNSName, "PrivateIP": f.PrivateIP, "DashedIP": f.DashedIP,
		"Account": f.Account, "Region": f.Region, "Zone": f.Zone, "ClusterName": f.ClusterName,
	}
}

// namingRule makes the name of a node. The caller checks that it is valid.
type namingRule func(NameFields) string

// parseNaming reads the Naming of options.
func parseNaming(text string) (namingRule, error) {
	switch text {
	case "", privateDNSName:
		return func(f NameFields) string { return f.PrivateDNSName }, nil
	case instanceID:
		return func(f NameFields) string { return f.InstanceID }, nil
	case resourceName:
		return NameFields.resourceName, nil
	}
	if !strings.Contains(text, "{{") {
		return nil, fmt.Errorf("naming %q: want %s, %s, %s, or a template like {{.InstanceID}}", text, privateDNSName, instanceID,
			resourceName)
	}
	parsed, err := nametemplate.Parse(text, nametemplate.Placeholders()...)
	if err != nil {
		return nil, fmt.Errorf("naming %q: %w", text, err)
	}
	rule := func(f NameFields) string { return strings.ToLower(parsed.Execute(f.byName())) }
	if err := checkUnique(rule); err != nil {
		return nil, fmt.Errorf("naming %q: %w", text, err)
	}
	return rule, nil
}

// resourceName returns the name of an instance in a subnet with resource names: its id in
// the domain of its private DNS name
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-naming.html).
func (f NameFields) resourceName() string {
	_, domain, found := strings.Cut(f.PrivateDNSName, ".")
	switch {
	case found:
	case f.Region == "us-east-1":
		domain = "ec2.internal"
	default:
		domain = f.Region + ".compute.internal"
	}
	return f.InstanceID + "." + domain
}

// checkUnique applies a template to two instances without common fields.
func checkUnique(rule namingRule) error {
	sample := NameFields{
		InstanceID: "i-0000000000000000a", PrivateDNSName: "ip-10-0-0-10.eu-west-1.compute.internal",
		PrivateIP: "10.0.0.10", DashedIP: "10-0-0-10",
		Account: "111122223333", Region: "eu-west-1", Zone: "eu-west-1a", ClusterName: "cluster",
	}
	other := sample
	other.InstanceID, other.PrivateDNSName = "i-0000000000000000b", "ip-10-0-0-11.eu-west-1.compute.internal"
	other.PrivateIP, other.DashedIP = "10.0.0.11", "10-0-0-11"
	if rule(sample) == rule(other) {
		return errors.New("it gives two instances the same name; use .InstanceID, .PrivateDNSName, .PrivateIP or .DashedIP")
	}
	return nil
}
