package fakeaws

import (
	"encoding/xml"
	"maps"
	"slices"
	"time"
)

// The answer of DescribeInstances (EC2 API, version 2016-11-15), with the elements that
// describe an instance.
type (
	describeInstancesResponse struct {
		XMLName      xml.Name             `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstancesResponse"`
		Request      string               `xml:"requestId"`
		Reservations []reservationElement `xml:"reservationSet>item"`
		NextToken    string               `xml:"nextToken,omitempty"`
	}
	reservationElement struct {
		ID        string            `xml:"reservationId"`
		Owner     string            `xml:"ownerId"`
		Instances []instanceElement `xml:"instancesSet>item"`
	}
	instanceElement struct {
		ID             string             `xml:"instanceId"`
		Image          string             `xml:"imageId"`
		StateCode      int                `xml:"instanceState>code"`
		StateName      State              `xml:"instanceState>name"`
		PrivateDNSName string             `xml:"privateDnsName"`
		DNSName        string             `xml:"dnsName"`
		Type           string             `xml:"instanceType"`
		Launched       string             `xml:"launchTime"`
		Zone           string             `xml:"placement>availabilityZone"`
		Subnet         string             `xml:"subnetId,omitempty"`
		VPC            string             `xml:"vpcId,omitempty"`
		PrivateAddress string             `xml:"privateIpAddress,omitempty"`
		Architecture   string             `xml:"architecture"`
		Tags           []tagElement       `xml:"tagSet>item"`
		Interfaces     []interfaceElement `xml:"networkInterfaceSet>item"`
		Profile        *profileElement    `xml:"iamInstanceProfile"`
	}
	tagElement struct {
		Key   string `xml:"key"`
		Value string `xml:"value"`
	}
	profileElement struct {
		ARN string `xml:"arn"`
		ID  string `xml:"id"`
	}
	interfaceElement struct {
		ID             string           `xml:"networkInterfaceId"`
		Subnet         string           `xml:"subnetId"`
		VPC            string           `xml:"vpcId"`
		Owner          string           `xml:"ownerId"`
		Status         string           `xml:"status"`
		MAC            string           `xml:"macAddress"`
		PrivateAddress string           `xml:"privateIpAddress"`
		PrivateDNSName string           `xml:"privateDnsName"`
		DeviceIndex    int              `xml:"attachment>deviceIndex"`
		Addresses      []addressElement `xml:"privateIpAddressesSet>item"`
		IPv6           []ipv6Element    `xml:"ipv6AddressesSet>item"`
	}
	addressElement struct {
		Address        string `xml:"privateIpAddress"`
		PrivateDNSName string `xml:"privateDnsName"`
		Primary        bool   `xml:"primary"`
	}
	ipv6Element struct {
		Address string `xml:"ipv6Address"`
	}
)

// reservation returns an instance as in EC2's answers. A terminated one has no network
// and no profile.
func reservation(i *Instance) reservationElement {
	element := instanceElement{
		ID: i.ID, Image: i.Image, StateCode: i.State.code(), StateName: i.State, Type: i.Type,
		Launched: i.PendingTime.UTC().Format(time.RFC3339), Zone: i.Zone, Architecture: i.Architecture,
	}
	for _, key := range slices.Sorted(maps.Keys(i.Tags)) {
		element.Tags = append(element.Tags, tagElement{key, i.Tags[key]})
	}
	if i.State != Terminated {
		element.PrivateDNSName, element.PrivateAddress = i.PrivateDNSName, i.address()
		element.Subnet, element.VPC = i.Subnet, i.VPC
		for n, nic := range i.Interfaces {
			element.Interfaces = append(element.Interfaces, networkInterface(i, nic, n))
		}
		if i.Profile != "" {
			element.Profile = &profileElement{ARN: i.Profile, ID: profileID}
		}
	}
	return reservationElement{ID: "r-" + i.ID[len("i-"):], Owner: i.Account, Instances: []instanceElement{element}}
}

func networkInterface(i *Instance, nic Interface, index int) interfaceElement {
	element := interfaceElement{
		ID: nic.ID, Subnet: i.Subnet, VPC: i.VPC, Owner: i.Account, Status: "in-use", MAC: nic.MAC,
		PrivateDNSName: nic.PrivateDNSName, DeviceIndex: index,
	}
	for n, addr := range nic.Private {
		name := addressName(addr, i.Region)
		if n == 0 {
			element.PrivateAddress, name = addr.String(), nic.PrivateDNSName
		}
		element.Addresses = append(element.Addresses, addressElement{addr.String(), name, n == 0})
	}
	for _, addr := range nic.IPv6 {
		element.IPv6 = append(element.IPv6, ipv6Element{addr.String()})
	}
	return element
}
