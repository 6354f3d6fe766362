package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/token"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

const (
	account   = "111122223333"
	awsAuth   = "/api/v1/namespaces/kube-system/configmaps/aws-auth"
	nodeRoles = "- rolearn: arn:aws:iam::111122223333:role/node\n  username: system:node:{{EC2PrivateDNSName}}\n" +
		"  groups: [system:bootstrappers, system:nodes]\n"
	opsRoles = "- rolearn: arn:aws:iam::111122223333:role/ops\n  username: ops:{{SessionName}}\n  groups: [operators]\n"
)

// authenticationServer is a server that authenticates AWS tokens for an API server.
type authenticationServer struct {
	*testServer
	cloud   *fakeaws.Cloud
	cluster *fakeapiserver.Server
	asked   *requests
	tokens  []string // all tokens of tokenOf
}

// newAuthenticationServer starts a server that only authenticates tokens. Its cluster has aws-auth
// with the roles, if these are not empty. It sets the environment of the AWS SDK.
func newAuthenticationServer(
	t *testing.T, roles string, configure func(*v1alpha1.ServerConfiguration), prepare ...func(*authenticationServer),
) *authenticationServer {
	t.Helper()
	s := &authenticationServer{asked: &requests{}}
	var err error
	if s.cloud, err = fakeaws.New(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cloud.Close)
	front, err := s.cloud.Front(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.cluster = fakeapiserver.New(fakeapiserver.Options{Fault: s.asked.fault})
	t.Cleanup(s.cluster.Close)
	s.testServer = &testServer{testListeners: &testListeners{t: t}} // until the server has started
	if roles != "" {
		s.aws(map[string]string{"mapRoles": roles})
	}
	for _, p := range prepare {
		p(s)
	}
	setCredentials(t, s.cloud.User(account, "node-authorizer"))
	s.testServer = startTestServer(t, s.cluster.URL(), func(c *v1alpha1.ServerConfiguration) {
		c.Webhook.Serves = []v1alpha1.Served{v1alpha1.ServeAuthentication}
		c.IAM.ClusterID, c.IAM.Region = "blue", "eu-west-1"
		if configure != nil {
			configure(c)
		}
		if problems := v1alpha1.Validate(c); len(problems) > 0 {
			t.Fatal(problems)
		}
	}, func(o *Options) { o.aws = front.Transport() })
	if s.server.authentication.config.IAM.Region != "" {
		// The tests set other credentials in the environment, to make tokens.
		eventually(t, "the server has its credentials", func() bool { return s.server.authentication.instances.made.Load() != nil })
	}
	t.Cleanup(func() {
		for _, token := range s.tokens {
			if strings.Contains(s.log.String(), token) {
				t.Error("the log has a token")
			}
		}
		log := strings.ToLower(s.log.String())
		if strings.Contains(log, "x-amz-signature") || strings.Contains(log, "x-amz-security-token") {
			t.Errorf("the log has a secret part of a token:\n%s", log)
		}
	})
	return s
}

func setCredentials(t *testing.T, c fakeaws.Credentials) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": c.AccessKeyID, "AWS_SECRET_ACCESS_KEY": c.SecretAccessKey, "AWS_SESSION_TOKEN": c.Token,
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		"AWS_CA_BUNDLE": "",
	} {
		t.Setenv(name, value)
	}
}

// tokenOf returns a token that is signed with credentials.
func (s *authenticationServer) tokenOf(c fakeaws.Credentials) string {
	s.t.Helper()
	setCredentials(s.t, c)
	text, _, err := token.Make(s.t.Context(), token.Options{ClusterID: "blue", Region: "eu-west-1"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.tokens = append(s.tokens, text)
	return text
}

// launch starts an instance whose profile has the role.
func (s *authenticationServer) launch(role string) fakeaws.Instance {
	return s.cloud.Launch(fakeaws.Instance{Role: role, Profile: "arn:aws:iam::" + account + ":instance-profile/" + role})
}

func (s *authenticationServer) aws(data map[string]string) {
	s.t.Helper()
	if err := s.cluster.Put(awsAuth, &corev1.ConfigMap{Data: data}); err != nil {
		s.t.Fatal(err)
	}
}

// review sends a TokenReview.
func (s *authenticationServer) review(token string, audiences ...string) (response, authenticationv1.TokenReviewStatus) {
	s.t.Helper()
	return s.reviewAs("authentication.k8s.io/v1", token, audiences...)
}

func (s *authenticationServer) reviewAs(version, token string, audiences ...string) (response, authenticationv1.TokenReviewStatus) {
	s.t.Helper()
	named, err := json.Marshal(audiences)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := s.post(s.caller, "/authenticate", fmt.Sprintf(
		`{"apiVersion": %q, "kind": "TokenReview", "metadata": {}, "spec": {"token": %q, "audiences": %s}, "status": {"user": {}}}`,
		version, token, named))
	if err != nil {
		s.t.Fatal(err)
	}
	if got.status != http.StatusOK {
		if strings.Contains(got.body, "authenticated") || token != "" && strings.Contains(got.body, token) {
			s.t.Errorf("an error has the user or the token: %s", got.body)
		}
		return got, authenticationv1.TokenReviewStatus{}
	}
	var review authenticationv1.TokenReview
	if err := json.Unmarshal([]byte(got.body), &review); err != nil {
		s.t.Fatalf("%v in %d %s", err, got.status, got.body)
	}
	if strings.Contains(got.body, token) && token != "" {
		s.t.Errorf("the answer has the token: %s", got.body)
	}
	if review.Kind != "TokenReview" || review.APIVersion != version {
		s.t.Errorf("the answer is a %s of %s, the request is of %s", review.Kind, review.APIVersion, version)
	}
	return got, review.Status
}

// user returns the user of a token, the code of a refusal, or the HTTP status of an error.
func (s *authenticationServer) user(token string) string {
	s.t.Helper()
	got, answer := s.review(token)
	switch {
	case got.status != http.StatusOK:
		return fmt.Sprint(got.status)
	case answer.Authenticated:
		return answer.User.Username
	}
	code, _, _ := strings.Cut(answer.Error, ":")
	return code
}
