package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
)

// Collector is the machine's half of the provider. It uses the metadata service of its
// instance, always with session tokens (IMDSv2).
type Collector struct {
	metadata *imds.Client
	sdk      aws.Config
	naming   string
}

// CollectorOptions are settings of a collector.
type CollectorOptions struct {
	// Naming is the server's naming rule: PrivateDNSName (also if empty), InstanceID or
	// ResourceName. With a template, the client needs the name itself.
	Naming string
}

// The naming rules that a machine can apply.
const (
	privateDNSName = "PrivateDNSName"
	instanceID     = "InstanceID"
	resourceName   = "ResourceName"
)

// NewCollector returns a collector. The environment has the address of the metadata
// service, as for all programs with the AWS SDK: AWS_EC2_METADATA_SERVICE_ENDPOINT,
// AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE (IPv4 or IPv6).
func NewCollector(ctx context.Context, options CollectorOptions) (*Collector, error) {
	switch options.Naming {
	case "":
		options.Naming = privateDNSName
	case privateDNSName, instanceID, resourceName:
	default:
		return nil, fmt.Errorf("naming %q: want %s, %s or %s; for a template, set the name itself", options.Naming, privateDNSName,
			instanceID, resourceName)
	}
	sdk, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("read the settings of the AWS SDK: %w", err)
	}
	metadata := imds.NewFromConfig(sdk, func(o *imds.Options) { o.EnableFallback = aws.FalseTernary })
	return &Collector{metadata: metadata, sdk: sdk, naming: options.Naming}, nil
}

// NodeName returns the name of this instance by the naming rule.
func (c *Collector) NodeName(ctx context.Context) (string, error) {
	if c.naming == instanceID {
		return c.get(ctx, "instance-id")
	}
	hostname, err := c.get(ctx, "local-hostname")
	if err != nil {
		return "", err
	}
	// With several domain names in the DHCP options, there is one name for each.
	first, _, _ := strings.Cut(strings.ToLower(hostname), " ")
	if c.naming == privateDNSName {
		return first, nil
	}
	id, err := c.get(ctx, "instance-id")
	if err != nil {
		return "", err
	}
	_, domain, found := strings.Cut(first, ".")
	if !found {
		return "", fmt.Errorf("the metadata service returned the hostname %q, which has no domain for a resource name", first)
	}
	return id + "." + domain, nil
}

// Collect returns the identity document in the form with the best signature. With a
// challenge, it adds a signed request that proves the instance's identity.
func (c *Collector) Collect(ctx context.Context, about attest.Binding) ([]byte, error) {
	document, err := c.document(ctx)
	if err != nil {
		return nil, err
	}
	evidence := identitydocument.Evidence{Document: []byte(document)}
	if about.Challenge != "" {
		if evidence.CallerIdentity, err = c.callerIdentity(ctx, about.Challenge); err != nil {
			return nil, err
		}
	}
	return evidence.Request()
}

// document prefers the form with RSA and SHA-256. The form with DSA and SHA-1 exists in
// all regions.
func (c *Collector) document(ctx context.Context) (string, error) {
	for _, form := range []string{"rsa2048", "pkcs7"} {
		text, err := c.read(ctx, "instance-identity/"+form, c.dynamic)
		if err == nil || !missing(err) {
			return text, err
		}
	}
	return "", errors.New("the metadata service has no signed identity document, neither rsa2048 nor pkcs7")
}

// get reads one value of the instance's metadata.
func (c *Collector) get(ctx context.Context, path string) (string, error) {
	text, err := c.read(ctx, path, c.metadataValue)
	return strings.TrimSpace(text), err
}

func (c *Collector) dynamic(ctx context.Context, path string) (io.ReadCloser, error) {
	out, err := c.metadata.GetDynamicData(ctx, &imds.GetDynamicDataInput{Path: path})
	if err != nil {
		return nil, err
	}
	return out.Content, nil
}

func (c *Collector) metadataValue(ctx context.Context, path string) (io.ReadCloser, error) {
	out, err := c.metadata.GetMetadata(ctx, &imds.GetMetadataInput{Path: path})
	if err != nil {
		return nil, err
	}
	return out.Content, nil
}

// maxMetadata bounds one value. Signed documents have 3 KiB.
const maxMetadata = 32 << 10

// read returns a value. An empty one is an error.
func (c *Collector) read(ctx context.Context, path string, from func(context.Context, string) (io.ReadCloser, error)) (string, error) {
	content, err := from(ctx, path)
	if err != nil {
		return "", unanswered(path, err)
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, maxMetadata+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read %s from the metadata service: %w", path, err)
	case len(text) > maxMetadata:
		return "", fmt.Errorf("the metadata service returned more than %d KiB for %s", maxMetadata>>10, path)
	case len(strings.TrimSpace(string(text))) == 0:
		return "", fmt.Errorf("the metadata service returned an empty value for %s", path)
	}
	return string(text), nil
}

// unanswered explains the usual causes if the metadata service does not answer.
func unanswered(path string, err error) error {
	answered := new(smithyhttp.ResponseError)
	if errors.As(err, &answered) && answered.HTTPStatusCode() != 0 {
		return fmt.Errorf("get %s from the metadata service: %w", path, err)
	}
	return fmt.Errorf("get %s from the metadata service: %w; it must be enabled for this instance, and in a container "+
		"without the host's network it needs a hop limit of 2",
		path, err)
}

func missing(err error) bool {
	answered := new(smithyhttp.ResponseError)
	return errors.As(err, &answered) && answered.HTTPStatusCode() == http.StatusNotFound
}
