package attackpaths

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// TestEmulated134 runs cases whose technique changed with the minor.
func TestEmulated134(t *testing.T) {
	cases := []testCase{
		{
			rule: "PodExec: get is enough before 1.35", add: podDB + nodeOf(web1) + roleOf("r", "shop", "shop/web", "get pods/exec@ db-1"),
			want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
		},
		{
			rule: "PodExec: not by the name of another pod before 1.35",
			add:  podDB + nodeOf(web1) + roleOf("r", "shop", "shop/web", "get pods/exec@ db-2"),
		},
		{
			rule: "NodeProxy: get is enough", add: podDB + nodeOf(web1) + roleOf("r", "", "shop/web", "get nodes/proxy@ web-1"),
			want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
		},
		{
			rule: "TokenOfPodOnNode: an audience that the pod names", start: nodeWeb1, add: podDB + nodeOf(web1),
			want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
		},
		{
			rule: "TokenOfPodOnNode: not for a pod without a token since 1.33", start: nodeWeb1, add: bare(podDB) + nodeOf(web1),
			want: []string{"Pod shop/db-1"},
		},
		{
			rule: "Impersonate: constrained impersonation is off before 1.36",
			add: nodeOf(web1) +
				roleOf("r", "", "shop/web", "impersonate:user-info users@authentication.k8s.io", "impersonate-on:user-info:* *@*") +
				roleOf("a", "shop", "user alice", "get configmaps@"),
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) { c.run(t, emulated) })
	}
}

// TestATokenEndsWithItsPod uses a token that is bound to a pod after the pod is deleted.
func TestATokenEndsWithItsPod(t *testing.T) {
	ctx := t.Context()
	newest.begin(t, podDB)
	e, err := newest.newExecutor(ctx, podDB1, nil)
	if err != nil {
		t.Fatal(err)
	}
	db := holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "db"}
	var pod corev1.Pod
	if err := newest.admin.get(ctx, pods.at("shop", "db-1")).into(&pod); err != nil {
		t.Fatal(err)
	}
	if err := e.requestToken(ctx, db, &pod); err != nil {
		t.Fatal(err)
	}
	if err := newest.admin.delete(ctx, pods.at("shop", "db-1"), immediately).failure(); err != nil {
		t.Fatal(err)
	}
	err = until(ctx, "the API server knows that the pod is gone", func(ctx context.Context) error {
		if got := e.actor(db).get(ctx, "/api"); got.status != http.StatusUnauthorized {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	result := newest.reach(t, nodeWeb1, nil, false)
	if got := newest.certain(result); len(got) > 0 {
		t.Errorf("the node reaches %v without the pod", got)
	}
}
