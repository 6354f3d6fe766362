package fakeaws_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

func newCloud(t *testing.T) *fakeaws.Cloud {
	t.Helper()
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	return cloud
}

func config(c fakeaws.Credentials, region string) aws.Config {
	return aws.Config{
		Region:      region,
		Credentials: credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.Token),
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} },
	}
}

func ec2Client(cloud *fakeaws.Cloud, c fakeaws.Credentials, region string) *ec2.Client {
	return ec2.NewFromConfig(config(c, region), func(o *ec2.Options) { o.BaseEndpoint = &cloud.EC2.URL })
}

func describe(t *testing.T, client *ec2.Client, id string) (types.Instance, error) {
	t.Helper()
	var found []types.Instance
	pages := ec2.NewDescribeInstancesPaginator(client, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			return types.Instance{}, err
		}
		for _, r := range page.Reservations {
			if aws.ToString(r.OwnerId) == "" {
				t.Error("a reservation without its owner")
			}
			found = append(found, r.Instances...)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d instances, not one", len(found))
	}
	return found[0], nil
}

// code returns the error code of a service.
func code(err error) string {
	var failure smithy.APIError
	if errors.As(err, &failure) {
		return failure.ErrorCode()
	}
	return ""
}

func TestEC2ReturnsInstancesOfTheAccountAndRegion(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{
		Tags:    map[string]string{"KubernetesCluster": "blue"},
		Profile: "arn:aws:iam::111122223333:instance-profile/nodes", Role: "nodes",
		Interfaces: []fakeaws.Interface{
			{Private: []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")}},
			{Private: []netip.Addr{netip.MustParseAddr("10.0.1.7")}, IPv6: []netip.Addr{netip.MustParseAddr("2001:db8::7")}},
		},
	})
	client := ec2Client(cloud, cloud.User(launched.Account, "server"), launched.Region)
	instance, err := describe(t, client, launched.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := aws.ToString(instance.PrivateDnsName), "ip-10-0-0-7.eu-west-1.compute.internal"; got != want {
		t.Errorf("private DNS name %q, want %q", got, want)
	}
	if instance.State.Name != types.InstanceStateNameRunning || aws.ToString(instance.VpcId) != launched.VPC {
		t.Errorf("state %v, VPC %v", instance.State.Name, aws.ToString(instance.VpcId))
	}
	if got := aws.ToString(instance.IamInstanceProfile.Arn); got != launched.Profile {
		t.Errorf("profile %q", got)
	}
	if len(instance.Tags) != 1 || aws.ToString(instance.Tags[0].Key) != "KubernetesCluster" {
		t.Errorf("tags %v", instance.Tags)
	}
	if len(instance.NetworkInterfaces) != 2 || len(instance.NetworkInterfaces[0].PrivateIpAddresses) != 2 ||
		aws.ToString(instance.NetworkInterfaces[1].Ipv6Addresses[0].Ipv6Address) != "2001:db8::7" {
		t.Errorf("interfaces %+v", instance.NetworkInterfaces)
	}

	for name, other := range map[string]*ec2.Client{
		"another account": ec2Client(cloud, cloud.User("444455556666", "server"), launched.Region),
		"another region":  ec2Client(cloud, cloud.User(launched.Account, "server"), "us-east-1"),
	} {
		if _, err := describe(t, other, launched.ID); code(err) != "InvalidInstanceID.NotFound" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatesOfAnInstance(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{})
	client := ec2Client(cloud, cloud.User(launched.Account, "server"), launched.Region)
	steps := []struct {
		name string
		do   func(string)
		want types.InstanceStateName
	}{
		{"stopped", cloud.Stop, types.InstanceStateNameStopped},
		{"started", cloud.Start, types.InstanceStateNameRunning},
		{"terminated", cloud.Terminate, types.InstanceStateNameTerminated},
	}
	for _, step := range steps {
		step.do(launched.ID)
		instance, err := describe(t, client, launched.ID)
		if err != nil {
			t.Fatal(err)
		}
		if instance.State.Name != step.want {
			t.Errorf("%s: state %s", step.name, instance.State.Name)
		}
	}
	if after, _ := cloud.Instance(launched.ID); !after.PendingTime.After(launched.PendingTime) {
		t.Error("starting again did not move the pending time")
	}
	cloud.Forget(launched.ID)
	if _, err := describe(t, client, launched.ID); code(err) != "InvalidInstanceID.NotFound" {
		t.Errorf("forgotten: %v", err)
	}
}

func TestEC2PagesAndFails(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{})
	client := ec2Client(cloud, cloud.User(launched.Account, "server"), launched.Region)
	cloud.PrecedeByEmptyPages(2)
	if _, err := describe(t, client, launched.ID); err != nil {
		t.Error(err)
	}
	if got := cloud.EC2.Requests(); got != 3 {
		t.Errorf("%d requests for three pages", got)
	}
	cloud.PrecedeByEmptyPages(0)
	for kind, want := range map[fakeaws.FaultKind]string{
		fakeaws.Throttled: "RequestLimitExceeded", fakeaws.Broken: "InternalError",
		fakeaws.Forbidden: "UnauthorizedOperation", fakeaws.Down: "",
	} {
		cloud.EC2.Break(fakeaws.Fault{Kind: kind, Times: 1})
		if _, err := describe(t, client, launched.ID); err == nil || code(err) != want {
			t.Errorf("fault %v: %v, want code %q", kind, err, want)
		}
		if _, err := describe(t, client, launched.ID); err != nil {
			t.Errorf("after fault %v: %v", kind, err)
		}
	}
}

func TestHangingServiceWaitsForCallerOrHeal(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{})
	client := ec2Client(cloud, cloud.User(launched.Account, "server"), launched.Region)
	cloud.EC2.Break(fakeaws.Fault{Kind: fakeaws.Hanging})

	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	ask := func(ctx context.Context) {
		_, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{launched.ID}})
		failed <- err
	}
	go ask(ctx)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled caller: %v", err)
	}
	before := cloud.EC2.Requests()
	go ask(t.Context())
	for cloud.EC2.Requests() == before {
		select {
		case err := <-failed:
			t.Fatalf("answered while hanging: %v", err)
		default:
		}
	}
	cloud.EC2.Heal()
	if err := <-failed; err != nil {
		t.Errorf("after Heal: %v", err)
	}
}

func TestSTSReturnsTheSigner(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{Role: "nodes", Profile: "arn:aws:iam::111122223333:instance-profile/nodes"})
	role, user := cloud.Role(launched.ID), cloud.User("444455556666", "alice")
	forged := role
	forged.SecretAccessKey = user.SecretAccessKey
	untokened := role
	untokened.Token = ""
	for name, test := range map[string]struct {
		credentials fakeaws.Credentials
		arn, code   string
	}{
		"a role":           {role, "arn:aws:sts::111122223333:assumed-role/nodes/" + launched.ID, ""},
		"a user":           {user, "arn:aws:iam::444455556666:user/alice", ""},
		"a wrong secret":   {forged, "", "SignatureDoesNotMatch"},
		"no session token": {untokened, "", "InvalidClientTokenId"},
		"an unknown key":   {fakeaws.Credentials{AccessKeyID: "AKIAUNKNOWN", SecretAccessKey: "x"}, "", "InvalidClientTokenId"},
	} {
		client := sts.NewFromConfig(config(test.credentials, "eu-west-1"), func(o *sts.Options) { o.BaseEndpoint = &cloud.STS.URL })
		answer, err := client.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		if code(err) != test.code || err == nil && aws.ToString(answer.Arn) != test.arn {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
}

func TestMetadataRequiresASession(t *testing.T) {
	cloud := newCloud(t)
	m, err := cloud.Metadata(cloud.Launch(fakeaws.Instance{}).ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, method, path string
		header             map[string]string
		want               int
	}{
		{"no token", "GET", "/latest/meta-data/instance-id", nil, 401},
		{"an invented token", "GET", "/latest/meta-data/instance-id", map[string]string{"X-aws-ec2-metadata-token": "x"}, 401},
		{"a session without a lifetime", "PUT", "/latest/api/token", nil, 400},
		{"a session of seven hours", "PUT", "/latest/api/token", map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "25200"}, 400},
		{
			"a session through a proxy", "PUT", "/latest/api/token",
			map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "60", "X-Forwarded-For": "10.0.0.9"},
			403,
		},
		{"a session by GET", "GET", "/latest/api/token", nil, 405},
		{"a session", "PUT", "/latest/api/token", map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "60"}, 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, m.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range test.header {
			req.Header.Set(key, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.want {
			t.Errorf("%s: status %d, want %d", test.name, resp.StatusCode, test.want)
		}
	}
}

func imdsClient(m *fakeaws.Metadata) *imds.Client {
	return imds.New(imds.Options{Endpoint: m.URL, Retryer: aws.NopRetryer{}, EnableFallback: aws.FalseTernary})
}

func read(t *testing.T, client *imds.Client, path string) string {
	t.Helper()
	answer, err := client.GetDynamicData(t.Context(), &imds.GetDynamicDataInput{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Content.Close()
	text, err := io.ReadAll(answer.Content)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMetadataIsThatOfItsInstance(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{Role: "nodes", Profile: "arn:aws:iam::111122223333:instance-profile/nodes"})
	m, err := cloud.Metadata(launched.ID)
	if err != nil {
		t.Fatal(err)
	}
	client := imdsClient(m)
	answer, err := client.GetInstanceIdentityDocument(t.Context(), &imds.GetInstanceIdentityDocumentInput{})
	if err != nil {
		t.Fatal(err)
	}
	if answer.InstanceID != launched.ID || answer.AccountID != launched.Account || answer.Region != launched.Region ||
		answer.PrivateIP != launched.Interfaces[0].Private[0].String() || !answer.PendingTime.Equal(launched.PendingTime) {
		t.Errorf("document %+v is not that of %+v", answer.InstanceIdentityDocument, launched)
	}
	if region, err := client.GetRegion(t.Context(), &imds.GetRegionInput{}); err != nil || region.Region != launched.Region {
		t.Errorf("region %v, %v", region, err)
	}
	if info, err := client.GetIAMInfo(t.Context(), &imds.GetIAMInfoInput{}); err != nil || info.InstanceProfileArn != launched.Profile {
		t.Errorf("IAM info %+v, %v", info, err)
	}
	answered, err := client.GetMetadata(t.Context(), &imds.GetMetadataInput{Path: "iam/security-credentials/nodes"})
	if err != nil {
		t.Fatal(err)
	}
	var role struct{ AccessKeyID string }
	if err := json.NewDecoder(answered.Content).Decode(&role); err != nil || role.AccessKeyID != cloud.Role(launched.ID).AccessKeyID {
		t.Errorf("credentials %+v, %v", role, err)
	}

	cloud.Stop(launched.ID)
	if _, err := client.GetRegion(t.Context(), &imds.GetRegionInput{}); err == nil {
		t.Error("a stopped machine reads its metadata")
	}
}

func TestEachCloudHasItsOwnKeys(t *testing.T) {
	one, two := newCloud(t), newCloud(t)
	for i, certificate := range one.Certificates() {
		if certificate.Equal(two.Certificates()[i]) {
			t.Errorf("certificate %d is the same", i)
		}
		if got, want := certificate.Subject.String(), "O=Amazon Web Services LLC,L=Seattle,ST=Washington State,C=US"; got != want {
			t.Errorf("subject %q, want %q", got, want)
		}
	}
}

func TestSignaturesAreInLines(t *testing.T) {
	cloud := newCloud(t)
	m, err := cloud.Metadata(cloud.Launch(fakeaws.Instance{}).ID)
	if err != nil {
		t.Fatal(err)
	}
	client := imdsClient(m)
	for _, form := range []string{"pkcs7", "rsa2048", "signature"} {
		text := read(t, client, "instance-identity/"+form)
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if len(line) != 76 && i < len(lines)-1 || len(line) > 76 || line == "" {
				t.Errorf("%s: line %d has %d characters", form, i, len(line))
			}
		}
		if _, err := base64.StdEncoding.DecodeString(strings.Join(lines, "")); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	if got, want := sha256.Sum256([]byte(read(t, client,
		"instance-identity/document"))), sha256.Sum256(instance(t, cloud).Document()); got != want {
		t.Error("the document is not the instance's")
	}
}

// instance returns the only instance of a cloud.
func instance(t *testing.T, cloud *fakeaws.Cloud) *fakeaws.Instance {
	t.Helper()
	only, ok := cloud.Instance("i-0000000000f000001")
	if !ok {
		t.Fatal("the first instance has another id")
	}
	return &only
}
