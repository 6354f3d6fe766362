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

// globalRegion makes the SDK take the host of STS that is in no region, for which
// requests are signed as for globalScope.
const (
	globalRegion = "aws-global"
	globalScope  = "us-east-1"
)

// load reads the settings of the SDK, and makes them those of the options: where
// STS is, and who signs.
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
		return aws.Config{}, fmt.Errorf("reading the settings of the AWS SDK: %w", err)
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

// keep puts credentials that end into the file.
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

// regionOf returns the region of the machine if the credentials are those of its
// role. Elsewhere there may be no metadata service, and to find that out takes long.
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
		return "", fmt.Errorf("asking the metadata service of the instance for its region: %w", err)
	}
	return answer.Region, nil
}
