package ec2instances

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// DescribeInstances is the one method of EC2's client that is needed. The client itself
// is not kept: behind an interface it would keep all of its methods in the program.
type DescribeInstances func(ctx context.Context, input *ec2.DescribeInstancesInput, options ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)

// Options are settings of a [Client]. What is zero has a default, but for
// DescribeInstances.
type Options struct {
	// DescribeInstances asks EC2. It need not try again: the client does.
	DescribeInstances DescribeInstances
	// PerSecond is how many requests are made in a region in the long run, tries and
	// pages included, and Burst how many at once; 10 and 20 by default.
	PerSecond float64
	Burst     int
	// BatchSize is how many instances a request is about, at most 100, the default.
	BatchSize int
	// BatchWait is how long a question waits for others, at most 200 ms; 20 ms by
	// default. A question does not wait if no request is in flight.
	BatchWait time.Duration
	// Now is the clock of [Answer], time.Now by default.
	Now func() time.Time
	// Observe, if set, is called with the outcome of each request, one of the Outcome constants.
	// Several tries are one request.
	Observe func(outcome string)
}

// Limits and defaults.
const (
	defaultPerSecond = 10
	defaultBurst     = 20
	maxBatchSize     = 100
	defaultBatchWait = 20 * time.Millisecond
	maxBatchWait     = 200 * time.Millisecond
	// maxInFlight is how many batches of a region may be in flight.
	maxInFlight = 4
	// queueSeconds is how many seconds' worth of instances may wait.
	queueSeconds = 2
	// maxPages bounds an answer, which is about 100 instances at most.
	maxPages = 100
	// questionLife ends a question whose context has no deadline. kube-apiserver waits
	// 10 seconds for what it asks a webhook.
	questionLife = 8 * time.Second
	// tryTimeout ends one try.
	tryTimeout = 5 * time.Second
)

// The outcomes of requests.
const (
	// OutcomeAnswered: EC2 answered, possibly that there is no such instance.
	OutcomeAnswered = "answered"
	// OutcomeThrottled: AWS throttled it.
	OutcomeThrottled = "throttled"
	// OutcomeLimited: it was not sent because of the rate limit.
	OutcomeLimited = "limited"
	// OutcomeFailed: there was no answer, or not about the instance.
	OutcomeFailed = "failed"
)

// Throttled is the error of a question that EC2, the rate limit or the admission queue of
// the client rejected.
type Throttled struct {
	Detail string
}

// Error implements error.
func (t *Throttled) Error() string { return t.Detail }

// Answer is what EC2 says of an instance.
type Answer struct {
	// Instance is nil if EC2 has no such instance that the account may see. It is shared
	// by all who asked: nobody changes it.
	Instance *types.Instance
	// Account is the one that owns the instance.
	Account string
	// Asked is when the request was made.
	Asked time.Time
}

// Client asks EC2. It is safe for concurrent use.
type Client struct {
	options Options
	// home is the region of the environment, if that is known.
	home string

	mu      sync.Mutex
	regions map[string]*batcher
}

// New returns a client.
func New(o Options) *Client {
	o.PerSecond = cmp.Or(o.PerSecond, defaultPerSecond)
	o.Burst = cmp.Or(o.Burst, defaultBurst)
	o.BatchSize = min(cmp.Or(o.BatchSize, maxBatchSize), maxBatchSize)
	o.BatchWait = min(cmp.Or(o.BatchWait, defaultBatchWait), maxBatchWait)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = func(string) {}
	}
	return &Client{options: o, regions: map[string]*batcher{}}
}

// Load returns a client that asks EC2 with the settings and credentials of the
// environment. The transport carries its requests; nil for that of the SDK.
func Load(ctx context.Context, o Options, transport http.RoundTripper) (*Client, error) {
	sdk, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(tryTimeout)))
	if err != nil {
		return nil, fmt.Errorf("reading the settings of the AWS SDK: %w", err)
	}
	if transport != nil {
		sdk.HTTPClient = &http.Client{Transport: transport, Timeout: tryTimeout}
	}
	// The client of EC2 does not try again, but requests for credentials are tried as ever.
	o.DescribeInstances = ec2.NewFromConfig(sdk, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }).DescribeInstances
	client := New(o)
	client.home = sdk.Region
	return client, nil
}

// Instance returns what EC2 in a region says of an instance; the empty region is that of
// the environment. The context bounds the caller's wait. Others may wait for the same
// answer, so that it does not end a request before their deadlines.
//
// Tries is how often a request is sent that EC2 throttles or fails to answer. A batch has
// the largest number of its questions.
func (c *Client) Instance(ctx context.Context, region, id string, tries int) (Answer, error) {
	return c.in(region).ask(ctx, id, tries)
}

// Waiting is the number of questions in a region that wait for a batch.
func (c *Client) Waiting(region string) int {
	b := c.in(region)
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) + len(b.alone)
}

// in returns the batcher of a region.
func (c *Client) in(region string) *batcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	region = cmp.Or(region, c.home)
	b := c.regions[region]
	if b == nil {
		b = newBatcher(&c.options, region)
		c.regions[region] = b
	}
	return b
}
