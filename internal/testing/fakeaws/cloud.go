package fakeaws

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Cloud has instances and the services of AWS around them. It is safe for concurrent use.
type Cloud struct {
	// EC2, STS and IAM are the services. They share the cloud's state.
	EC2, STS, IAM *Service

	signer *Signer

	mu         sync.Mutex
	launched   int
	instances  map[string]*Instance
	principals map[string]principal // by access key id
	roles      map[string]Credentials
	metadata   []*Metadata
	closers    []func() // of what was opened beside the services
	emptyPages int
	// profiles are the instance profiles that a test has set, by ARN. The value is nil
	// for a deleted one.
	profiles map[string]*InstanceProfile
	// externalIDs are the external ids that roles require, by ARN.
	externalIDs map[string]string
}

// State is the state of an instance, with the names of EC2.
type State string

// The states of EC2.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Terminated   State = "terminated"
	Stopping     State = "stopping"
	Stopped      State = "stopped"
)

// code returns the number of a state in EC2.
func (s State) code() int {
	return map[State]int{Pending: 0, Running: 16, ShuttingDown: 32, Terminated: 48, Stopping: 64, Stopped: 80}[s]
}

// Instance is one virtual machine. Launch sets empty fields to values of the form that
// AWS uses.
type Instance struct {
	// ID is "i-" and 17 hexadecimal digits.
	ID      string
	Account string
	// Region is "eu-west-1", Zone "eu-west-1a", VPC and Subnet "vpc-…" and
	// "subnet-…".
	Region, Zone, VPC, Subnet string
	Type, Image, Architecture string
	Tags                      map[string]string
	// Profile is the ARN of the instance profile. Role is the name of its role, for which
	// the machine gets credentials. Both can be empty.
	Profile, Role string
	// Interfaces are the network interfaces; the first is the primary one.
	Interfaces []Interface
	// PrivateDNSName is the name of the primary address or of the instance, depending on
	// its subnet.
	PrivateDNSName string
	State          State
	// PendingTime is the last start of the instance.
	PendingTime time.Time
}

// Interface is one network interface.
type Interface struct {
	ID, MAC string
	// Private are its private IPv4 addresses, the primary one first. IPv6 are its IPv6
	// addresses.
	Private, IPv6 []netip.Addr
	// PrivateDNSName is the name of the primary address.
	PrivateDNSName string
}

// DefaultAccount is the default account of new instances.
const DefaultAccount = "111122223333"

// New returns an empty cloud whose services listen on loopback addresses.
func New() (*Cloud, error) {
	signer, err := NewSigner()
	if err != nil {
		return nil, err
	}
	c := &Cloud{
		signer: signer, instances: map[string]*Instance{},
		principals: map[string]principal{}, roles: map[string]Credentials{}, externalIDs: map[string]string{},
		profiles: map[string]*InstanceProfile{},
	}
	if c.EC2, err = serve(c.handleEC2, throttledEC2); err != nil {
		return nil, err
	}
	if c.STS, err = serve(c.handleSTS, throttledSTS); err != nil {
		c.EC2.close()
		return nil, err
	}
	if c.IAM, err = serve(c.handleIAM, throttledIAM); err != nil {
		c.EC2.close()
		c.STS.close()
		return nil, err
	}
	return c, nil
}

// Close stops all services and aborts their requests.
func (c *Cloud) Close() {
	c.mu.Lock()
	services := []*Service{c.EC2, c.STS, c.IAM}
	for _, m := range c.metadata {
		services = append(services, m.Service)
	}
	closers := c.closers
	c.mu.Unlock()
	for _, s := range services {
		s.close()
	}
	for _, end := range closers {
		end()
	}
}

// service returns the service with a name in AWS's host names, or nil if the fake does
// not have it.
func (c *Cloud) service(name string) *Service {
	return map[string]*Service{"ec2": c.EC2, "sts": c.STS, "iam": c.IAM}[name]
}

// Signer returns the keys that sign the identity documents.
func (c *Cloud) Signer() *Signer { return c.signer }

// Certificates returns the certificates for identity documents: of the DSA, the RSA-1024
// and the RSA-2048 key.
func (c *Cloud) Certificates() []*x509.Certificate { return c.signer.Certificates() }

// Launch starts an instance and returns it with all fields set.
func (c *Cloud) Launch(instance Instance) Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.launched++
	instance = instance.clone()
	instance.complete(c.launched)
	c.instances[instance.ID] = &instance
	return instance.clone()
}

// Instance returns a copy of an instance.
func (c *Cloud) Instance(id string) (Instance, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	instance, ok := c.instances[id]
	if !ok {
		return Instance{}, false
	}
	return instance.clone(), true
}

// Change changes an instance with a function. Like the other changes, it panics if the
// instance does not exist, because that is a mistake in the test.
func (c *Cloud) Change(id string, change func(*Instance)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	instance, ok := c.instances[id]
	if !ok {
		panic("fakeaws: no instance " + id)
	}
	change(instance)
}

// Stop stops an instance. It keeps its addresses.
func (c *Cloud) Stop(id string) { c.Change(id, func(i *Instance) { i.State = Stopped }) }

// Start starts a stopped instance. Its identity document changes: it has a later pending
// time.
func (c *Cloud) Start(id string) {
	c.Change(id, func(i *Instance) {
		next := time.Now().UTC().Truncate(time.Second)
		if !next.After(i.PendingTime) {
			next = i.PendingTime.Add(time.Second)
		}
		i.State, i.PendingTime = Running, next
	})
}

// Terminate terminates an instance. EC2 still returns it without its addresses; see
// [Cloud.Forget].
func (c *Cloud) Terminate(id string) { c.Change(id, func(i *Instance) { i.State = Terminated }) }

// Forget removes an instance from EC2, which AWS does about an hour after its
// termination.
func (c *Cloud) Forget(id string) {
	c.Change(id, func(*Instance) {})
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.instances, id)
}

// PrecedeByEmptyPages makes EC2 answer a DescribeInstances with a number of empty pages
// before the one with instances. The real EC2 may do so.
func (c *Cloud) PrecedeByEmptyPages(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emptyPages = n
}

func (i *Instance) clone() Instance {
	copied := *i
	copied.Tags = maps.Clone(i.Tags)
	copied.Interfaces = slices.Clone(i.Interfaces)
	for n := range copied.Interfaces {
		copied.Interfaces[n].Private = slices.Clone(copied.Interfaces[n].Private)
		copied.Interfaces[n].IPv6 = slices.Clone(copied.Interfaces[n].IPv6)
	}
	return copied
}

// complete sets the empty fields of the nth instance.
func (i *Instance) complete(n int) {
	setDefault(&i.ID, fmt.Sprintf("i-%017x", 0x0f000000+n))
	setDefault(&i.Account, DefaultAccount)
	setDefault(&i.Region, "eu-west-1")
	setDefault(&i.Zone, i.Region+"a")
	setDefault(&i.VPC, "vpc-0a1b2c3d4e5f60718")
	setDefault(&i.Subnet, "subnet-0a1b2c3d4e5f60718")
	setDefault(&i.Type, "m7i.large")
	setDefault(&i.Image, "ami-0a1b2c3d4e5f60718")
	setDefault(&i.Architecture, "x86_64")
	if i.State == "" {
		i.State = Running
	}
	if i.PendingTime.IsZero() {
		i.PendingTime = time.Now().UTC().Truncate(time.Second)
	}
	if len(i.Interfaces) == 0 {
		i.Interfaces = []Interface{{Private: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})}}}
	}
	for at := range i.Interfaces {
		nic := &i.Interfaces[at]
		setDefault(&nic.ID, fmt.Sprintf("eni-%015x%02x", n, at))
		setDefault(&nic.MAC, fmt.Sprintf("06:00:%02x:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff, at))
		if len(nic.Private) > 0 {
			setDefault(&nic.PrivateDNSName, addressName(nic.Private[0], i.Region))
		}
	}
	setDefault(&i.PrivateDNSName, i.Interfaces[0].PrivateDNSName)
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// addressName returns the private DNS name of an address, by the rule on the page "Amazon
// EC2 instance hostname types".
func addressName(addr netip.Addr, region string) string {
	return "ip-" + strings.ReplaceAll(addr.String(), ".", "-") + "." + privateDomain(region)
}

func privateDomain(region string) string {
	if region == "us-east-1" {
		return "ec2.internal"
	}
	return region + ".compute.internal"
}

// randomText returns n random characters of an alphabet.
func randomText(n int, alphabet string) string {
	text := make([]byte, n)
	if _, err := rand.Read(text); err != nil {
		panic(err)
	}
	for i := range text {
		text[i] = alphabet[int(text[i])%len(alphabet)]
	}
	return string(text)
}
