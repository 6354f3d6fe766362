package token

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
)

// globalRegion makes the SDK use the global host of STS. Requests to it are signed for
// globalScope.
const (
	globalRegion = "aws-global"
	globalScope  = "us-east-1"
)

// load reads the settings of the SDK and applies the options: the region of STS, and the
// credentials.
func (o Options) load(ctx context.Context) (aws.Config, error) {
	settings := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if o.Region != "" {
		settings = append(settings, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		settings = append(settings, config.WithSharedConfigProfile(o.Profile))
	}
	if o.Credentials != nil {
		settings = append(settings, config.WithCredentialsProvider(o.Credentials))
	}
	if o.HTTP != nil {
		settings = append(settings, config.WithHTTPClient(o.HTTP))
	}
	sdk, err := config.LoadDefaultConfig(ctx, settings...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("read the settings of the AWS SDK: %w", err)
	}
	kept, err := o.openCache()
	if err != nil && o.CacheFailed != nil {
		o.CacheFailed(err)
	}
	if found, ok := kept.find(time.Now()); ok {
		sdk.Region = cmp.Or(sdk.Region, found.Region)
		sdk.Credentials = found
		return sdk, nil
	}
	if sdk.Region == "" {
		if sdk.Region, err = regionOf(ctx, sdk); err != nil {
			return aws.Config{}, err
		}
	}
	if o.RoleARN != "" {
		sdk.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(sdk), o.RoleARN, o.assuming))
	}
	return sdk, o.keep(ctx, kept, sdk)
}

// keep caches credentials that expire.
func (o Options) keep(ctx context.Context, kept *cache, sdk aws.Config) error {
	if kept == nil {
		return nil
	}
	credentials, err := sdk.Credentials.Retrieve(ctx)
	if err != nil {
		return o.notRetrieved(err)
	}
	if err := kept.put(sdk.Region, credentials, time.Now()); err != nil && o.CacheFailed != nil {
		o.CacheFailed(err)
	}
	return nil
}

func (o Options) assuming(role *stscreds.AssumeRoleOptions) {
	role.RoleSessionName = o.SessionName
	if o.ExternalID != "" {
		role.ExternalID = aws.String(o.ExternalID)
	}
}

// regionOf returns the region of the machine if the credentials belong to its role.
// Otherwise there may be no metadata service, and a timeout would take long.
func regionOf(ctx context.Context, sdk aws.Config) (string, error) {
	credentials, err := sdk.Credentials.Retrieve(ctx)
	if err != nil {
		return "", Options{}.notRetrieved(err)
	}
	if credentials.Source != ec2rolecreds.ProviderName {
		return globalRegion, nil
	}
	answer, err := imds.NewFromConfig(sdk).GetRegion(ctx, &imds.GetRegionInput{})
	if err != nil {
		return "", fmt.Errorf("get the region from the metadata service of the instance: %w", err)
	}
	return answer.Region, nil
}
