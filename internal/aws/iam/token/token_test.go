package token_test

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/token"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

const account = "111122223333"

// world is a fake AWS under the real host names, with empty settings of the SDK.
type world struct {
	*fakeaws.Cloud
	http *http.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	front, err := cloud.Front(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	transport := front.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_CREDENTIAL_EXPIRATION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "AWS_CA_BUNDLE", "AWS_USE_FIPS_ENDPOINT",
		"AWS_USE_DUALSTACK_ENDPOINT",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return &world{cloud, &http.Client{Transport: transport}}
}

// use sets the credentials in the environment.
func use(t *testing.T, c fakeaws.Credentials) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", c.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", c.SecretAccessKey)
	t.Setenv("AWS_SESSION_TOKEN", c.Token)
}

func (w *world) make(t *testing.T, options token.Options) (text string, end time.Time) {
	t.Helper()
	options.ClusterID, options.HTTP = "blue", w.http
	text, end, err := token.Make(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return text, end
}

// caller returns the caller of a token by our own verifier.
func (w *world) caller(t *testing.T, text string) *iam.Caller {
	t.Helper()
	hosts, err := sts.NewHosts(t.Context(), "aws", nil)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := sts.New(sts.Options{
		ClusterID: "blue", Hosts: hosts, Transport: w.http.Transport,
		Timeout: 10 * time.Second, MaxInFlight: 100, PerSecond: 200, Burst: 400, CacheTTL: time.Minute, CacheSize: 10_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := verifier.Verify(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return caller
}

func decoded(t *testing.T, text string) *url.URL {
	t.Helper()
	decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, iam.TokenPrefix))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(string(decoded))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestParametersOfTokensAreDocumented compares a token with the package's documentation.
func TestParametersOfTokensAreDocumented(t *testing.T) {
	w := newWorld(t)
	role := w.Session(account, "node", "i-0123456789abcdef0")
	use(t, role)
	before := time.Now().UTC().Truncate(time.Second)
	text, end := w.make(t, token.Options{Region: "eu-west-1"})
	u := decoded(t, text)
	query := u.Query()
	date := query.Get("X-Amz-Date")
	for name, want := range map[string]string{
		"Action": "GetCallerIdentity", "Version": "2011-06-15", "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
		"X-Amz-Credential": role.AccessKeyID + "/" + date[:8] + "/eu-west-1/sts/aws4_request",
		"X-Amz-Expires":    "60", "X-Amz-Security-Token": role.Token, "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
	} {
		if got := query[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if u.Scheme+"://"+u.Host+u.Path != "https://sts.eu-west-1.amazonaws.com/" ||
		!regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(query.Get("X-Amz-Signature")) {
		t.Errorf("the token is for %s", u.Host)
	}
	signed, err := time.Parse("20060102T150405Z", date)
	if err != nil || signed.Before(before) || !end.Equal(signed.Add(15*time.Minute)) {
		t.Errorf("signed at %s (%v), ends at %s", date, err, end)
	}

	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, line := range regexp.MustCompile(`(?m)^//\t([A-Za-z-]+)`).FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, line[1])
	}
	if got := slices.Sorted(maps.Keys(query)); !slices.Equal(got, documented) {
		t.Errorf("the token has %q, the documentation %q", got, documented)
	}

	use(t, w.User(account, "alice"))
	text, _ = w.make(t, token.Options{Region: "eu-west-1"})
	if decoded(t, text).Query().Has("X-Amz-Security-Token") {
		t.Error("credentials of a user have a security token")
	}
}

func TestHostAndRegionOfToken(t *testing.T) {
	for _, test := range []struct {
		name        string
		options     token.Options
		environment map[string]string
		host, scope string
	}{
		{
			"the region that is given",
			token.Options{Region: "us-east-2"},
			map[string]string{"AWS_REGION": "eu-west-1"},
			"sts.us-east-2.amazonaws.com", "us-east-2",
		},
		{
			"the region of the environment",
			token.Options{},
			map[string]string{"AWS_REGION": "eu-west-1"},
			"sts.eu-west-1.amazonaws.com", "eu-west-1",
		},
		{"no region", token.Options{}, nil, "sts.amazonaws.com", "us-east-1"},
		{"the region that the global host signs for", token.Options{Region: "us-east-1"}, nil, "sts.us-east-1.amazonaws.com", "us-east-1"},
		{
			"FIPS",
			token.Options{Region: "us-east-2"},
			map[string]string{"AWS_USE_FIPS_ENDPOINT": "true"},
			"sts-fips.us-east-2.amazonaws.com", "us-east-2",
		},
		{
			"dual stack",
			token.Options{Region: "eu-west-1"},
			map[string]string{"AWS_USE_DUALSTACK_ENDPOINT": "true"},
			"sts.eu-west-1.api.aws", "eu-west-1",
		},
		{"China", token.Options{Region: "cn-north-1"}, nil, "sts.cn-north-1.amazonaws.com.cn", "cn-north-1"},
		{"GovCloud", token.Options{Region: "us-gov-west-1"}, nil, "sts.us-gov-west-1.amazonaws.com", "us-gov-west-1"},
		{
			"a VPC endpoint",
			token.Options{Region: "eu-west-1"},
			map[string]string{"AWS_ENDPOINT_URL_STS": "https://vpce-0a1b2c.sts.eu-west-1.vpce.amazonaws.com"},
			"vpce-0a1b2c.sts.eu-west-1.vpce.amazonaws.com", "eu-west-1",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			use(t, w.User(account, "alice"))
			for name, value := range test.environment {
				t.Setenv(name, value)
			}
			text, _ := w.make(t, test.options)
			u := decoded(t, text)
			scope := strings.Split(u.Query().Get("X-Amz-Credential"), "/")
			if u.Host != test.host || scope[2] != test.scope {
				t.Errorf("host %s, signed for %s; want %s, %s", u.Host, scope[2], test.host, test.scope)
			}
			if test.scope == "cn-north-1" || test.scope == "us-gov-west-1" || strings.HasPrefix(u.Host, "vpce-") {
				return // the verifier below is for the partition aws and its own hosts
			}
			if caller := w.caller(t, text); caller.ARN != "arn:aws:iam::111122223333:user/alice" {
				t.Errorf("the token is that of %s", caller.ARN)
			}
		})
	}
}

func TestInstanceSignsForItsOwnRegion(t *testing.T) {
	w := newWorld(t)
	instance := w.Launch(fakeaws.Instance{Region: "eu-central-1", Role: "node", Profile: "arn:aws:iam::111122223333:instance-profile/node"})
	metadata, err := w.Metadata(instance.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	text, _ := w.make(t, token.Options{})
	if host := decoded(t, text).Host; host != "sts.eu-central-1.amazonaws.com" {
		t.Errorf("host %s", host)
	}
	if caller := w.caller(t, text); caller.ARN != "arn:aws:sts::111122223333:assumed-role/node/"+instance.ID {
		t.Errorf("caller %s", caller.ARN)
	}
}

func TestRoleIsAssumed(t *testing.T) {
	w := newWorld(t)
	const role = "arn:aws:iam::444455556666:role/teams/admin"
	w.DemandExternalID(role, "shop-7")
	use(t, w.User(account, "alice"))
	text, _ := w.make(t, token.Options{Region: "eu-west-1", RoleARN: role, SessionName: "alice@blue", ExternalID: "shop-7"})
	if caller := w.caller(t, text); caller.ARN != "arn:aws:sts::444455556666:assumed-role/admin/alice@blue" {
		t.Errorf("caller %s", caller.ARN)
	}
	text, _ = w.make(t, token.Options{Region: "eu-west-1", RoleARN: "arn:aws:iam::111122223333:role/node"})
	if caller := w.caller(t, text); !strings.HasPrefix(caller.ARN, "arn:aws:sts::111122223333:assumed-role/node/") {
		t.Errorf("caller %s", caller.ARN)
	}
}

func TestAProfileHasCredentialsAndRegion(t *testing.T) {
	w := newWorld(t)
	alice := w.User(account, "alice")
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("[profile shop]\nregion = eu-north-1\naws_access_key_id = "+alice.AccessKeyID+
		"\naws_secret_access_key = "+alice.SecretAccessKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	text, _ := w.make(t, token.Options{Profile: "shop"})
	if host := decoded(t, text).Host; host != "sts.eu-north-1.amazonaws.com" {
		t.Errorf("host %s", host)
	}
	w.caller(t, text)
}

func TestTokenExpiresWithItsCredentials(t *testing.T) {
	w := newWorld(t)
	alice := w.User(account, "alice")
	end := time.Now().UTC().Truncate(time.Second).Add(7 * time.Minute)
	folder := t.TempDir()
	answer := `{"Version":1,"AccessKeyId":"` + alice.AccessKeyID + `","SecretAccessKey":"` + alice.SecretAccessKey +
		`","Expiration":"` + end.Format(time.RFC3339) + `"}`
	for name, text := range map[string]string{
		"answer": answer, "config": "[default]\nregion = eu-west-1\ncredential_process = cat " + filepath.Join(folder, "answer") + "\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(folder, "config"))
	if _, got := w.make(t, token.Options{}); !got.Equal(end) {
		t.Errorf("the token ends at %s, the credentials at %s", got, end)
	}
}

// TestExpiringCredentialsMakeNoToken: the token would expire before it is used.
func TestExpiringCredentialsMakeNoToken(t *testing.T) {
	w := newWorld(t)
	alice := w.User(account, "alice")
	for _, left := range []time.Duration{-time.Hour, 50 * time.Second} {
		end := time.Now().UTC().Truncate(time.Second).Add(left)
		folder := t.TempDir()
		answer := `{"Version":1,"AccessKeyId":"` + alice.AccessKeyID + `","SecretAccessKey":"` + alice.SecretAccessKey +
			`","Expiration":"` + end.Format(time.RFC3339) + `"}`
		for name, text := range map[string]string{
			"answer": answer, "config": "[default]\nregion = eu-west-1\ncredential_process = cat " + filepath.Join(folder, "answer") + "\n",
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("AWS_CONFIG_FILE", filepath.Join(folder, "config"))
		text, _, err := token.Make(t.Context(), token.Options{ClusterID: "blue", HTTP: w.http})
		if err == nil || text != "" || left > 0 && !strings.Contains(err.Error(),
			"the AWS credentials expire at "+end.Format(time.RFC3339)) {
			t.Errorf("%s before their end: %q, %v", left, text, err)
		}
	}
}

// TestExpiryOfCredentialsOfTheEnvironment uses the variables that aws configure
// export-credentials writes.
func TestExpiryOfCredentialsOfTheEnvironment(t *testing.T) {
	w := newWorld(t)
	use(t, w.Session(account, "node", "ada"))
	end := time.Now().UTC().Truncate(time.Second).Add(5 * time.Minute)
	t.Setenv("AWS_CREDENTIAL_EXPIRATION", end.Format(time.RFC3339))
	if _, got := w.make(t, token.Options{Region: "eu-west-1"}); !got.Equal(end) {
		t.Errorf("the token ends at %s, want %s", got, end)
	}
	t.Setenv("AWS_CREDENTIAL_EXPIRATION", time.Now().Add(30*time.Second).Format(time.RFC3339))
	text, _, err := token.Make(t.Context(), token.Options{ClusterID: "blue", Region: "eu-west-1", HTTP: w.http})
	if err == nil || text != "" || !strings.Contains(err.Error(), "the AWS credentials expire at ") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestMistakesAreFoundWithoutRequests has no network.
func TestMistakesAreFoundWithoutRequests(t *testing.T) {
	w := newWorld(t)
	use(t, w.User(account, "alice"))
	const role = "arn:aws:iam::444455556666:role/admin"
	for name, test := range map[string]struct {
		options token.Options
		want    string
	}{
		"a name":     {token.Options{RoleARN: "admin"}, `the role "admin" is not an ARN`},
		"no account": {token.Options{RoleARN: "arn:aws:iam:::role/admin"}, "is not 12 digits"},
		"a user":     {token.Options{RoleARN: "arn:aws:iam::444455556666:user/ada"}, "is not a role: "},
		"an instance profile": {
			token.Options{RoleARN: "arn:aws:iam::444455556666:instance-profile/node"}, "is not the ARN of a role",
		},
		"a session": {token.Options{RoleARN: "arn:aws:sts::444455556666:assumed-role/admin/ada"}, "write " + role},
		"a space":   {token.Options{RoleARN: role + " "}, "not allowed in ARNs"},
		"a session name with spaces": {
			token.Options{RoleARN: role, SessionName: "ada lovelace"}, `the session name "ada lovelace" is invalid`,
		},
		"a session name of a letter": {token.Options{RoleARN: role, SessionName: "a"}, "want 2 to 64"},
		"an external id":             {token.Options{RoleARN: role, ExternalID: "se cret"}, "the external id is invalid"},
		"a cluster with a space":     {token.Options{ClusterID: "blue "}, "invalid cluster"},
		"a cluster with two spaces":  {token.Options{ClusterID: "a  b"}, "invalid cluster"},
		"a cluster on two lines":     {token.Options{ClusterID: "blue\r\nx: y"}, "invalid cluster"},
		"a cluster in other letters": {token.Options{ClusterID: "bl\u00fc"}, "invalid cluster"},
		"a cluster without end":      {token.Options{ClusterID: strings.Repeat("a", 1025)}, "1025 characters: want up to 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := &counted{RoundTripper: w.http.Transport}
			test.options.HTTP = &http.Client{Transport: asked}
			if test.options.ClusterID == "" {
				test.options.ClusterID = "blue"
			}
			text, _, err := token.Make(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) || text != "" {
				t.Errorf("%q, %v, want %q", text, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "se cret") {
				t.Errorf("the error has the external id: %v", err)
			}
			if n := asked.requests.Load(); n > 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestMakeFails(t *testing.T) {
	const role = "arn:aws:iam::444455556666:role/admin"
	secretive := fakeaws.Credentials{
		AccessKeyID: "ASIAEXAMPLE000000000", SecretAccessKey: "a-secret-access-key",
		Token: strings.Repeat("a-security-token", 20),
	}
	oversized := secretive
	oversized.Token = strings.Repeat("a-security-token", 250)
	for _, test := range []struct {
		name        string
		options     token.Options
		credentials fakeaws.Credentials
		environment map[string]string
		want        string
	}{
		{"no cluster", token.Options{}, secretive, nil, "the id of the cluster is required"},
		{
			"a session name without a role",
			token.Options{ClusterID: "blue", SessionName: "alice"},
			secretive, nil,
			"requires a role to assume",
		},
		{"an external id without a role", token.Options{ClusterID: "blue", ExternalID: "x"}, secretive, nil, "requires a role to assume"},
		{"no credentials", token.Options{ClusterID: "blue", Region: "eu-west-1"}, fakeaws.Credentials{}, nil, "get AWS credentials: "},
		{"no credentials and no region", token.Options{ClusterID: "blue"}, fakeaws.Credentials{}, nil, "get AWS credentials: "},
		{"a missing profile", token.Options{ClusterID: "blue", Profile: "none"}, secretive, nil, "read the settings of the AWS SDK: "},
		{
			"a role that does not trust the caller",
			token.Options{ClusterID: "blue", Region: "eu-west-1", RoleARN: role},
			fakeaws.Credentials{AccessKeyID: "alice"},
			nil,
			"assume the role " + role + ": AccessDenied: User: arn:aws:iam::111122223333:user/alice is not authorized",
		},
		{
			"credentials that STS does not know",
			token.Options{ClusterID: "blue", Region: "eu-west-1", RoleARN: role},
			secretive, nil, "assume the role " + role + ": InvalidClientTokenId",
		},
		{
			"a host without TLS",
			token.Options{ClusterID: "blue", Region: "eu-west-1"},
			secretive,
			map[string]string{"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1"},
			"servers would refuse the token: TokenNotHTTPS",
		},
		{
			"a security token that is too long",
			token.Options{ClusterID: "blue", Region: "eu-west-1"},
			oversized, nil,
			"servers would refuse the token: TokenTooLong",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.DemandExternalID(role, "shop-7")
			if test.credentials.AccessKeyID == "alice" {
				test.credentials = w.User(account, "alice")
			}
			use(t, test.credentials)
			for name, value := range test.environment {
				t.Setenv(name, value)
			}
			test.options.HTTP = w.http
			text, end, err := token.Make(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) || text != "" || !end.IsZero() {
				t.Fatalf("%q, %s, error %v, want %q", text, end, err, test.want)
			}
			for _, secret := range []string{test.credentials.SecretAccessKey, test.credentials.Token} {
				if secret != "" && strings.Contains(err.Error(), secret) {
					t.Errorf("the error has a secret: %v", err)
				}
			}
		})
	}
}
