package client

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestAnswers(t *testing.T) {
	refuse := func(reason string) string {
		return `{"Spec":{"NodeName":"worker-1"},"Status":{"Allowed":false,"Token":"","Reason":"` + reason + `"}}`
	}
	allow := func(name, token string) string {
		return `{"Spec":{"NodeName":"` + name + `"},"Status":{"Allowed":true,"Token":"` + token + `"}}`
	}
	tests := []struct {
		rule     string
		status   int
		body     string
		location string
		final    bool
		want     string
	}{
		{rule: "200 without a token is a failure of the service", status: 200, body: allow("worker-1", ""), want: "the bootstrap service answered 200 OK without a token"},
		{rule: "200 with half a token is one", status: 200, body: allow("worker-1", "abc123.0123456789ABCDEF"), want: "the bootstrap service answered 200 OK with a token that is not a bootstrap token"},
		{rule: "200 with a token and more is one", status: 200, body: allow("worker-1", aToken+`\n`), want: "the bootstrap service answered 200 OK with a token that is not a bootstrap token"},
		{rule: "200 for another node is one", status: 200, body: allow("worker-2", aToken), want: `the bootstrap service answered for node "worker-2" instead of "worker-1"`},
		{rule: "200 from somebody else is one", status: 200, body: "<html>", want: "the bootstrap service answered 200 OK with a body that is not its own"},
		{rule: "200 that does not allow is a refusal", status: 200, body: refuse("not yours"), final: true, want: "the bootstrap service refuses: not yours"},
		{rule: "200 that says nothing is a refusal", status: 200, body: `{}`, final: true, want: "the bootstrap service refuses: it gives no reason"},

		{rule: "403 is final", status: 403, body: refuse("NameMismatch: the evidence is for another name"), final: true, want: "the bootstrap service refuses: NameMismatch: the evidence is for another name; docs/reasons.md says what to do"},
		{rule: "403 of somebody in between is final", status: 403, body: "no", final: true, want: "the bootstrap service refuses: 403 Forbidden"},
		{rule: "403 with the reason of an older service is final", status: 403, body: refuse("instance is terminated"), final: true, want: "the bootstrap service refuses: 403 Forbidden: instance is terminated"},
		{rule: "400 is final", status: 400, body: refuse("MalformedRequest: the body is not JSON"), final: true, want: "the bootstrap service refuses: MalformedRequest: the body is not JSON; docs/reasons.md says what to do"},
		{rule: "400 of somebody in between is final", status: 400, body: "Client sent an HTTP request to an HTTPS server", final: true, want: "the bootstrap service refuses: it answered 400 Bad Request; is its URL right?"},
		{rule: "what is too large is final", status: 413, body: refuse("MalformedRequest: too large"), final: true, want: "the bootstrap service refuses: MalformedRequest: too large; docs/reasons.md says what to do"},
		{rule: "404 is final", status: 404, body: "404 page not found", final: true, want: "the bootstrap service refuses: it answered 404 Not Found; is its URL right?"},
		{rule: "a redirect is final", status: 307, location: "https://elsewhere.example.com/", final: true, want: "the bootstrap service refuses: it answered 307 Temporary Redirect and points to https://elsewhere.example.com/, which is not followed"},

		{rule: "a name that is being freed can pass", status: 403, body: refuse("NameTaken: another machine has the name"), want: "the bootstrap service refuses: NameTaken: another machine has the name; docs/reasons.md says what to do"},
		{rule: "an old node can pass", status: 403, body: refuse("AlreadyRegistered: x"), want: "the bootstrap service refuses: AlreadyRegistered: x; docs/reasons.md says what to do"},
		{rule: "an instance that EC2 does not tell of yet can pass", status: 403, body: refuse("InstanceNotFound: x"), want: "the bootstrap service refuses: InstanceNotFound: x; docs/reasons.md says what to do"},

		{rule: "429 can pass", status: 429, body: refuse("TooManyRequests: slow down"), want: "the bootstrap service answered TooManyRequests: slow down"},
		{rule: "503 can pass", status: 503, body: refuse("BootstrapUnavailable: the API server cannot be asked"), want: "the bootstrap service answered BootstrapUnavailable: the API server cannot be asked"},
		{rule: "500 can pass", status: 500, body: "oh", want: "the bootstrap service answered 500 Internal Server Error"},
		{rule: "502 of somebody in between can pass", status: 502, body: "<html>", want: "the bootstrap service answered 502 Bad Gateway"},
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
			again := new(later)
			if errors.As(err, &again) == test.final {
				t.Errorf("final: %v, want %v", !test.final, test.final)
			}
			if !test.final && (!again.reached || again.after != time.Hour) {
				t.Errorf("reached %v, after %s", again.reached, again.after)
			}
		})
	}
}

func TestWhatIsShownOfAnAnswerIsOneShortLine(t *testing.T) {
	a := answer{status: 403, body: []byte(`{"Status":{"Reason":"NameTaken: one\nline \u0000` + strings.Repeat("é", 400) + `"}}`)}
	text := a.failure().Error()
	if !strings.HasPrefix(text, "the bootstrap service refuses: NameTaken: one line ") {
		t.Errorf("%q", text)
	}
	if strings.Contains(text, "\n") || len(text) > 2*maxSummary {
		t.Errorf("%q", text)
	}
}

// TestCodesThatCanPassAreOnesThatTheServiceHas finds codes in the page of all.
func TestCodesThatCanPassAreOnesThatTheServiceHas(t *testing.T) {
	page, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("failure.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`"([A-Z][A-Za-z]+)"[,:]`).FindAllStringSubmatch(string(source), -1)
	for _, code := range codes {
		if !(&Refused{Code: verdict.Code(code[1])}).canPass() || !strings.Contains(string(page), "### `"+code[1]+"`\n") {
			t.Errorf("%s cannot pass, or is not in docs/reasons.md", code[1])
		}
	}
	if len(codes) < 8 {
		t.Errorf("found %d codes", len(codes))
	}
}

// FuzzAnswer checks that whatever comes back, only a bootstrap token is taken for
// one, and that no error repeats one.
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
			t.Error("a failure is none")
		}
	})
}
