package fakeaws_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// newFront returns a front, and a client of HTTP that goes through it.
func newFront(t *testing.T) (*fakeaws.Cloud, *fakeaws.Front, *http.Client) {
	t.Helper()
	cloud := newCloud(t)
	front, err := cloud.Front(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	transport := front.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	return cloud, front, &http.Client{Transport: transport}
}

func through(client *http.Client, c fakeaws.Credentials, region string) aws.Config {
	config := config(c, region)
	config.HTTPClient = client
	return config
}

func TestFrontServesTheHostsOfAWS(t *testing.T) {
	cloud, front, client := newFront(t)
	launched := cloud.Launch(fakeaws.Instance{Region: "eu-central-1"})
	alice := cloud.User(launched.Account, "alice")
	if _, err := describe(t, ec2.NewFromConfig(through(client, alice, launched.Region)), launched.ID); err != nil {
		t.Error(err)
	}
	for _, options := range []func(*sts.Options){
		func(*sts.Options) {},
		func(o *sts.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled },
		func(o *sts.Options) { o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled },
		func(o *sts.Options) { o.Region = "aws-global" },
		func(o *sts.Options) {
			o.BaseEndpoint = aws.String("https://vpce-0a1b2c.sts.eu-west-1.vpce.amazonaws.com")
		},
	} {
		answer, err := sts.NewFromConfig(through(client, alice, "eu-west-1")).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{},
			options)
		if err != nil || aws.ToString(answer.Arn) != "arn:aws:iam::111122223333:user/alice" {
			t.Errorf("%+v, %v", answer, err)
		}
	}
	for _, host := range []string{
		"ec2.eu-central-1.amazonaws.com", "sts.eu-west-1.amazonaws.com", "sts-fips.eu-west-1.amazonaws.com",
		"sts.eu-west-1.api.aws", "sts.amazonaws.com", "vpce-0a1b2c.sts.eu-west-1.vpce.amazonaws.com",
	} {
		if front.Requests(host) != 1 {
			t.Errorf("%d requests to %s", front.Requests(host), host)
		}
	}
}

func TestFrontRefusesOtherHosts(t *testing.T) {
	_, _, client := newFront(t)
	for _, target := range []string{
		"https://api.example.com", "https://sts", "https://s3.eu-west-1.amazonaws.com",
		"https://sts.eu-west-1.amazonaws.com:8443",
	} {
		resp, err := client.Get(target)
		if err == nil {
			resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestMisdirectedRequestsAreRefused(t *testing.T) {
	_, _, client := newFront(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://sts.eu-west-1.amazonaws.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "ec2.eu-west-1.amazonaws.com"
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestProgramUsesTheFrontByItsEnvironment runs this test again as another program that
// has only the environment.
func TestProgramUsesTheFrontByItsEnvironment(t *testing.T) {
	if os.Getenv("FAKEAWS_PROGRAM") != "" {
		resp, err := http.Get("https://sts.eu-west-1.amazonaws.com/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 403 ||
			!strings.Contains(string(text), "MissingAuthenticationToken") {
			t.Errorf("status %d, %v, %s", resp.StatusCode, err, text)
		}
		resp, err = http.Get(os.Getenv("FAKEAWS_PROGRAM"))
		if err == nil {
			resp.Body.Close()
		}
		if !errors.As(err, new(x509.UnknownAuthorityError)) { // a proxy would refuse
			t.Errorf("a loopback address is not reached directly: %v", err)
		}
		return
	}
	_, front, _ := newFront(t)
	loopback := httptest.NewUnstartedServer(http.NotFoundHandler())
	loopback.Config.ErrorLog = log.New(io.Discard, "", 0)
	loopback.StartTLS()
	defer loopback.Close()
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProgramUsesTheFrontByItsEnvironment$")
	program.Env = append(append(os.Environ(), front.Environment()...), "FAKEAWS_PROGRAM="+loopback.URL)
	if out, err := program.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if front.Requests("sts.eu-west-1.amazonaws.com") != 1 {
		t.Errorf("%d requests to STS", front.Requests("sts.eu-west-1.amazonaws.com"))
	}
}

func TestHostsOfARegionRequireItsSignatures(t *testing.T) {
	cloud, _, client := newFront(t)
	alice := cloud.User(fakeaws.DefaultAccount, "alice")
	for host, good := range map[string]bool{
		"sts.eu-west-1.amazonaws.com": true, "sts.us-east-2.amazonaws.com": false, "sts-fips.us-east-2.amazonaws.com": false,
		"sts.amazonaws.com": false,
	} {
		_, err := sts.NewFromConfig(through(client, alice, "eu-west-1")).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{},
			func(o *sts.Options) { o.BaseEndpoint = aws.String("https://" + host) })
		if good != (err == nil) || !good && code(err) != "SignatureDoesNotMatch" {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestSTSAnswersInJSONOnRequest(t *testing.T) {
	cloud, _, client := newFront(t)
	ask := func(c fakeaws.Credentials) (int, string, map[string]map[string]any) {
		t.Helper()
		signed, err := sts.NewPresignClient(sts.NewFromConfig(config(c, "eu-west-1"))).PresignGetCallerIdentity(t.Context(),
			&sts.GetCallerIdentityInput{})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, signed.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]json.RawMessage
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		read := map[string]map[string]any{}
		for key, value := range document {
			var object map[string]any
			if json.Unmarshal(value, &object) == nil {
				read[key] = object
			}
		}
		return resp.StatusCode, resp.Header.Get("Content-Type"), read
	}
	status, kind, answer := ask(cloud.FederatedUser(fakeaws.DefaultAccount, "bob"))
	result, ok := answer["GetCallerIdentityResponse"]["GetCallerIdentityResult"].(map[string]any)
	if status != 200 || kind != "application/json" || !ok || result["Arn"] != "arn:aws:sts::111122223333:federated-user/bob" ||
		result["Account"] != "111122223333" || result["UserId"] != "111122223333:bob" || len(result) != 3 {
		t.Errorf("status %d, %s, %v", status, kind, answer)
	}
	status, _, answer = ask(fakeaws.Credentials{AccessKeyID: "AKIAUNKNOWN", SecretAccessKey: "x"})
	if status != 403 || answer["Error"]["Code"] != "InvalidClientTokenId" || answer["Error"]["Type"] != "Sender" {
		t.Errorf("status %d, %v", status, answer)
	}
	cloud.STS.Break(fakeaws.Fault{Kind: fakeaws.Throttled})
	if status, _, answer = ask(cloud.Root(fakeaws.DefaultAccount)); status != 400 || answer["Error"]["Code"] != "Throttling" {
		t.Errorf("status %d, %v", status, answer)
	}
}

func TestPrincipals(t *testing.T) {
	cloud, _, client := newFront(t)
	const account = fakeaws.DefaultAccount
	identity := func(c fakeaws.Credentials) (string, string, string) {
		t.Helper()
		answer, err := sts.NewFromConfig(through(client, c, "eu-west-1")).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		if err != nil {
			t.Fatal(err)
		}
		return aws.ToString(answer.Arn), aws.ToString(answer.Account), aws.ToString(answer.UserId)
	}
	if arn, of, id := identity(cloud.Root(account)); arn != "arn:aws:iam::111122223333:root" || of != account || id != account {
		t.Errorf("root is %s of %s with the id %s", arn, of, id)
	}
	invented := fakeaws.Principal{ARN: "arn:aws:iam::111122223333:user/alice", Account: "444455556666", UserID: "x"}
	if arn, of, id := identity(cloud.Principal(invented)); arn != invented.ARN || of != invented.Account || id != invented.UserID {
		t.Errorf("an invented principal is %s of %s with the id %s", arn, of, id)
	}
	one, _, oneID := identity(cloud.Session(account, "node", "i-0123456789abcdef0"))
	two, _, twoID := identity(cloud.Session(account, "node", "alice"))
	oneRole, _, _ := strings.Cut(oneID, ":")
	if one != "arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0" ||
		two != "arn:aws:sts::111122223333:assumed-role/node/alice" ||
		twoID != oneRole+":alice" {
		t.Errorf("sessions of a role: %s %s, %s %s", one, oneID, two, twoID)
	}
}

func TestSessionsMayHaveAnyName(t *testing.T) {
	cloud, _, client := newFront(t)
	const role = "arn:aws:iam::444455556666:role/teams/node"
	alice := sts.NewFromConfig(through(client, cloud.User(fakeaws.DefaultAccount, "alice"), "eu-west-1"))
	assume := func(externalID *string) (*sts.AssumeRoleOutput, error) {
		return alice.AssumeRole(t.Context(), &sts.AssumeRoleInput{
			RoleArn: aws.String(role), RoleSessionName: aws.String("i-0123456789abcdef0"), ExternalId: externalID,
		})
	}
	answer, err := assume(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := answer.Credentials
	assumed := sts.NewFromConfig(through(client, fakeaws.Credentials{
		AccessKeyID: *got.AccessKeyId, SecretAccessKey: *got.SecretAccessKey, Token: *got.SessionToken,
	}, "eu-west-1"))
	who, err := assumed.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || aws.ToString(who.Arn) != "arn:aws:sts::444455556666:assumed-role/node/i-0123456789abcdef0" ||
		aws.ToString(who.UserId) != *answer.AssumedRoleUser.AssumedRoleId {
		t.Errorf("%+v, %v", who, err)
	}

	cloud.DemandExternalID(role, "shop-7")
	for id, good := range map[string]bool{"": false, "shop-8": false, "shop-7": true} {
		given := aws.String(id)
		if id == "" {
			given = nil
		}
		if _, err := assume(given); good != (err == nil) || !good && code(err) != "AccessDenied" {
			t.Errorf("external id %q: %v", id, err)
		}
	}
}

func TestFaultsApplyInTheFront(t *testing.T) {
	cloud, _, client := newFront(t)
	cloud.STS.Break(fakeaws.Fault{Kind: fakeaws.Down, Times: 2}) // the client tries once more by itself
	_, err := sts.NewFromConfig(through(client, cloud.Root(fakeaws.DefaultAccount), "eu-west-1")).GetCallerIdentity(t.Context(),
		&sts.GetCallerIdentityInput{})
	broken := new(url.Error)
	if !errors.As(err, &broken) {
		t.Errorf("error %v", err)
	}
}
