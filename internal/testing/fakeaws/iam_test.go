package fakeaws_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

func iamClient(cloud *fakeaws.Cloud, c fakeaws.Credentials) *iam.Client {
	return iam.NewFromConfig(config(c, "eu-west-1"), func(o *iam.Options) { o.BaseEndpoint = &cloud.IAM.URL })
}

func profile(t *testing.T, client *iam.Client, name string) (*types.InstanceProfile, error) {
	t.Helper()
	answer, err := client.GetInstanceProfile(t.Context(), &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if err != nil {
		return nil, err
	}
	return answer.InstanceProfile, nil
}

func TestIAMReturnsTheProfileOfAnInstance(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{Profile: "arn:aws:iam::111122223333:instance-profile/nodes", Role: "node"})
	client := iamClient(cloud, cloud.User(launched.Account, "server"))
	got, err := profile(t, client, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	if aws.ToString(got.Arn) != launched.Profile || aws.ToString(got.InstanceProfileName) != "nodes" || aws.ToString(got.Path) != "/" ||
		got.CreateDate == nil || len(got.Roles) != 1 ||
		aws.ToString(got.Roles[0].Arn) != "arn:aws:iam::111122223333:role/node" || aws.ToString(got.Roles[0].RoleName) != "node" {
		t.Errorf("profile %+v", got)
	}
	shown, err := describe(t, ec2Client(cloud, cloud.User(launched.Account, "server"), launched.Region), launched.ID)
	if err != nil {
		t.Fatal(err)
	}
	if aws.ToString(shown.IamInstanceProfile.Id) != aws.ToString(got.InstanceProfileId) {
		t.Errorf("EC2 knows the profile by %s, IAM by %s", aws.ToString(shown.IamInstanceProfile.Id), aws.ToString(got.InstanceProfileId))
	}
}

func TestIAMReturnsProfilesThatAreSet(t *testing.T) {
	cloud := newCloud(t)
	const arn = "arn:aws:iam::111122223333:instance-profile/kubernetes/blue/nodes"
	cloud.SetInstanceProfile(fakeaws.InstanceProfile{ARN: arn, Roles: []string{"arn:aws:iam::111122223333:role/kubernetes/node"}})
	client := iamClient(cloud, cloud.User("111122223333", "server"))
	got, err := profile(t, client, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	if aws.ToString(got.Arn) != arn || aws.ToString(got.Path) != "/kubernetes/blue/" ||
		aws.ToString(got.Roles[0].RoleName) != "node" || aws.ToString(got.Roles[0].Path) != "/kubernetes/" {
		t.Errorf("profile %+v", got)
	}
	cloud.DeleteInstanceProfile(arn)
	if _, err := profile(t, client, "nodes"); code(err) != "NoSuchEntity" {
		t.Errorf("a deleted profile: %v", err)
	}
}

func TestIAMRefusesLikeTheRealOne(t *testing.T) {
	cloud := newCloud(t)
	launched := cloud.Launch(fakeaws.Instance{Profile: "arn:aws:iam::111122223333:instance-profile/nodes", Role: "node"})
	good := cloud.User(launched.Account, "server")
	wrong := good
	wrong.SecretAccessKey = "wrong"
	for _, test := range []struct {
		name, profile, want string
		credentials         fakeaws.Credentials
	}{
		{"no such profile", "others", "NoSuchEntity", good},
		{"a profile of another account", "nodes", "NoSuchEntity", cloud.User("444455556666", "server")},
		{"a wrong secret", "nodes", "SignatureDoesNotMatch", wrong},
		{"unknown credentials", "nodes", "InvalidClientTokenId", fakeaws.Credentials{AccessKeyID: "AKIAX", SecretAccessKey: "x"}},
	} {
		if _, err := profile(t, iamClient(cloud, test.credentials), test.profile); code(err) != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	client := iamClient(cloud, good)
	if _, err := client.ListRoles(t.Context(), &iam.ListRolesInput{}); code(err) != "InvalidAction" {
		t.Errorf("another action: %v", err)
	}
	for kind, want := range map[fakeaws.FaultKind]string{
		fakeaws.Throttled: "Throttling", fakeaws.Broken: "ServiceFailure", fakeaws.Forbidden: "AccessDenied",
	} {
		cloud.IAM.Break(fakeaws.Fault{Kind: kind, Times: 1})
		if _, err := profile(t, client, "nodes"); code(err) != want {
			t.Errorf("fault %v: %v, want %s", kind, err, want)
		}
	}
	if got := cloud.IAM.Requests(); got != 8 {
		t.Errorf("%d requests", got)
	}
}

// Under its own name, IAM is one service for all regions, and requests are signed for one
// region.
func TestIAMRequiresSignaturesForItsRegion(t *testing.T) {
	cloud := newCloud(t)
	cloud.Launch(fakeaws.Instance{Profile: "arn:aws:iam::111122223333:instance-profile/nodes", Role: "node"})
	front, err := cloud.Front(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	settings := config(cloud.User("111122223333", "server"), "eu-west-1")
	settings.HTTPClient = &http.Client{Transport: front.Transport()}
	got, err := profile(t, iam.NewFromConfig(settings), "nodes")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Roles) != 1 {
		t.Errorf("roles %+v", got.Roles)
	}
	elsewhere := iam.NewFromConfig(settings, func(o *iam.Options) { o.BaseEndpoint = aws.String("https://iam.amazonaws.com") })
	if _, err := profile(t, elsewhere, "nodes"); code(err) != "SignatureDoesNotMatch" {
		t.Errorf("signed for eu-west-1: %v", err)
	}
	if got := front.Requests("iam.amazonaws.com"); got != 2 {
		t.Errorf("%d requests came under IAM's own name", got)
	}
}
