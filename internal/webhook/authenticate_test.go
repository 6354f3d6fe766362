package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	tokenwebhook "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/webhook"
)

const (
	cluster   = "https://kubernetes.default.svc"
	nodeToken = "k8s-aws-v1.aHR0cHM6Ly9zdHMuZXUtd2VzdC0xLmFtYXpvbmF3cy5jb20v"
)

func aNode() *iam.User {
	return &iam.User{
		Username: "system:node:worker-1", UID: "aws-iam-authenticator:111122223333:AROA", Groups: []string{"system:bootstrappers", "system:nodes"},
		Extra: map[string][]string{"sessionName": {"i-0123456789abcdef0"}},
	}
}

// always authenticates every token so.
func always(user *iam.User, err error) review.Authenticate {
	return func(context.Context, string) (*iam.User, error) { return user, err }
}

func TestAuthenticateAnswersInTheVersionAsked(t *testing.T) {
	node := authenticationv1.UserInfo{
		Username: "system:node:worker-1", UID: "aws-iam-authenticator:111122223333:AROA", Groups: []string{"system:bootstrappers", "system:nodes"},
		Extra: map[string]authenticationv1.ExtraValue{"sessionName": {"i-0123456789abcdef0"}},
	}
	for _, tc := range []struct {
		rule      string
		file      string
		audiences []string
		user      *iam.User
		err       error
		want      authenticationv1.TokenReviewStatus
	}{
		{"a user", "token.json", nil, aNode(), nil, authenticationv1.TokenReviewStatus{Authenticated: true, User: node}},
		{"a user, in v1beta1", "token-v1beta1.json", nil, aNode(), nil, authenticationv1.TokenReviewStatus{Authenticated: true, User: node}},
		{
			"for those of the audiences asked for that are ours", "token.json",
			[]string{"other", cluster},
			aNode(), nil,
			authenticationv1.TokenReviewStatus{Authenticated: true, User: node, Audiences: []string{cluster}},
		},
		{
			"a refusal says why", "token.json", nil, nil, iam.Refuse("NotMapped", "nothing maps the role"),
			authenticationv1.TokenReviewStatus{Error: "NotMapped: nothing maps the role"},
		},
		{
			"a refusal stays one, whatever comes with it", "token-v1beta1.json", nil, aNode(),
			fmt.Errorf("wrapped: %w", iam.Refuse("NotMapped", "nothing maps the role")),
			authenticationv1.TokenReviewStatus{Error: "NotMapped: nothing maps the role"},
		},
		{"nobody is no user", "token.json", nil, nil, nil, authenticationv1.TokenReviewStatus{Error: "the token has no user"}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			asked := ""
			handler := webhook.Authenticate(func(_ context.Context, token string) (*iam.User, error) {
				asked = token
				return tc.user, tc.err
			}, tc.audiences, webhook.Options{
				Rejected: func(reason string) { t.Errorf("rejected: %s", reason) },
				Unasked:  func(refusal *iam.Refusal) { t.Errorf("not asked: %v", refusal) },
			})
			w := post(t, handler, document(t, tc.file))
			got := answered[authenticationv1.TokenReview](t, w)
			version := "authentication.k8s.io/" + strings.TrimSuffix(strings.TrimPrefix(strings.Replace(tc.file, "token.json", "token-v1.json", 1), "token-"), ".json")
			if !reflect.DeepEqual(got.Status, tc.want) || got.Kind != "TokenReview" || got.APIVersion != version {
				t.Errorf("answer is %+v, want status %+v", got, tc.want)
			}
			if asked != nodeToken {
				t.Errorf("asked about %q", asked)
			}
			if got.Spec.Token != "" || strings.Contains(w.Body.String(), "aHR0c") {
				t.Errorf("the token is in the answer: %s", w.Body)
			}
		})
	}
}

func TestReviewsThatAreRefusedWithoutALook(t *testing.T) {
	for _, tc := range []struct {
		rule, body string
		audiences  []string
		want       string
	}{
		{"no token", strings.Replace(document(t, "token.json"), nodeToken, "", 1), nil, "TokenMissing: the review has no token"},
		{"nothing at all", `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"}`, []string{"a"}, "TokenMissing: the review has no token"},
		{"for others", document(t, "token.json"), []string{"other"}, `AudienceMismatch: the token is wanted for the audiences ["https://kubernetes.default.svc"]`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var told []string
			handler := webhook.Authenticate(func(context.Context, string) (*iam.User, error) {
				t.Error("asked")
				return aNode(), nil
			}, tc.audiences, webhook.Options{Unasked: func(refusal *iam.Refusal) { told = append(told, refusal.Error()) }})
			got := answered[authenticationv1.TokenReview](t, post(t, handler, tc.body))
			if got.Status.Authenticated || !strings.HasPrefix(got.Status.Error, tc.want) || len(told) != 1 || told[0] != got.Status.Error {
				t.Errorf("answer is %+v, told of %q", got.Status, told)
			}
		})
	}
}

func TestWhatCouldNotBeFoundOutIsNoAnswer(t *testing.T) {
	for _, tc := range []struct {
		rule       string
		err        error
		status     int
		message    string
		retryAfter string
	}{
		{
			"throttled", fmt.Errorf("verifying: %w", &iam.Throttled{Service: "STS", Detail: "secret"}),
			429, "STS throttles: whose the token is could not be found out; try again", "1",
		},
		{"an error", errors.New("secret: connection refused"), 503, "whose the token is could not be found out; the log of node-authorizer says why", ""},
		{"the caller gave up", context.Canceled, 503, "whose the token is could not be found out; the log of node-authorizer says why", ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			handler := webhook.Authenticate(always(aNode(), tc.err), nil, webhook.Options{Rejected: func(reason string) { t.Errorf("it was a question: %s", reason) }})
			w := post(t, handler, document(t, "token.json"))
			status := rejected(t, w)
			if w.Code != tc.status || status.Message != tc.message || w.Header().Get("Retry-After") != tc.retryAfter {
				t.Errorf("status %d, headers %v: %s", w.Code, w.Header(), w.Body)
			}
			if (status.Details != nil && status.Details.RetryAfterSeconds == 1) != (tc.retryAfter == "1") {
				t.Errorf("details are %+v", status.Details)
			}
		})
	}
}

// apiServer is the client of kube-apiserver. It counts the requests that it makes.
func apiServer(t *testing.T, version string, handler http.Handler) (*tokenwebhook.WebhookTokenAuthenticator, *atomic.Int32) {
	t.Helper()
	requests := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	backoff := wait.Backoff{Duration: time.Millisecond, Steps: 3}
	client, err := tokenwebhook.New(&rest.Config{Host: server.URL}, version, authenticator.Audiences{cluster}, backoff)
	if err != nil {
		t.Fatal(err)
	}
	return client, requests
}

func TestAPIServersUnderstandTheAnswers(t *testing.T) {
	want := &user.DefaultInfo{
		Name: "system:node:worker-1", UID: "aws-iam-authenticator:111122223333:AROA", Groups: []string{"system:bootstrappers", "system:nodes"},
		Extra: map[string][]string{"sessionName": {"i-0123456789abcdef0"}},
	}
	for _, tc := range []struct {
		rule            string
		asked, ours     []string
		user            *iam.User
		err             error
		authenticatedTo []string
		failure         string // empty: a user, or none without an error
	}{
		{"a user, and nobody says for whom", nil, nil, aNode(), nil, nil, ""},
		{"a user for the API server itself", []string{cluster}, nil, aNode(), nil, []string{cluster}, ""},
		{"a user for whom we say", []string{cluster, "other"}, []string{"other"}, aNode(), nil, []string{"other"}, ""},
		{"a refusal is an error with the code", nil, nil, nil, iam.Refuse("NotMapped", "nothing maps it"), nil, "NotMapped: nothing maps it"},
		{"what could not be found out is an error", nil, nil, nil, errors.New("STS is down"), nil, "whose the token is could not be found out"},
	} {
		for _, version := range []string{"v1", "v1beta1"} {
			t.Run(tc.rule+" "+version, func(t *testing.T) {
				client, requests := apiServer(t, version, webhook.Authenticate(always(tc.user, tc.err), tc.ours, webhook.Options{}))
				ctx := t.Context()
				if tc.asked != nil {
					ctx = authenticator.WithAudiences(ctx, tc.asked)
				}
				got, ok, err := client.AuthenticateToken(ctx, nodeToken)
				switch {
				case tc.failure != "":
					if ok || err == nil || !strings.Contains(err.Error(), tc.failure) {
						t.Errorf("%+v, %v, %v", got, ok, err)
					}
				case err != nil || !ok:
					t.Errorf("%v, %v", ok, err)
				case !reflect.DeepEqual(got.User, want) || !reflect.DeepEqual([]string(got.Audiences), tc.authenticatedTo):
					t.Errorf("user %+v for %v", got.User, got.Audiences)
				}
				if n := requests.Load(); n != 1 {
					t.Errorf("it asks %d times", n)
				}
			})
		}
	}
}

// kube-apiserver remembers users for minutes, and also that a token has none, unless it
// is told why: then it is an error to it. So a role that is mapped now is let in now.
func TestAPIServersDoNotRememberRefusals(t *testing.T) {
	for _, tc := range []struct {
		rule     string
		user     *iam.User
		err      error
		requests int32
	}{
		{"a user is remembered", aNode(), nil, 1},
		{"a refusal is not", nil, iam.Refuse("NotMapped", "nothing maps it"), 3},
		{"an error is not", nil, errors.New("STS is down"), 3},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			client, requests := apiServer(t, "v1", webhook.Authenticate(always(tc.user, tc.err), nil, webhook.Options{}))
			remembering := tokencache.New(client, false, 2*time.Minute, 2*time.Minute)
			for range 3 {
				if _, ok, err := remembering.AuthenticateToken(t.Context(), nodeToken); ok != (tc.user != nil) || (err == nil) != ok {
					t.Errorf("%v, %v", ok, err)
				}
			}
			if got := requests.Load(); got != tc.requests {
				t.Errorf("%d requests", got)
			}
		})
	}
}

// A throttled question is asked again by itself, after the second that it is told.
func TestAPIServersAskAgainWhenThrottled(t *testing.T) {
	var asked atomic.Int32
	handler := webhook.Authenticate(func(context.Context, string) (*iam.User, error) {
		if asked.Add(1) == 1 {
			return nil, &iam.Throttled{Service: "EC2"}
		}
		return aNode(), nil
	}, nil, webhook.Options{})
	client, requests := apiServer(t, "v1beta1", handler)
	got, ok, err := client.AuthenticateToken(t.Context(), nodeToken)
	if err != nil || !ok || got.User.GetName() != "system:node:worker-1" || requests.Load() != 2 {
		t.Errorf("%+v, %v, %v after %d requests", got, ok, err, requests.Load())
	}
}

// One that goes on is an error that says so, and nobody's identity.
func TestAPIServersAreToldOfThrottling(t *testing.T) {
	client, _ := apiServer(t, "v1", webhook.Authenticate(always(nil, &iam.Throttled{Service: "STS"}), nil, webhook.Options{}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, ok, err := client.AuthenticateToken(ctx, nodeToken); ok || err == nil || apierrors.IsUnauthorized(err) {
		t.Errorf("%v, %v", ok, err)
	}
}

// FuzzAuthenticate: whatever the body, nobody is authenticated without a user, and the
// token is not in the answer.
func FuzzAuthenticate(f *testing.F) {
	for _, name := range []string{"token.json", "token-v1beta1.json", "access.json"} {
		f.Add([]byte(document(f, name)))
	}
	f.Add([]byte(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"\ud800","audiences":[""]}}`))
	handler := webhook.Authenticate(always(nil, iam.Refuse("NotMapped", "nothing maps it")), []string{cluster}, webhook.Options{})
	f.Fuzz(func(t *testing.T, body []byte) {
		checkAnswer(t, handler, body, func(text []byte) {
			var answer authenticationv1.TokenReview
			if err := json.Unmarshal(text, &answer); err != nil || answer.Kind != "TokenReview" || answer.Status.Authenticated ||
				answer.Status.Error == "" || answer.Spec.Token != "" {
				t.Errorf("%v: %s", err, text)
			}
		})
	})
}
