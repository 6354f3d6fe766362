package instances

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/node-authorizer/node-authorizer/iam"
)

// EC2API is the one method of EC2 that is needed.
type EC2API interface {
	DescribeInstances(ctx context.Context, input *ec2.DescribeInstancesInput, options ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
}

// IAMAPI is the one method of IAM that is needed.
type IAMAPI interface {
	GetInstanceProfile(ctx context.Context, input *awsiam.GetInstanceProfileInput, options ...func(*awsiam.Options)) (*awsiam.GetInstanceProfileOutput, error)
}

// Options are settings of [Instances]. What is zero has a default, but for EC2.
type Options struct {
	// EC2 is asked about instances; see [NewClients].
	EC2 EC2API
	// IAM is asked for the roles of instance profiles. Without it, questions that want
	// roles are errors.
	IAM IAMAPI
	// TTL is for how long an answer is used; 2 minutes by default.
	TTL time.Duration
	// MissingTTL is for how long one is used that may soon be otherwise: that there is
	// no such instance, or one that does not run, or has no name or profile. It is 5
	// seconds by default, and never longer than TTL.
	MissingTTL time.Duration
	// Size is how many instances are remembered, and how many that do not exist; 20,000
	// each by default.
	Size int
	// BatchSize is how many instances a request is about, at most 100, the default.
	BatchSize int
	// BatchWait is how long a question waits for others, at most 200 ms; 20 ms by
	// default. Who comes alone does not wait.
	BatchWait time.Duration
	// PerSecond is how many requests are made of EC2, and of IAM, in the long run, and
	// Burst how many at once; 10 and 20 by default.
	PerSecond float64
	Burst     int
	// Now is the clock of what is remembered, time.Now by default.
	Now func() time.Time
	// Observe, if set, is told of each request: the service, EC2 or IAM, and its
	// outcome, one of the Outcome constants.
	Observe func(service, outcome string)
}

// Limits and defaults of [Options].
const (
	defaultTTL        = 2 * time.Minute
	defaultMissingTTL = 5 * time.Second
	defaultSize       = 20_000
	maxBatchSize      = 100
	defaultBatchWait  = 20 * time.Millisecond
	maxBatchWait      = 200 * time.Millisecond
	defaultPerSecond  = 10
	defaultBurst      = 20
)

// Services, as metrics and errors name them.
const (
	serviceEC2 = "EC2"
	serviceIAM = "IAM"
)

// What becomes of a request.
const (
	// OutcomeAnswered: it was answered, if only by that there is none.
	OutcomeAnswered = "answered"
	// OutcomeThrottled: there were too many for AWS.
	OutcomeThrottled = "throttled"
	// OutcomeLimited: it was not made, because of the limit on requests.
	OutcomeLimited = "limited"
	// OutcomeFailed: there was no answer, or none to the question.
	OutcomeFailed = "failed"
)

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	o.MissingTTL = min(cmp.Or(o.MissingTTL, defaultMissingTTL), o.TTL)
	o.Size = cmp.Or(o.Size, defaultSize)
	o.BatchSize = min(cmp.Or(o.BatchSize, maxBatchSize), maxBatchSize)
	o.BatchWait = min(cmp.Or(o.BatchWait, defaultBatchWait), maxBatchWait)
	o.PerSecond = cmp.Or(o.PerSecond, defaultPerSecond)
	o.Burst = cmp.Or(o.Burst, defaultBurst)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(string, string) {}
	}
	return o
}

// Instances looks instances up. It is safe for concurrent use.
type Instances struct {
	options  Options
	known    *memory[record]
	missing  *memory[record]
	gather   *gathering
	profiles *profiles
}

var _ iam.Instances = (*Instances)(nil)

// New returns look-ups that remember nothing yet.
func New(o Options) *Instances {
	o = o.withDefaults()
	i := &Instances{
		options: o,
		known:   newMemory[record](o.Size, o.Now), missing: newMemory[record](o.Size, o.Now),
		profiles: newProfiles(o),
	}
	i.gather = newGathering(o, newDirectory(o).describe, i.remember)
	return i
}

// record is what EC2 says of an instance; the zero record stands for one that does not
// exist.
type record struct {
	id, account, vpc, privateDNSName string
	running                          bool
	profile                          profile
}

// settled reports whether the record is not one that may soon be otherwise.
func (r *record) settled() bool {
	return r.running && r.privateDNSName != "" && r.profile != (profile{})
}

// remember keeps an answer, from when it was asked for. What does not exist is kept
// apart, so that whoever makes up ids takes no room from instances that do.
func (i *Instances) remember(id string, found record, asked time.Time) {
	switch {
	case found == (record{}):
		i.missing.keep(id, found, asked.Add(i.options.MissingTTL))
	case found.settled():
		i.known.keep(id, found, asked.Add(i.options.TTL))
	default:
		i.known.keep(id, found, asked.Add(i.options.MissingTTL))
	}
}

// instanceID is the form of an instance's id.
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
	answer := &iam.Instance{ID: found.id, Account: found.account, Running: found.running, VPC: found.vpc, PrivateDNSName: found.privateDNSName}
	if withRoles && found.profile != (profile{}) {
		if answer.Roles, err = i.profiles.roles(ctx, found.profile); err != nil {
			return nil, fmt.Errorf("finding the roles of instance %s: %w", id, err)
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
	return i.gather.ask(ctx, id)
}
