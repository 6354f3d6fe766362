package authentication

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/quarantines"
)

// TestQuarantinedNodesGetNoUser: a quarantined node is not authenticated with a token of its instance's
// role, neither with a new one nor with one that was authenticated before. Another instance with that
// role is, and after the end of the Quarantine both are.
func TestQuarantinedNodesGetNoUser(t *testing.T) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(blue.Map(ctx, map[string]string{"mapRoles": mapRoles()}))
	worker, _ := blue.Launch(rightNode)
	other, _ := blue.Launch(rightNode)
	kept, err := blue.MakeToken(ctx, worker)
	must(err)
	eventually(t, "the mapping is used", func(ctx context.Context) error {
		_, err := blue.WhoAmI(ctx, kept)
		return err
	})
	isNode(t, worker, kept)

	q, err := quarantines.Create(ctx, blue.AdminConfig(), "incident-7", policyv1alpha1.QuarantineSpec{Node: worker.PrivateDNSName})
	must(err)
	t.Cleanup(func() {
		if err := q.End(context.WithoutCancel(ctx), blue.Authenticator); err != nil {
			t.Error(err)
		}
	})
	must(q.InForce(ctx, blue.Authenticator))
	made, err := blue.MakeToken(ctx, worker)
	must(err)
	before := refusals(t, string(policyv1alpha1.NodeQuarantined))
	if info, err := blue.WhoAmI(ctx, made); !apierrors.IsUnauthorized(err) {
		t.Errorf("the bearer of a new token is %q (%v)", info.Username, err)
	}
	// kube-apiserver itself keeps its answer about a token for ten seconds.
	status, err := blue.Review(ctx, kept)
	if err != nil || status.Authenticated || status.User.Username != "" {
		t.Errorf("the server answers %+v (%v) about a token that was authenticated before", status, err)
	}
	if after := refusals(t, string(policyv1alpha1.NodeQuarantined)); after != before+2 {
		t.Errorf("%d tokens were refused, want 2", after-before)
	}
	text, err := blue.Authenticator.Log()
	must(err)
	for _, token := range []string{made, kept} {
		if strings.Contains(text, token[:100]) {
			t.Error("the log has a token")
		}
	}
	ofOther, err := blue.MakeToken(ctx, other)
	must(err)
	isNode(t, other, ofOther)

	must(q.End(ctx, blue.Authenticator))
	isNode(t, worker, made)
	isNode(t, worker, kept)
}

// isNode checks that a token authenticates an instance as its node.
func isNode(t *testing.T, instance fakeaws.Instance, token string) {
	t.Helper()
	info, err := blue.WhoAmI(t.Context(), token)
	if want := "system:node:" + instance.PrivateDNSName; err != nil || info.Username != want {
		t.Errorf("the bearer is %q (%v), want %s", info.Username, err, want)
	}
}
