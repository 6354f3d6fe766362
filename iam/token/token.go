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

	"github.com/node-authorizer/node-authorizer/iam"
)

// Options say whose token is made, and for which cluster. The AWS SDK finds credentials
// in the environment, in its files, or has those of the machine.
type Options struct {
	// ClusterID is the cluster that the token is for. It must be given.
	ClusterID string
	// Region is the one whose STS is asked; empty for that of the SDK's settings, of
	// the instance if its role signs, or else for the global host of STS.
	Region string
	// Profile is one of the SDK's configuration files; empty for that of the
	// environment.
	Profile string
	// RoleARN is a role to assume first, SessionName the name of the session, and
	// ExternalID the external id that the role's trust policy requires. All are optional.
	RoleARN, SessionName, ExternalID string
	// Credentials are those that sign, or assume the role; nil for those that the SDK
	// finds.
	Credentials aws.CredentialsProvider
	// HTTP carries the SDK's requests; nil for its own client. With one, the variable
	// AWS_CA_BUNDLE must not be set, unless it is the SDK's own kind of client.
	HTTP aws.HTTPClient
	// Cache is the path of a file that keeps temporary credentials until they end, so
	// that they are not asked for again; empty for none. See [DefaultCache].
	Cache string
	// CacheFailed, if set, is called with the reason why the file is not used. The token is made all the
	// same.
	CacheFailed func(error)
}

// MinLife is how long a token has to be good when it is made: it has to reach the API
// server, and the server STS.
const MinLife = time.Minute

// expires is what X-Amz-Expires says, in seconds. STS takes a request for
// [iam.TokenLife] whatever it says; servers before version 0.4 of the reference want
// no more than 60.
const expires = "60"

// Make returns a token, and when it ends: when STS no longer takes its signature, or
// the credentials that signed it. That is [MinLife] from now at least: credentials that
// end before are an error. Errors have nothing of a token or of credentials.
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
		return "", time.Time{}, fmt.Errorf("the token would not be taken: %w", err)
	}
	endOfEnvironment(&credentials)
	end = request.NotAfter
	if credentials.CanExpire && credentials.Expires.Before(end) {
		end = credentials.Expires
	}
	if time.Until(end) < MinLife {
		return "", time.Time{}, fmt.Errorf("the credentials of AWS end at %s, less than %s from now, and a token ends with them: renew them",
			end.UTC().Format(time.RFC3339), MinLife)
	}
	return text, end, nil
}

// endOfEnvironment gives credentials of the environment the end that stands beside them,
// as aws configure export-credentials writes it, and which the SDK for Go leaves aside.
func endOfEnvironment(credentials *aws.Credentials) {
	if credentials.Source != config.CredentialsSourceName || credentials.CanExpire {
		return
	}
	if end, err := time.Parse(time.RFC3339, os.Getenv("AWS_CREDENTIAL_EXPIRATION")); err == nil {
		credentials.CanExpire, credentials.Expires = true, end
	}
}

// presign signs a request for the identity of whoever the credentials are of.
func presign(ctx context.Context, sdk aws.Config, clusterID string) (string, error) {
	signed, err := sts.NewPresignClient(sts.NewFromConfig(sdk)).PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{},
		func(o *sts.PresignOptions) {
			o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
				smithyhttp.SetHeaderValue(iam.ClusterHeader, clusterID),
				smithyhttp.SetHeaderValue("X-Amz-Expires", expires),
			))
		})
	if err != nil {
		return "", fmt.Errorf("signing the token: %w", err)
	}
	return signed.URL, nil
}

// anyHost takes every host for one of STS, because servers know which they ask.
type anyHost string

func (region anyHost) Host(string) ([]string, bool) {
	if region == globalRegion {
		return []string{globalScope}, true
	}
	return []string{string(region)}, true
}

// notRetrieved says why there are no credentials. Of an answer of STS it takes the
// code, and the message only where that says who may not do what: others may repeat
// the request, with its security token.
func (o Options) notRetrieved(err error) error {
	var answer smithy.APIError
	switch {
	case !errors.As(err, &answer):
		return fmt.Errorf("getting credentials of AWS: %w", err)
	case answer.ErrorCode() == "AccessDenied":
		err = fmt.Errorf("AccessDenied: %s", answer.ErrorMessage())
	default:
		err = errors.New(answer.ErrorCode())
	}
	if o.RoleARN != "" {
		return fmt.Errorf("assuming the role %s: %w", o.RoleARN, err)
	}
	return fmt.Errorf("getting credentials of AWS: %w", err)
}
