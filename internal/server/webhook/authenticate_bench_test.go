package webhook_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/instances"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/token"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
)

// BenchmarkAuthenticate compares the cost of a node's token that is in the cache with a
// handler that returns the same node for every token.
func BenchmarkAuthenticate(b *testing.B) {
	text, err := json.Marshal(map[string]any{
		"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": map[string]any{"token": tokenOfNode(b)},
	})
	if err != nil {
		b.Fatal(err)
	}
	user := &iam.User{Username: "system:node:worker-1", Groups: []string{"system:nodes"}}
	floor := webhook.Authenticate(func(context.Context, string) (*iam.User, error) { return user, nil }, nil, webhook.Options{})
	compare(b, authenticateStack(b), floor, string(text))
}

// authenticateStack returns the handler as a server composes it.
func authenticateStack(b *testing.B) http.Handler {
	metrics := observe.NewMetrics()
	refusals := observe.NewRefusals(logr.Discard(), observe.RefusalOptions{})
	hosts, err := sts.NewHosts(b.Context(), "aws", nil)
	if err != nil {
		b.Fatal(err)
	}
	verifier, err := sts.New(sts.Options{
		ClusterID: "blue", Hosts: hosts, Transport: oneCaller{}, Observe: stsMetrics{metrics},
		Timeout: 10 * time.Second, MaxInFlight: 100, PerSecond: 200, Burst: 400, CacheTTL: time.Hour, CacheSize: 10_000,
	})
	if err != nil {
		b.Fatal(err)
	}
	mappings, _ := iam.Collect([]iam.Mapping{{
		Kind: iam.RoleMapping, ARN: "arn:aws:iam::111122223333:role/nodes", Username: "system:node:{{EC2PrivateDNSName}}",
		Groups: []string{"system:bootstrappers", "system:nodes"}, Source: "ConfigMap kube-system/aws-auth",
	}})
	authenticator := iam.NewAuthenticator(iam.Options{
		Verifier: verifier, Mappings: oneSource{mappings}, Reserved: iam.DefaultReserved(),
		Instances: instances.New(instances.Options{
			EC2: ec2instances.New(ec2instances.Options{DescribeInstances: oneInstance{}.DescribeInstances}),
			IAM: oneInstance{}.GetInstanceProfile, TTL: time.Hour, Size: 1000, PerSecond: 10, Burst: 20,
		}),
	})
	evaluate := refusals.Authenticate(metrics.Authenticate(authenticator.Authenticate))
	return metrics.HTTP("authenticate", webhook.Authenticate(evaluate, nil, webhook.Options{}))
}

// tokenOfNode returns a token as long as the tokens of instances, most of which is the security
// token.
func tokenOfNode(b *testing.B) string {
	made, _, err := token.Make(b.Context(), token.Options{
		ClusterID: "blue", Region: "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider("ASIAIOSFODNN7EXAMPLE", "secret", strings.Repeat("IQoJb3JpZ2luX2Vj", 40)),
	})
	if err != nil {
		b.Fatal(err)
	}
	return made
}

const (
	instanceOfNode = "i-0123456789abcdef0"
	profileOfNodes = "arn:aws:iam::111122223333:instance-profile/nodes"
)

// oneCaller is an STS that returns the same identity for every token.
type oneCaller struct{}

func (oneCaller) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(
		`{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"111122223333",` +
			`"Arn":"arn:aws:sts::111122223333:assumed-role/nodes/` + instanceOfNode + `",` +
			`"UserId":"AROAIOSFODNN7EXAMPLE1:` + instanceOfNode + `"}}}`))}, nil
}

type stsMetrics struct{ *observe.Metrics }

func (m stsMetrics) STSRequest(outcome sts.Outcome, status int, took time.Duration) {
	m.Metrics.STSRequest(string(outcome), status, took)
}

type oneSource struct{ *iam.Mappings }

func (s oneSource) Find(canonical, account string) (iam.Mapping, bool, error) {
	m, ok := s.Mappings.Find(canonical, account, iam.MatchName)
	return m, ok, nil
}

// oneInstance is an EC2 and an IAM with one instance.
type oneInstance struct{}

func (oneInstance) DescribeInstances(
	context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options),
) (*ec2.DescribeInstancesOutput, error) {
	return &ec2.DescribeInstancesOutput{Reservations: []ec2types.Reservation{{
		OwnerId: aws.String("111122223333"),
		Instances: []ec2types.Instance{{
			InstanceId: aws.String(instanceOfNode), PrivateDnsName: aws.String("ip-10-0-0-1.eu-west-1.compute.internal"),
			State:              &ec2types.InstanceState{Name: ec2types.InstanceStateNameRunning},
			IamInstanceProfile: &ec2types.IamInstanceProfile{Arn: aws.String(profileOfNodes), Id: aws.String("AIPAIOSFODNN7EXAMPLE1")},
		}},
	}}}, nil
}

func (oneInstance) GetInstanceProfile(
	context.Context, *awsiam.GetInstanceProfileInput, ...func(*awsiam.Options),
) (*awsiam.GetInstanceProfileOutput, error) {
	return &awsiam.GetInstanceProfileOutput{InstanceProfile: &iamtypes.InstanceProfile{
		Arn: aws.String(profileOfNodes), InstanceProfileId: aws.String("AIPAIOSFODNN7EXAMPLE1"),
		Roles: []iamtypes.Role{{Arn: aws.String("arn:aws:iam::111122223333:role/nodes")}},
	}}, nil
}
