package aws

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// instance is an instance as EC2 describes it.
type instance struct {
	id, account, region, zone, vpc string
	state                          types.InstanceStateName
	started                        time.Time
	profile                        string // the ARN of the instance profile
	tags                           map[string]string
	// privateDNSName is the name of the primary address or of the instance, depending on
	// its subnet. It can be empty.
	privateDNSName string
	// primary is the primary private IPv4 address, if it has one.
	primary netip.Addr
	// private are the private and the IPv6 addresses of all interfaces, names the DNS
	// names of the private ones. Both are sorted.
	private []netip.Addr
	names   []string
	// sources are the addresses that the instance itself sends from: the first of each
	// interface, and the IPv6 addresses. Other private addresses can belong to its pods.
	sources []netip.Addr
}

// ended reports whether the instance is terminated or shutting down.
func (i *instance) ended() bool {
	return i.state == types.InstanceStateNameTerminated || i.state == types.InstanceStateNameShuttingDown
}

func readInstance(from *types.Instance, account, region string) *instance {
	i := &instance{
		id: aws.ToString(from.InstanceId), account: account, region: region, vpc: aws.ToString(from.VpcId),
		started: aws.ToTime(from.LaunchTime), privateDNSName: strings.ToLower(aws.ToString(from.PrivateDnsName)),
		tags: map[string]string{},
	}
	if from.State != nil {
		i.state = from.State.Name
	}
	if from.Placement != nil {
		i.zone = aws.ToString(from.Placement.AvailabilityZone)
	}
	if from.IamInstanceProfile != nil {
		i.profile = aws.ToString(from.IamInstanceProfile.Arn)
	}
	for _, tag := range from.Tags {
		i.tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	i.primary = parseOwn(from.PrivateIpAddress)
	i.readNetwork(from)
	return i
}

// readNetwork collects the addresses of all interfaces and their names.
func (i *instance) readNetwork(from *types.Instance) {
	sources, privateAddresses, names := []netip.Addr{i.primary}, []netip.Addr(nil), []string{i.privateDNSName}
	for n := range from.NetworkInterfaces {
		nic := &from.NetworkInterfaces[n]
		sources = append(sources, parseOwn(nic.PrivateIpAddress))
		names = append(names, aws.ToString(nic.PrivateDnsName))
		for _, address := range nic.PrivateIpAddresses {
			privateAddresses = append(privateAddresses, parseOwn(address.PrivateIpAddress))
			names = append(names, aws.ToString(address.PrivateDnsName))
		}
		for _, address := range nic.Ipv6Addresses {
			sources = append(sources, parseOwn(address.Ipv6Address))
		}
	}
	for n := range names {
		names[n] = strings.ToLower(names[n])
	}
	i.private = distinct(slices.Concat(sources, privateAddresses), netip.Addr.Compare, netip.Addr.IsValid)
	i.sources = distinct(sources, netip.Addr.Compare, netip.Addr.IsValid)
	i.names = distinct(names, strings.Compare, func(name string) bool { return name != "" })
}

// parseOwn reads an address from EC2. It returns the zero Addr if there is none.
func parseOwn(text *string) netip.Addr {
	address, err := netip.ParseAddr(aws.ToString(text))
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap()
}

// distinct sorts values and removes duplicates and those that keep rejects.
func distinct[T comparable](values []T, compare func(a, b T) int, keep func(T) bool) []T {
	values = slices.DeleteFunc(values, func(v T) bool { return !keep(v) })
	slices.SortFunc(values, compare)
	return slices.Compact(values)
}

// servingNames returns the DNS names for serving certificates.
func (i *instance) servingNames(nodeName string) []string {
	return distinct(append(slices.Clone(i.names), nodeName), cmp.Compare, func(name string) bool { return name != "" })
}
