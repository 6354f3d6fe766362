package client

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestAnswers(t *testing.T) {
	refuse := func(reason string) string {
		return `{"Spec":{"NodeName":"worker-1"},"Status":{"Allowed":false,"Token":"","Reason":"` + reason + `"}}`
	}
	allow := func(name, token string) string {
		return `{"Spec":{"NodeName":"` + name + `"},"Status":{"Allowed":true,"Token":"` + token + `"}}`
	}
	const (
		ok      = "the bootstrap service answered 200 OK "
		refused = "the bootstrap service refuses: "
	)
	tests := []struct {
		rule     string
		status   int
		body     string
		location string
		final    bool
		want     string
	}{
		{
			rule: "200 without a token is a failure of the service", status: 200,
			body: allow("worker-1", ""), want: ok + "without a token",
		},
		{
			rule: "200 with half a token is a failure", status: 200,
			body: allow("worker-1", "abc123.0123456789ABCDEF"), want: ok + "with a token that is not a bootstrap token",
		},
		{
			rule: "200 with a token and more text is a failure", status: 200,
			body: allow("worker-1", aToken+`\n`), want: ok + "with a token that is not a bootstrap token",
		},
		{
			rule: "200 for another node is a failure", status: 200,
			body: allow("worker-2", aToken), want: `the bootstrap service answered for node "worker-2" instead of "worker-1"`,
		},
		{
			rule: "200 from another server is a failure", status: 200,
			body: "<html>", want: ok + "with a body that is not its own",
		},
		{
			rule: "200 that does not allow is a refusal", status: 200,
			body: refuse("not yours"), final: true, want: refused + "not yours",
		},
		{
			rule: "200 with an empty document is a refusal", status: 200,
			body: `{}`, final: true, want: refused + "it gives no reason",
		},

		{
			rule: "403 is final", status: 403,
			body: refuse("NameMismatch: the evidence is for another name"), final: true,
			want: refused + "NameMismatch: the evidence is for another name; node-authorizer explain-code NameMismatch says what to do",
		},
		{
			rule: "403 from a proxy is final", status: 403,
			body: "no", final: true, want: refused + "403 Forbidden",
		},
		{
			rule: "403 with the reason of an older service is final", status: 403,
			body: refuse("instance is terminated"), final: true, want: refused + "403 Forbidden: instance is terminated",
		},
		{
			rule: "400 is final", status: 400,
			body: refuse("MalformedRequest: the body is not JSON"), final: true,
			want: refused + "MalformedRequest: the body is not JSON; node-authorizer explain-code MalformedRequest says what to do",
		},
		{
			rule: "400 from a proxy is final", status: 400,
			body: "Client sent an HTTP request to an HTTPS server", final: true,
			want: refused + "it answered 400 Bad Request; is its URL right?",
		},
		{
			rule: "413 is final", status: 413,
			body: refuse("MalformedRequest: too large"), final: true,
			want: refused + "MalformedRequest: too large; node-authorizer explain-code MalformedRequest says what to do",
		},
		{
			rule: "404 is final", status: 404,
			body: "404 page not found", final: true, want: refused + "it answered 404 Not Found; is its URL right?",
		},
		{
			rule: "a redirect is final", status: 307, location: "https://elsewhere.example.com/", final: true,
			want: refused + "it answered 307 Temporary Redirect and points to https://elsewhere.example.com/, which is not followed",
		},

		{
			rule: "a name that may soon be free is retried", status: 403,
			body: refuse("NameTaken: another machine has the name"),
			want: refused + "NameTaken: another machine has the name; node-authorizer explain-code NameTaken says what to do",
		},
		{
			rule: "an old node is retried", status: 403,
			body: refuse("AlreadyRegistered: x"),
			want: refused + "AlreadyRegistered: x; node-authorizer explain-code AlreadyRegistered says what to do",
		},
		{
			rule: "an instance that EC2 does not show yet is retried", status: 403,
			body: refuse("InstanceNotFound: x"),
			want: refused + "InstanceNotFound: x; node-authorizer explain-code InstanceNotFound says what to do",
		},

		{
			rule: "429 is retried", status: 429,
			body: refuse("TooManyRequests: slow down"), want: "the bootstrap service answered TooManyRequests: slow down",
		},
		{
			rule: "503 is retried", status: 503,
			body: refuse("BootstrapUnavailable: the API server cannot be asked"),
			want: "the bootstrap service answered BootstrapUnavailable: the API server cannot be asked",
		},
		{
			rule: "500 is retried", status: 500,
			body: "oh", want: "the bootstrap service answered 500 Internal Server Error",
		},
		{
			rule: "502 from a proxy is retried", status: 502,
			body: "<html>", want: "the bootstrap service answered 502 Bad Gateway",
		},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			a := answer{status: test.status, location: test.location, body: []byte(test.body), after: time.Hour}
			var err error
			if test.status == 200 {
				_, err = a.token("worker-1")
			} else {
				err = a.failure()
			}
			if err == nil || err.Error() != test.want {
				t.Errorf("error: %v\nwant   %s", err, test.want)
			}
			again := new(retryable)
			if errors.As(err, &again) == test.final {
				t.Errorf("final: %v, want %v", !test.final, test.final)
			}
			if !test.final && (!again.connected || again.after != time.Hour) {
				t.Errorf("connected %v, after %s", again.connected, again.after)
			}
		})
	}
}

func TestTheTextOfAnAnswerIsOneShortLine(t *testing.T) {
	a := answer{status: 403, body: []byte(`{"Status":{"Reason":"NameTaken: one\nline \u0000` + strings.Repeat("é", 400) + `"}}`)}
	text := a.failure().Error()
	if !strings.HasPrefix(text, "the bootstrap service refuses: NameTaken: one line ") {
		t.Errorf("%q", text)
	}
	if strings.Contains(text, "\n") || len(text) > 2*maxSummary {
		t.Errorf("%q", text)
	}
}

// Every code that is retried is documented.
func TestTemporaryCodesExist(t *testing.T) {
	source, err := os.ReadFile("failure.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`"([A-Z][A-Za-z]+)"[,:]`).FindAllStringSubmatch(string(source), -1)
	for _, code := range codes {
		if !(&Refused{Code: verdict.Code(code[1])}).temporary() || reference.Link(reference.Reason, code[1]) == "" {
			t.Errorf("%s is not temporary, or has no section in docs/reference/reasons", code[1])
		}
	}
	if len(codes) < 8 {
		t.Errorf("found %d codes", len(codes))
	}
}

// FuzzAnswer checks that only a bootstrap token is accepted as one, and that no error
// contains a line break.
func FuzzAnswer(f *testing.F) {
	f.Add(200, `{"Spec":{"NodeName":"worker-1"},"Status":{"Allowed":true,"Token":"`+aToken+`"}}`)
	f.Add(200, `{"Status":{"Allowed":true,"Token":"x","token":"`+aToken+`"}}`)
	f.Add(200, `{"Challenge":"c"}`)
	f.Add(403, `{"Status":{"Reason":"NameTaken: x"}}`)
	f.Add(503, `null`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		a := answer{status: status, body: []byte(body)}
		if granted, err := a.token("worker-1"); (err == nil) != tokenForm.MatchString(string(granted)) {
			t.Errorf("token of %d bytes, error %v", len(granted), err)
		} else if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
		if challenge, err := a.challenge(); (err == nil) != (challenge != "") {
			t.Errorf("challenge %q, error %v", challenge, err)
		}
		if err := a.failure(); err == nil {
			t.Error("a failure has no error")
		}
	})
}
