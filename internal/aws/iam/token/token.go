package token

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// Options are the settings of a token. The AWS SDK finds credentials in the environment,
// in its files, or on the machine.
type Options struct {
	// ClusterID is the cluster that the token is for. Required.
	ClusterID string
	// Region is the region of STS. The default is the region of the SDK's settings, then the
	// region of the instance if its role signs, and then the global host of STS.
	Region string
	// Profile is a profile of the SDK's configuration files. The default is the
	// profile that the environment names.
	Profile string
	// RoleARN is a role to assume first, SessionName the name of the session, and
	// ExternalID the external id that the role's trust policy requires. All are optional.
	RoleARN, SessionName, ExternalID string
	// Credentials sign, or assume the role. The default is the credentials that the SDK finds.
	Credentials aws.CredentialsProvider
	// HTTP carries the SDK's requests. The default is the SDK's own client. AWS_CA_BUNDLE
	// must not be set with another kind of client than the SDK's.
	HTTP aws.HTTPClient
	// Cache is the path of a file that caches temporary credentials. If it is empty, they
	// are not cached. See [DefaultCache].
	Cache string
	// CacheFailed, if set, is called with the reason why the cache is not used. The token
	// is made without it.
	CacheFailed func(error)
}

// MinLife is the minimum validity of a new token. It must reach the API server, and the
// request STS.
const MinLife = time.Minute

// expires is the value of X-Amz-Expires, in seconds. STS accepts a request for
// [iam.TokenLife] regardless of it. Servers before version 0.4 of the reference require
// at most 60.
const expires = "60"

// Make returns a token and its expiry: the end of its signature or of the credentials
// that signed it, at least [MinLife] from now. Credentials that expire earlier are an
// error. Errors contain nothing of a token or of credentials.
func Make(ctx context.Context, options Options) (text string, end time.Time, err error) {
	if err := options.check(); err != nil {
		return "", time.Time{}, err
	}
	sdk, err := options.load(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	credentials, err := sdk.Credentials.Retrieve(ctx)
	if err != nil {
		return "", time.Time{}, options.notRetrieved(err)
	}
	signed, err := presign(ctx, sdk, options.ClusterID)
	if err != nil {
		return "", time.Time{}, err
	}
	text = iam.TokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(signed))
	request, err := iam.ParseToken(text, time.Now(), anyHost(sdk.Region))
	if err != nil {
		return "", time.Time{}, fmt.Errorf("servers would refuse the token: %w", err)
	}
	endOfEnvironment(&credentials)
	end = request.NotAfter
	if credentials.CanExpire && credentials.Expires.Before(end) {
		end = credentials.Expires
	}
	if time.Until(end) < MinLife {
		return "", time.Time{}, fmt.Errorf("the AWS credentials expire at %s, less than %s from now, and the token "+
			"expires with them: renew them",
			end.UTC().Format(time.RFC3339), MinLife)
	}
	return text, end, nil
}

// endOfEnvironment sets the expiry of credentials of the environment. It is in a variable
// that aws configure export-credentials writes and the SDK for Go ignores.
func endOfEnvironment(credentials *aws.Credentials) {
	if credentials.Source != config.CredentialsSourceName || credentials.CanExpire {
		return
	}
	if end, err := time.Parse(time.RFC3339, os.Getenv("AWS_CREDENTIAL_EXPIRATION")); err == nil {
		credentials.CanExpire, credentials.Expires = true, end
	}
}

// presign signs a GetCallerIdentity request with the credentials.
func presign(ctx context.Context, sdk aws.Config, clusterID string) (string, error) {
	signed, err := sts.NewPresignClient(sts.NewFromConfig(sdk)).PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{},
		func(o *sts.PresignOptions) {
			o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
				smithyhttp.SetHeaderValue(iam.ClusterHeader, clusterID),
				smithyhttp.SetHeaderValue("X-Amz-Expires", expires),
			))
		})
	if err != nil {
		return "", fmt.Errorf("sign the token: %w", err)
	}
	return signed.URL, nil
}

// anyHost accepts every host as one of STS: the server decides which hosts it calls.
type anyHost string

func (region anyHost) Host(string) ([]string, bool) {
	if region == globalRegion {
		return []string{globalScope}, true
	}
	return []string{string(region)}, true
}

// notRetrieved returns the error for missing credentials. Of an answer of STS it keeps
// the code, and the message only for AccessDenied: other messages may repeat the request,
// with its security token.
func (o Options) notRetrieved(err error) error {
	var answer smithy.APIError
	switch {
	case !errors.As(err, &answer):
		return fmt.Errorf("get AWS credentials: %w", err)
	case answer.ErrorCode() == "AccessDenied":
		err = fmt.Errorf("AccessDenied: %s", answer.ErrorMessage())
	default:
		err = errors.New(answer.ErrorCode())
	}
	if o.RoleARN != "" {
		return fmt.Errorf("assume the role %s: %w", o.RoleARN, err)
	}
	return fmt.Errorf("get AWS credentials: %w", err)
}
