package instances

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// GetInstanceProfile is the method of IAM's client that look-ups need.
type GetInstanceProfile func(ctx context.Context, input *awsiam.GetInstanceProfileInput,
	options ...func(*awsiam.Options)) (*awsiam.GetInstanceProfileOutput, error)

// Options are settings of [Instances]. Region, IAM, Now and Observe are optional.
type Options struct {
	// EC2 is the client of EC2. Share it with other users of EC2 in the program.
	EC2 *ec2instances.Client
	// Region is the region of EC2. It is required if the environment has none.
	Region string
	// IAM gets instance profiles; see [NewIAM]. Without it, look-ups with roles are errors.
	IAM GetInstanceProfile
	// TTL is how long an answer is cached. One that may change soon is cached for 5 seconds at most: there is no such
	// instance, or it does not run, or it has no name or profile.
	TTL time.Duration
	// Size is the number of cached instances, and of cached ids without an instance.
	Size int
	// PerSecond is the rate limit of requests to IAM, and Burst the number of requests at
	// once.
	PerSecond float64
	Burst     int
	// Now is the clock of the cache. The default is time.Now.
	Now func() time.Time
	// Observe, if set, is called with the outcome of each request to IAM, one of the Outcome
	// constants of ec2instances.
	Observe func(outcome string)
}

// missingTTL is how long an answer is cached that may change soon.
const missingTTL = 5 * time.Second

// ec2Tries is small: a client of the API server tries again when it is throttled.
const ec2Tries = 3

// Services, as metrics and errors name them.
const (
	serviceEC2 = "EC2"
	serviceIAM = "IAM"
)

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(string) {}
	}
	return o
}

// Instances looks up instances. It is safe for concurrent use.
type Instances struct {
	options  Options
	known    *memory[record]
	missing  *memory[record]
	profiles *profiles
}

var _ iam.Instances = (*Instances)(nil)

// New returns an Instances with an empty cache.
func New(o Options) *Instances {
	o = o.withDefaults()
	return &Instances{
		options: o,
		known:   newMemory[record](o.Size, o.Now), missing: newMemory[record](o.Size, o.Now),
		profiles: newProfiles(o),
	}
}

// record is an instance as EC2 describes it. The zero record means that the instance does
// not exist.
type record struct {
	id, account, vpc, privateDNSName string
	running                          bool
	profile                          profile
}

// settled reports whether the record is unlikely to change soon.
func (r *record) settled() bool {
	return r.running && r.privateDNSName != "" && r.profile != (profile{})
}

// remember caches an answer from the time of its request. Instances that do not exist have
// a cache of their own, so that invented ids evict no existing instances.
func (i *Instances) remember(id string, found record, asked time.Time) {
	switch {
	case found == (record{}):
		i.missing.keep(id, found, asked.Add(min(missingTTL, i.options.TTL)))
	case found.settled():
		i.known.keep(id, found, asked.Add(i.options.TTL))
	default:
		i.known.keep(id, found, asked.Add(min(missingTTL, i.options.TTL)))
	}
}

// instanceID is the form of an instance id.
var instanceID = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// Instance implements [iam.Instances]. The context bounds the caller's wait only:
// others may wait for the same answer.
func (i *Instances) Instance(ctx context.Context, id string, withRoles bool) (*iam.Instance, error) {
	if !instanceID.MatchString(id) {
		return nil, nil
	}
	found, err := i.lookUp(ctx, id)
	if err != nil || found == (record{}) {
		return nil, err
	}
	answer := &iam.Instance{
		ID: found.id, Account: found.account, Running: found.running, VPC: found.vpc, PrivateDNSName: found.privateDNSName,
	}
	if withRoles && found.profile != (profile{}) {
		if answer.Roles, err = i.profiles.roles(ctx, found.profile); err != nil {
			return nil, fmt.Errorf("find the roles of instance %s: %w", id, err)
		}
	}
	return answer, nil
}

func (i *Instances) lookUp(ctx context.Context, id string) (record, error) {
	if found, ok := i.known.get(id); ok {
		return found, nil
	}
	if found, ok := i.missing.get(id); ok {
		return found, nil
	}
	answer, err := i.options.EC2.Instance(ctx, i.options.Region, id, ec2Tries)
	if throttled, ok := errors.AsType[*ec2instances.Throttled](err); ok {
		return record{}, &iam.Throttled{Service: serviceEC2, Detail: throttled.Detail}
	}
	if err != nil {
		return record{}, fmt.Errorf("asking EC2 about instance %s: %w", id, err)
	}
	found := read(answer.Instance, answer.Account)
	i.remember(id, found, answer.Asked)
	return found, nil
}

// read converts an instance of EC2 to a record.
func read(from *types.Instance, account string) record {
	if from == nil {
		return record{}
	}
	r := record{
		id: aws.ToString(from.InstanceId), account: account,
		vpc: aws.ToString(from.VpcId), privateDNSName: strings.ToLower(aws.ToString(from.PrivateDnsName)),
	}
	if from.State != nil {
		r.running = from.State.Name == types.InstanceStateNameRunning || from.State.Name == types.InstanceStateNamePending
	}
	if from.IamInstanceProfile != nil {
		r.profile = profile{aws.ToString(from.IamInstanceProfile.Arn), aws.ToString(from.IamInstanceProfile.Id)}
	}
	return r
}
