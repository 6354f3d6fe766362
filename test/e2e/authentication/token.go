package authentication

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"

	"github.com/aws/aws-sdk-go-v2/credentials"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam/token"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// Token runs `node-authorizer token` with credentials.
func (c *Cluster) Token(ctx context.Context, with fakeaws.Credentials, clusterID string) (string, error) {
	command := exec.CommandContext(ctx, c.Program, "token", "--cluster-id", clusterID, "--region", Region, "--token-only")
	command.Env = server.Environment("AWS_ACCESS_KEY_ID="+with.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+with.SecretAccessKey,
		"AWS_SESSION_TOKEN="+with.Token)
	output, err := command.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return string(bytes.TrimSpace(output)), err
}

// MakeToken makes a token of an instance in this process, with a new session: tokens of
// one session that are made within the same second are equal.
func (c *Cluster) MakeToken(ctx context.Context, instance fakeaws.Instance) (string, error) {
	with := c.Cloud.Session(instance.Account, instance.Role, instance.ID)
	text, _, err := token.Make(ctx, token.Options{
		ClusterID: ClusterID, Region: Region,
		Credentials: credentials.NewStaticCredentialsProvider(with.AccessKeyID, with.SecretAccessKey, with.Token),
	})
	return text, err
}

// Review asks the server about a token, as kube-apiserver does.
func (c *Cluster) Review(ctx context.Context, bearer string) (authenticationv1.TokenReviewStatus, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.webhookKubeconfig())
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(&authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenReview"},
		Spec:     authenticationv1.TokenReviewSpec{Token: bearer},
	})
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	answer, err := server.Post(ctx, client, config.Host, "application/json", body)
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	if answer.Status != http.StatusOK {
		return authenticationv1.TokenReviewStatus{}, fmt.Errorf("the server answers %d %s", answer.Status, answer.Body)
	}
	var review authenticationv1.TokenReview
	err = json.Unmarshal([]byte(answer.Body), &review)
	return review.Status, err
}

// WhoAmI returns the user as which kube-apiserver authenticates a token.
func (c *Cluster) WhoAmI(ctx context.Context, bearer string) (authenticationv1.UserInfo, error) {
	config := rest.AnonymousClientConfig(c.AdminConfig())
	config.BearerToken = bearer
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}
