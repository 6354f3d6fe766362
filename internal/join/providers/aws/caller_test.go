package aws_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

func newChallenges(t *testing.T) *attest.Challenges {
	t.Helper()
	challenges, err := attest.NewChallenges(bytes.Repeat([]byte{7}, attest.ChallengeKeySize), nil)
	if err != nil {
		t.Fatal(err)
	}
	return challenges
}

// asking returns a fixture whose server requires the identity of callers.
func asking(t *testing.T) (*fixture, *attest.Challenges) {
	t.Helper()
	s, challenges := newFixture(t), newChallenges(t)
	s.options.CallerIdentity = aws.CallerIdentity{Required: true, Endpoint: s.STS.URL, Challenger: challenges}
	return s, challenges
}

// collected returns the evidence that the client on an instance collects.
func (s *fixture) collected(t *testing.T, id, challenge string) map[string]any {
	t.Helper()
	metadata, err := s.Metadata(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	body, err := newCollector(t, "").Collect(t.Context(), attest.Binding{Challenge: challenge})
	if err != nil {
		t.Fatal(err)
	}
	var collected map[string]any
	if err := json.Unmarshal(body, &collected); err != nil {
		t.Fatal(err)
	}
	return collected
}

// sent returns a request with a body that was changed on the way.
func (s *fixture) sent(t *testing.T, instance fakeaws.Instance, body map[string]any) *attest.Request {
	t.Helper()
	req := s.request(t, instance)
	var err error
	if req.Body, err = json.Marshal(body); err != nil {
		t.Fatal(err)
	}
	return req
}

func TestCallerIsTheInstance(t *testing.T) {
	s, challenges := asking(t)
	instance := s.launch(nil)
	req := s.sent(t, instance, s.collected(t, instance.ID, challenges.Challenge()))
	if _, err := s.attestor(t, nil).Attest(t.Context(), req); err != nil {
		t.Error(err)
	}
}

func TestCallers(t *testing.T) {
	s, challenges := asking(t)
	instance, other := s.launch(nil), s.launch(nil)
	a := s.attestor(t, nil)
	attestBody := func(body map[string]any) error {
		_, err := a.Attest(t.Context(), s.sent(t, instance, body))
		return err
	}

	t.Run("nothing signed", func(t *testing.T) {
		refused(t, attestBody(s.collected(t, instance.ID, "")), aws.CallerIdentityMissing)
	})
	t.Run("the credentials of another instance", func(t *testing.T) {
		body := s.collected(t, instance.ID, "")
		body["CallerIdentity"] = s.collected(t, other.ID, challenges.Challenge())["CallerIdentity"]
		refused(t, attestBody(body), aws.CallerIdentityInvalid)
	})
	t.Run("the challenge of another server", func(t *testing.T) {
		foreign, err := attest.NewChallenges(bytes.Repeat([]byte{8}, attest.ChallengeKeySize), nil)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, attestBody(s.collected(t, instance.ID, foreign.Challenge())), attest.ChallengeInvalid)
	})
	t.Run("an old challenge", func(t *testing.T) {
		before, err := attest.NewChallenges(bytes.Repeat([]byte{7}, attest.ChallengeKeySize),
			func() time.Time { return time.Now().Add(-3 * time.Minute) })
		if err != nil {
			t.Fatal(err)
		}
		refused(t, attestBody(s.collected(t, instance.ID, before.Challenge())), attest.ChallengeInvalid)
	})
	t.Run("the signed challenge replaced with a valid one", func(t *testing.T) {
		body := s.collected(t, instance.ID, "an older one")
		identity := body["CallerIdentity"].(map[string]any)
		identity["Header"].(map[string]any)["X-Node-Authorizer-Challenge"] = []string{challenges.Challenge()}
		refused(t, attestBody(body), aws.CallerIdentityInvalid)
	})
	t.Run("credentials of another account", func(t *testing.T) {
		foreign := s.launch(func(i *fakeaws.Instance) { i.Account = "444455556666" })
		body := s.collected(t, instance.ID, "")
		body["CallerIdentity"] = s.collected(t, foreign.ID, challenges.Challenge())["CallerIdentity"]
		refused(t, attestBody(body), aws.CallerIdentityInvalid)
	})
}

// TestOnlyTheExpectedRequestIsSent changes a valid request, one part at a time.
func TestOnlyTheExpectedRequestIsSent(t *testing.T) {
	s, challenges := asking(t)
	instance := s.launch(nil)
	a := s.attestor(t, nil)
	inQuery := func(change func(url.Values)) func(map[string]any) {
		return func(identity map[string]any) {
			u, err := url.Parse(identity["URL"].(string))
			if err != nil {
				t.Fatal(err)
			}
			query := u.Query()
			change(query)
			u.RawQuery = query.Encode()
			identity["URL"] = u.String()
		}
	}
	replace := func(from, to string) func(map[string]any) {
		return func(identity map[string]any) {
			identity["URL"] = strings.Replace(identity["URL"].(string), from, to, 1)
		}
	}
	inHeader := func(key string, values ...string) func(map[string]any) {
		return func(identity map[string]any) { identity["Header"].(map[string]any)[key] = values }
	}
	host := strings.TrimPrefix(s.STS.URL, "http://")
	for _, test := range []struct {
		name   string
		change func(map[string]any)
		detail string
	}{
		{"another method", func(i map[string]any) { i["Method"] = "POST" }, "not a GET without a body"},
		{"a body", func(i map[string]any) { i["Body"] = "Action=AssumeRole" }, "not a GET without a body"},
		{"another host", replace(host, "sts.attacker.example"), "it is for http://sts.attacker.example, want " + s.STS.URL},
		{"another port", replace(host, host+"0"), "it is for"},
		{"another scheme", replace("http:", "https:"), "it is for https://"},
		{"a host in a user name", replace(host, host+"@sts.attacker.example"), "it is for http://sts.attacker.example"},
		{"a user", replace(host, "user@"+host), "more than a host and a query"},
		{"a path", replace("/?", "/admin?"), "more than a host and a query"},
		{"an encoded path", replace("/?", "/%2f?"), "more than a host and a query"},
		{"a fragment", func(i map[string]any) { i["URL"] = i["URL"].(string) + "#x" }, "more than a host and a query"},
		{"no URL", func(i map[string]any) { i["URL"] = ":" }, "its URL is malformed"},
		{"an endless URL", func(i map[string]any) { i["URL"] = i["URL"].(string) + strings.Repeat("x", 9000) }, "its URL is too long"},
		{"a query that is malformed", func(i map[string]any) { i["URL"] = i["URL"].(string) + "&%zz" }, "its query is malformed"},
		{"a name that is encoded", replace("Action=", "%41ction="), "its query is malformed"},
		{
			"a plus sign, which some parsers decode to a space",
			replace("Action=GetCallerIdentity", "Action=+GetCallerIdentity"), "its query is malformed",
		},
		{"all names in lower case", replace("Version=", "version="), "an unknown parameter: version"},
		{"another action", inQuery(func(q url.Values) { q.Set("Action", "AssumeRole") }), "wrong Action: AssumeRole"},
		{"two actions", inQuery(func(q url.Values) { q.Add("Action", "AssumeRole") }), "Action twice"},
		{"an action in another case", inQuery(func(q url.Values) { q.Set("action", "AssumeRole") }), "an unknown parameter: action"},
		{"a further parameter", inQuery(func(q url.Values) { q.Set("RoleArn", "x") }), "an unknown parameter: RoleArn"},
		{"no signature", inQuery(func(q url.Values) { q.Del("X-Amz-Signature") }), "its query lacks X-Amz-Signature"},
		{"an empty signature", inQuery(func(q url.Values) { q.Set("X-Amz-Signature", "") }), "wrong X-Amz-Signature: none"},
		{"another algorithm", inQuery(func(q url.Values) { q.Set("X-Amz-Algorithm", "AWS4-ECDSA-P256-SHA256") }), "wrong X-Amz-Algorithm"},
		{
			"a challenge that is not signed", inQuery(func(q url.Values) { q.Set("X-Amz-SignedHeaders", "host") }),
			"wrong X-Amz-SignedHeaders: host",
		},
		{"a further header", inHeader("X-Forwarded-Host", "a"), "an unknown field"},
		{"another host in the header", inHeader("Host", "sts.attacker.example"), "or another host"},
		{"two challenges", inHeader("X-Node-Authorizer-Challenge", "a", "b"), "not have exactly one value"},
		{"a second challenge in another case", inHeader("x-node-authorizer-challenge", "a"), "an unknown field"},
		{"no challenge", func(i map[string]any) { i["Header"] = map[string]any{} }, "no X-Node-Authorizer-Challenge"},
		{
			"another signature", inQuery(func(q url.Values) { q.Set("X-Amz-Signature", strings.Repeat("0", 64)) }),
			"STS rejects the signed request: SignatureDoesNotMatch",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := s.collected(t, instance.ID, challenges.Challenge())
			test.change(body["CallerIdentity"].(map[string]any))
			_, err := a.Attest(t.Context(), s.sent(t, instance, body))
			if r := refused(t, err, aws.CallerIdentityInvalid); r != nil && !strings.Contains(r.Detail, test.detail) {
				t.Errorf("detail %q, want %q", r.Detail, test.detail)
			}
		})
	}
	if got := s.STS.Requests(); got != 1 {
		t.Errorf("%d requests reached STS, want the last one only", got)
	}
}

func TestFailureOfSTSIsNoRefusal(t *testing.T) {
	s, challenges := asking(t)
	instance := s.launch(nil)
	for name, kind := range map[string]fakeaws.FaultKind{
		"throttled": fakeaws.Throttled, "failing": fakeaws.Broken, "down": fakeaws.Down, "answering nothing": fakeaws.Empty,
	} {
		t.Run(name, func(t *testing.T) {
			req := s.sent(t, instance, s.collected(t, instance.ID, challenges.Challenge()))
			s.STS.Break(fakeaws.Fault{Kind: kind})
			_, err := s.attestor(t, nil).Attest(t.Context(), req)
			couldNot(t, err, "verify the signed request with STS at 127.0.0.1")
			if strings.Contains(err.Error(), "X-Amz-Signature") {
				t.Errorf("the error has the signature in it: %v", err)
			}
			s.STS.Heal()
			if _, err := s.attestor(t, nil).Attest(t.Context(), req); err != nil {
				t.Errorf("recovered: %v", err)
			}
		})
	}
}

// TestAnswersOfSTS uses a stub of STS.
func TestAnswersOfSTS(t *testing.T) {
	s, challenges := asking(t)
	instance := s.launch(nil)
	identity := func(arn, account string) string {
		return `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Arn":"` + arn + `","UserId":"x","Account":"` + account + `"}}}`
	}
	for _, test := range []struct {
		name, answer string
		status       int
		refused      bool
	}{
		{"a user named as the instance", identity("arn:aws:iam::111122223333:user/"+instance.ID, account), 200, true},
		{"a session of another name", identity("arn:aws:sts::111122223333:assumed-role/nodes/alice", account), 200, true},
		{"a role named as the instance", identity("arn:aws:sts::111122223333:assumed-role/"+instance.ID+"/alice", account), 200, true},
		{"another account in the ARN", identity("arn:aws:sts::444455556666:assumed-role/nodes/"+instance.ID, account), 200, true},
		{
			"another account beside the ARN",
			identity("arn:aws:sts::111122223333:assumed-role/nodes/"+instance.ID, "444455556666"), 200, true,
		},
		{"an answer cut off", identity("", account)[:40], 200, false},
		{
			"an ARN twice",
			strings.Replace(identity("arn:aws:sts::111122223333:assumed-role/nodes/"+instance.ID, account), `"Arn"`,
				`"Arn":"arn:aws:sts::111122223333:assumed-role/nodes/alice","Arn"`, 1),
			200, false,
		},
		{
			"XML, which was not asked for",
			"<R><GetCallerIdentityResult><Arn>arn:aws:sts::111122223333:assumed-role/nodes/" + instance.ID +
				"</Arn><UserId>x</UserId><Account>" + account + "</Account></GetCallerIdentityResult></R>",
			200, false,
		},
		{"a request that took too long", `{"Error":{"Code":"RequestTimeout"}}`, 408, false},
		{"no ARN", identity("", account), 200, false},
		{
			"an endless answer",
			strings.Repeat(" ", 65<<10) + identity("arn:aws:sts::111122223333:assumed-role/nodes/"+instance.ID, account),
			200, false,
		},
		{"a redirect", "", 302, false},
		{"a refusal in an unknown form", "no", 403, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", s.STS.URL)
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.answer))
			}))
			defer front.Close()
			t.Setenv("AWS_ENDPOINT_URL_STS", front.URL)
			a := s.attestor(t, func(o *aws.Options) { o.CallerIdentity.Endpoint = front.URL })
			_, err := a.Attest(t.Context(), s.sent(t, instance, s.collected(t, instance.ID, challenges.Challenge())))
			if test.refused {
				refused(t, err, aws.CallerIdentityInvalid)
			} else {
				couldNot(t, err, "verify the signed request with STS")
			}
		})
	}
}

// roundTripper is a stub of the network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestEndpointOfSTSIsThatOfTheRegion(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1": "sts.eu-west-1.amazonaws.com", "us-east-1": "sts.us-east-1.amazonaws.com",
		"cn-north-1": "sts.cn-north-1.amazonaws.com.cn", "us-gov-west-1": "sts.us-gov-west-1.amazonaws.com",
	} {
		s, challenges := asking(t)
		instance := s.launch(func(i *fakeaws.Instance) { i.Region = region })
		t.Setenv("AWS_ENDPOINT_URL_STS", "")
		asked := ""
		a := s.attestor(t, func(o *aws.Options) {
			o.Regions, o.CallerIdentity.Endpoint = []string{region}, ""
			o.HTTP = roundTripper(func(r *http.Request) (*http.Response, error) {
				asked = r.URL.Scheme + "://" + r.Host + r.URL.Path
				return nil, http.ErrServerClosed
			})
		})
		_, err := a.Attest(t.Context(), s.sent(t, instance, s.collected(t, instance.ID, challenges.Challenge())))
		couldNot(t, err, "verify the signed request with STS at "+want)
		if asked != "https://"+want+"/" {
			t.Errorf("%s: asked %s, want %s", region, asked, want)
		}
	}
}
