package aws

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
)

// Own returns the account, the region and the VPC of the instance that this program runs
// on, from its metadata service.
func Own(ctx context.Context) (account, region, vpc string, err error) {
	sdk, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return "", "", "", fmt.Errorf("read the settings of the AWS SDK: %w", err)
	}
	metadata := &Collector{metadata: imds.NewFromConfig(sdk, func(o *imds.Options) { o.EnableFallback = aws.FalseTernary })}
	answer, err := metadata.metadata.GetInstanceIdentityDocument(ctx, &imds.GetInstanceIdentityDocumentInput{})
	if err != nil {
		return "", "", "", unanswered("the identity document", err)
	}
	mac, err := metadata.get(ctx, "mac")
	if err != nil {
		return "", "", "", err
	}
	vpc, err = metadata.get(ctx, "network/interfaces/macs/"+strings.ToLower(mac)+"/vpc-id")
	if err != nil {
		return "", "", "", err
	}
	return answer.AccountID, answer.Region, vpc, nil
}
