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

// DescribeInstances is the method of EC2's client that is needed. It is a function, not
// an interface, so that the linker drops the other methods of the client.
type DescribeInstances func(ctx context.Context, input *ec2.DescribeInstancesInput,
	options ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)

// Options are settings of a [Client]. Zero values are replaced with defaults, except
// DescribeInstances.
type Options struct {
	// DescribeInstances calls EC2. It need not retry: the client does.
	DescribeInstances DescribeInstances
	// PerSecond is the rate limit of requests in a region, including retries and pages,
	// and Burst the number of requests at once. The defaults are 10 and 20.
	PerSecond float64
	Burst     int
	// BatchSize is the maximum number of instances in a request. The default and maximum
	// are 100.
	BatchSize int
	// BatchWait is how long a question waits for others. The default is 20 ms, the
	// maximum 200 ms. A question does not wait if no request is in flight.
	BatchWait time.Duration
	// TryTimeout bounds one try of a client that [Load] returns. The default is 5 s.
	TryTimeout time.Duration
	// Now is the clock of [Answer]. The default is time.Now.
	Now func() time.Time
	// Observe, if set, is called with the outcome of each request, one of the Outcome
	// constants. Retries are part of one request.
	Observe func(outcome string)
}

// Limits and defaults.
const (
	defaultPerSecond = 10
	defaultBurst     = 20
	maxBatchSize     = 100
	defaultBatchWait = 20 * time.Millisecond
	maxBatchWait     = 200 * time.Millisecond
	// maxInFlight is the maximum number of batches in flight in a region.
	maxInFlight = 4
	// queueSeconds bounds the waiting instances to as many as can be requested in so many seconds.
	queueSeconds = 2
	// maxPages bounds an answer, which has at most about 100 instances.
	maxPages = 100
	// questionLife bounds a question whose context has no deadline. kube-apiserver waits
	// 10 seconds for a webhook.
	questionLife      = 8 * time.Second
	defaultTryTimeout = 5 * time.Second
)

// The outcomes of requests.
const (
	// OutcomeAnswered: EC2 answered, possibly that there is no such instance.
	OutcomeAnswered = "answered"
	// OutcomeThrottled: AWS throttled the request.
	OutcomeThrottled = "throttled"
	// OutcomeLimited: the request was not sent because of the rate limit.
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

// Answer is the answer of EC2 about an instance.
type Answer struct {
	// Instance is nil if EC2 has no such instance that the account may see. It is shared
	// by all callers and must not be changed.
	Instance *types.Instance
	// Account is the account that owns the instance.
	Account string
	// Asked is when the request was sent.
	Asked time.Time
}

// Client looks up instances in EC2. It is safe for concurrent use.
type Client struct {
	options Options
	// home is the region of the environment, if it is known.
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

// Load returns a client with the settings and credentials of the environment. The
// transport carries its requests; nil means the transport of the SDK.
func Load(ctx context.Context, o Options, transport http.RoundTripper) (*Client, error) {
	timeout := cmp.Or(o.TryTimeout, defaultTryTimeout)
	sdk, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(timeout)))
	if err != nil {
		return nil, fmt.Errorf("read the settings of the AWS SDK: %w", err)
	}
	if transport != nil {
		sdk.HTTPClient = &http.Client{Transport: transport, Timeout: timeout}
	}
	// The client of EC2 does not retry. Requests for credentials are retried as usual.
	o.DescribeInstances = ec2.NewFromConfig(sdk, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }).DescribeInstances
	client := New(o)
	client.home = sdk.Region
	return client, nil
}

// Instance returns the answer of EC2 in a region about an instance. An empty region means
// the region of the environment. The context bounds the caller's wait. Other callers may wait
// for the same answer, so it does not end a request before their deadlines.
//
// Tries is the number of tries if EC2 throttles or does not answer. A batch has the
// largest number of its questions.
func (c *Client) Instance(ctx context.Context, region, id string, tries int) (Answer, error) {
	return c.in(region).ask(ctx, id, tries)
}

// Waiting returns the number of questions in a region that wait for a batch.
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
