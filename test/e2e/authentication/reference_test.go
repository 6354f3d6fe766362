package authentication

import (
	awsv1 "github.com/aws/aws-sdk-go/aws"
	credentialsv1 "github.com/aws/aws-sdk-go/aws/credentials"
	endpointsv1 "github.com/aws/aws-sdk-go/aws/endpoints"
	sessionv1 "github.com/aws/aws-sdk-go/aws/session"
	reference "sigs.k8s.io/aws-iam-authenticator/pkg/token"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// ReferenceToken makes a token with the client of aws-iam-authenticator.
func ReferenceToken(with fakeaws.Credentials, clusterID string) (string, error) {
	session, err := sessionv1.NewSession(&awsv1.Config{
		Region: awsv1.String(Region), STSRegionalEndpoint: endpointsv1.RegionalSTSEndpoint,
		Credentials: credentialsv1.NewStaticCredentials(with.AccessKeyID, with.SecretAccessKey, with.Token),
	})
	if err != nil {
		return "", err
	}
	generator, err := reference.NewGenerator(false, false)
	if err != nil {
		return "", err
	}
	token, err := generator.GetWithOptions(&reference.GetTokenOptions{ClusterID: clusterID, Region: Region, Session: session})
	return token.Token, err
}
