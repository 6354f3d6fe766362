package aws_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// onInstance makes the AWS SDK of this process run on a new instance.
func onInstance(t *testing.T, instance fakeaws.Instance) (*fakeaws.Cloud, fakeaws.Instance, *fakeaws.Metadata) {
	t.Helper()
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	instance = cloud.Launch(instance)
	metadata, err := cloud.Metadata(instance.ID)
	if err != nil {
		t.Fatal(err)
	}
	// Settings of the developer are not used.
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_PROFILE", "")
	for _, variable := range metadata.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	return cloud, instance, metadata
}

// behind puts a handler between the collector and its metadata service.
func behind(t *testing.T, metadata *fakeaws.Metadata, handle func(http.ResponseWriter, *http.Request, http.Handler)) {
	t.Helper()
	to, err := url.Parse(metadata.URL)
	if err != nil {
		t.Fatal(err)
	}
	through := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, through) }))
	t.Cleanup(front.Close)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", front.URL)
}

func newCollector(t *testing.T, naming string) *aws.Collector {
	t.Helper()
	collector, err := aws.NewCollector(t.Context(), aws.CollectorOptions{Naming: naming})
	if err != nil {
		t.Fatal(err)
	}
	return collector
}

// collect returns the evidence that the server would read.
func collect(t *testing.T, challenge string) *identitydocument.Evidence {
	t.Helper()
	body, err := newCollector(t, "").Collect(t.Context(), attest.Binding{Challenge: challenge})
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := identitydocument.ParseEvidence(body)
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return evidence
}

func TestDocumentIsCollected(t *testing.T) {
	cloud, instance, _ := onInstance(t, fakeaws.Instance{Region: "eu-west-1"})
	document, err := identitydocument.NewVerifier(cloud.Certificates()).Verify(collect(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if document.InstanceID != instance.ID || document.Form != identitydocument.RSA2048 {
		t.Errorf("instance %s, form %v", document.InstanceID, document.Form)
	}
}

func TestFallbackFormIsCollected(t *testing.T) {
	cloud, instance, metadata := onInstance(t, fakeaws.Instance{})
	behind(t, metadata, func(w http.ResponseWriter, r *http.Request, through http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/rsa2048") {
			http.NotFound(w, r)
			return
		}
		through.ServeHTTP(w, r)
	})
	document, err := identitydocument.NewVerifier(cloud.Certificates()).Verify(collect(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if document.InstanceID != instance.ID || document.Form != identitydocument.PKCS7 {
		t.Errorf("instance %s, form %v", document.InstanceID, document.Form)
	}
}

func TestBodyIsThatOfTheOldProtocol(t *testing.T) {
	onInstance(t, fakeaws.Instance{})
	body, err := newCollector(t, "").Collect(t.Context(), attest.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(body); !strings.HasPrefix(text, `{"Document":"`) || strings.Count(text, ":") != 1 {
		t.Errorf("the body is %s", text)
	}
}

func TestCredentialsOfTheEnvironmentSignNoChallenge(t *testing.T) {
	cloud, instance, _ := onInstance(t, fakeaws.Instance{Role: "worker", Profile: "arn:aws:iam::111122223333:instance-profile/worker"})
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "other")
	request := collect(t, "the-challenge").CallerIdentity
	if request == nil {
		t.Fatal("no request was signed")
	}
	signed, err := url.Parse(request.URL)
	if err != nil {
		t.Fatal(err)
	}
	headers := strings.Split(signed.Query().Get("X-Amz-SignedHeaders"), ";")
	if !slices.Contains(headers, strings.ToLower(identitydocument.ChallengeHeader)) || !slices.Contains(headers, "host") {
		t.Errorf("signed headers: %q", headers)
	}
	// STS takes it, and says that it is this instance's.
	status, answer := send(t, request)
	if status != http.StatusOK || !strings.Contains(answer, ":assumed-role/worker/"+instance.ID+"<") {
		t.Errorf("status %d: %s", status, answer)
	}
	// The signature covers the challenge.
	request.Header[identitydocument.ChallengeHeader] = []string{"another"}
	if status, answer := send(t, request); status != http.StatusForbidden {
		t.Errorf("with another challenge: status %d: %s", status, answer)
	}
	if cloud.STS.Requests() != 2 {
		t.Errorf("STS was asked %d times, the collector itself must not", cloud.STS.Requests())
	}
}

// send sends the signed request as the server does.
func send(t *testing.T, request *identitydocument.CallerIdentityRequest) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), request.Method, request.URL, strings.NewReader(request.Body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = request.Header
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestNames(t *testing.T) {
	for _, test := range []struct {
		rule, dnsName, naming, want, wrong string
	}{
		{
			rule: "the private DNS name without a rule", dnsName: "ip-10-0-1-2.eu-west-1.compute.internal",
			want: "ip-10-0-1-2.eu-west-1.compute.internal",
		},
		{rule: "in lower case", dnsName: "IP-10-0-1-2.ec2.internal", naming: "PrivateDNSName", want: "ip-10-0-1-2.ec2.internal"},
		{
			rule: "the first of several", dnsName: "ip-10-0-1-2.a.example.com b.example.com", naming: "PrivateDNSName",
			want: "ip-10-0-1-2.a.example.com",
		},
		{rule: "the instance", naming: "InstanceID", want: "i-0123456789abcdef0"},
		{rule: "the resource", dnsName: "ip-10-0-1-2.ec2.internal", naming: "ResourceName", want: "i-0123456789abcdef0.ec2.internal"},
		{
			rule: "the resource that is called so", dnsName: "i-0123456789abcdef0.ec2.internal", naming: "ResourceName",
			want: "i-0123456789abcdef0.ec2.internal",
		},
		{
			rule: "the resource without a domain", dnsName: "worker", naming: "ResourceName",
			wrong: `the metadata service returned the hostname "worker", which has no domain`,
		},
		{
			rule: "a template", naming: "{{.InstanceID}}",
			wrong: `naming "{{.InstanceID}}": want PrivateDNSName, InstanceID or ResourceName; for a template, set the name itself`,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			onInstance(t, fakeaws.Instance{ID: "i-0123456789abcdef0", PrivateDNSName: test.dnsName})
			var name string
			collector, err := aws.NewCollector(t.Context(), aws.CollectorOptions{Naming: test.naming})
			if err == nil {
				name, err = collector.NodeName(t.Context())
			}
			if (err == nil) != (test.wrong == "") || (err != nil && !strings.HasPrefix(err.Error(), test.wrong)) {
				t.Fatalf("error %v, want %q", err, test.wrong)
			}
			if name != test.want {
				t.Errorf("name %q, want %q", name, test.want)
			}
		})
	}
}

func TestErrorExplainsMissingMetadataService(t *testing.T) {
	_, _, metadata := onInstance(t, fakeaws.Instance{})
	for fault, want := range map[fakeaws.FaultKind]string{
		fakeaws.Down:  "hop limit of 2",
		fakeaws.Empty: "", // what the SDK says of a session without a token
	} {
		metadata.Break(fakeaws.Fault{Kind: fault})
		_, err := newCollector(t, "").Collect(t.Context(), attest.Binding{})
		if err == nil || !strings.HasPrefix(err.Error(), "get instance-identity/rsa2048 from the metadata service: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("fault %v: error %v", fault, err)
		}
	}
}

func TestMetadataServiceWithoutSessionsIsNotUsed(t *testing.T) {
	_, _, metadata := onInstance(t, fakeaws.Instance{})
	var withoutSession bool
	behind(t, metadata, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if r.URL.Path == "/latest/api/token" {
			http.NotFound(w, r)
			return
		}
		withoutSession = true
		_, _ = io.WriteString(w, "document")
	})
	if body, err := newCollector(t, "").Collect(t.Context(), attest.Binding{}); err == nil || withoutSession {
		t.Errorf("collected %s", body)
	}
}

func TestMetadataIsBounded(t *testing.T) {
	_, _, metadata := onInstance(t, fakeaws.Instance{})
	for content, want := range map[string]string{
		strings.Repeat("x", 33<<10): "the metadata service returned more than 32 KiB for instance-identity/rsa2048",
		" \n":                       "the metadata service returned an empty value for instance-identity/rsa2048",
	} {
		behind(t, metadata, func(w http.ResponseWriter, r *http.Request, through http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/rsa2048") {
				_, _ = io.WriteString(w, content)
				return
			}
			through.ServeHTTP(w, r)
		})
		if _, err := newCollector(t, "").Collect(t.Context(), attest.Binding{}); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestCollectEndsWithItsContext(t *testing.T) {
	_, _, metadata := onInstance(t, fakeaws.Instance{})
	metadata.Break(fakeaws.Fault{Kind: fakeaws.Hanging})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := newCollector(t, "").Collect(ctx, attest.Binding{}); err == nil {
		t.Error("something was collected")
	}
}
