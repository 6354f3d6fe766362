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
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	tokenwebhook "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
)

const (
	cluster   = "https://kubernetes.default.svc"
	nodeToken = "k8s-aws-v1.aHR0cHM6Ly9zdHMuZXUtd2VzdC0xLmFtYXpvbmF3cy5jb20v"
)

func aNode() *iam.User {
	return &iam.User{
		Username: "system:node:worker-1", UID: "aws-iam-authenticator:111122223333:AROA",
		Groups: []string{"system:bootstrappers", "system:nodes"},
		Extra:  map[string][]string{"sessionName": {"i-0123456789abcdef0"}},
	}
}

// always returns an evaluator that gives every token the same result.
func always(user *iam.User, err error) review.Authenticate {
	return func(context.Context, string) (*iam.User, error) { return user, err }
}

func TestAuthenticateAnswersInTheVersionAsked(t *testing.T) {
	node := authenticationv1.UserInfo{
		Username: "system:node:worker-1", UID: "aws-iam-authenticator:111122223333:AROA",
		Groups: []string{"system:bootstrappers", "system:nodes"},
		Extra:  map[string]authenticationv1.ExtraValue{"sessionName": {"i-0123456789abcdef0"}},
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
		{
			"a user, in v1beta1", "token-v1beta1.json", nil, aNode(), nil,
			authenticationv1.TokenReviewStatus{Authenticated: true, User: node},
		},
		{
			"the audiences are those that are both requested and ours", "token.json",
			[]string{"other", cluster},
			aNode(), nil,
			authenticationv1.TokenReviewStatus{Authenticated: true, User: node, Audiences: []string{cluster}},
		},
		{
			"a refusal says why", "token.json", nil, nil, iam.Refuse("NotMapped", "nothing maps the role"),
			authenticationv1.TokenReviewStatus{Error: "NotMapped: nothing maps the role"},
		},
		{
			"a refusal wins over a user", "token-v1beta1.json", nil, aNode(),
			fmt.Errorf("wrapped: %w", iam.Refuse("NotMapped", "nothing maps the role")),
			authenticationv1.TokenReviewStatus{Error: "NotMapped: nothing maps the role"},
		},
		{"no user and no error", "token.json", nil, nil, nil, authenticationv1.TokenReviewStatus{Error: "the token has no user"}},
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
			version := map[string]string{"token.json": "v1", "token-v1beta1.json": "v1beta1"}[tc.file]
			version = "authentication.k8s.io/" + version
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

func TestReviewsThatAreRefusedBeforeTheTokenIsVerified(t *testing.T) {
	for _, tc := range []struct {
		rule, body string
		audiences  []string
		want       string
	}{
		{"no token", strings.Replace(document(t, "token.json"), nodeToken, "", 1), nil, "TokenMissing: the review has no token"},
		{
			"an empty review", `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"}`,
			[]string{"a"},
			"TokenMissing: the review has no token",
		},
		{
			"other audiences", document(t, "token.json"),
			[]string{"other"},
			`AudienceMismatch: the token is wanted for the audiences ["https://kubernetes.default.svc"]`,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var reported []string
			handler := webhook.Authenticate(func(context.Context, string) (*iam.User, error) {
				t.Error("asked")
				return aNode(), nil
			}, tc.audiences, webhook.Options{Unasked: func(refusal *iam.Refusal) { reported = append(reported, refusal.Error()) }})
			got := answered[authenticationv1.TokenReview](t, post(t, handler, tc.body))
			if got.Status.Authenticated || !strings.HasPrefix(got.Status.Error, tc.want) ||
				len(reported) != 1 || reported[0] != got.Status.Error {
				t.Errorf("answer is %+v, reported %q", got.Status, reported)
			}
		})
	}
}

func TestErrorsAreNotAnswers(t *testing.T) {
	const failed = "the token could not be verified; the log of node-authorizer says why"
	for _, tc := range []struct {
		rule       string
		err        error
		status     int
		message    string
		retryAfter string
	}{
		{
			"throttled", fmt.Errorf("verifying: %w", &iam.Throttled{Service: "STS", Detail: "secret"}),
			429, "STS throttles requests: the token could not be verified; try again", "1",
		},
		{"an error", errors.New("secret: connection refused"), 503, failed, ""},
		{"the caller gave up", context.Canceled, 503, failed, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			handler := webhook.Authenticate(always(aNode(), tc.err), nil, webhook.Options{
				Rejected: func(reason string) { t.Errorf("rejected as %s", reason) },
			})
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

// apiServer returns the client of kube-apiserver, and the number of requests that it makes.
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

func TestTheClientOfAPIServersReadsTheAnswers(t *testing.T) {
	want := &user.DefaultInfo{
		Name: "system:node:worker-1", UID: "aws-iam-authenticator:111122223333:AROA",
		Groups: []string{"system:bootstrappers", "system:nodes"},
		Extra:  map[string][]string{"sessionName": {"i-0123456789abcdef0"}},
	}
	for _, tc := range []struct {
		rule            string
		asked, ours     []string
		user            *iam.User
		err             error
		authenticatedTo []string
		failure         string // empty: a user, or none without an error
	}{
		{"a user without audiences", nil, nil, aNode(), nil, nil, ""},
		{"a user for the API server", []string{cluster}, nil, aNode(), nil, []string{cluster}, ""},
		{"a user for our audiences", []string{cluster, "other"}, []string{"other"}, aNode(), nil, []string{"other"}, ""},
		{
			"a refusal is an error with the code", nil, nil,
			nil, iam.Refuse("NotMapped", "nothing maps it"), nil, "NotMapped: nothing maps it",
		},
		{
			"an error is an error", nil, nil,
			nil, errors.New("STS is down"), nil, "the token could not be verified",
		},
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
					t.Errorf("%d requests, want one", n)
				}
			})
		}
	}
}

// kube-apiserver caches users for minutes. It also caches that a token has no user, unless
// the answer has an error. So a role that is mapped now can be used at once.
func TestAPIServersDoNotCacheRefusals(t *testing.T) {
	for _, tc := range []struct {
		rule     string
		user     *iam.User
		err      error
		requests int32
	}{
		{"a user is cached", aNode(), nil, 1},
		{"a refusal is not cached", nil, iam.Refuse("NotMapped", "nothing maps it"), 3},
		{"an error is not cached", nil, errors.New("STS is down"), 3},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			client, requests := apiServer(t, "v1", webhook.Authenticate(always(tc.user, tc.err), nil, webhook.Options{}))
			cached := tokencache.New(client, false, 2*time.Minute, 2*time.Minute)
			for range 3 {
				_, ok, err := cached.AuthenticateToken(t.Context(), nodeToken)
				if ok != (tc.user != nil) || (err == nil) != ok {
					t.Errorf("%v, %v", ok, err)
				}
			}
			if got := requests.Load(); got != tc.requests {
				t.Errorf("%d requests", got)
			}
		})
	}
}

// The client retries a throttled review after the given second.
func TestAPIServersRetryWhenThrottled(t *testing.T) {
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

// If throttling continues, the client gets an error, and no identity.
func TestLastingThrottlingIsAnError(t *testing.T) {
	client, _ := apiServer(t, "v1", webhook.Authenticate(always(nil, &iam.Throttled{Service: "STS"}), nil, webhook.Options{}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, ok, err := client.AuthenticateToken(ctx, nodeToken); ok || err == nil || apierrors.IsUnauthorized(err) {
		t.Errorf("%v, %v", ok, err)
	}
}

// FuzzAuthenticate: for no body does the answer have a user that the evaluator did not
// return, or contain the token.
func FuzzAuthenticate(f *testing.F) {
	for _, name := range []string{"token.json", "token-v1beta1.json"} {
		f.Add([]byte(document(f, name)))
	}
	seeds(f, map[string]any{
		"token.json": authenticationv1.TokenReview{}, "token-v1beta1.json": authenticationv1beta1.TokenReview{},
	})
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
