package noderestriction_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestWhoIsRestricted(t *testing.T) {
	relabel := noderestriction.Request{Operation: noderestriction.Update, Version: "v1", Resource: "nodes", Name: "worker-2"}
	as := func(user string, groups ...string) *noderestriction.Request {
		req := relabel
		req.User, req.Groups = user, groups
		return &req
	}
	unnamed := func(req noderestriction.Request) *noderestriction.Request {
		req.User, req.Groups = "system:node:", []string{"system:nodes"}
		return &req
	}
	connect := relabel
	connect.Operation, connect.Subresource = noderestriction.Connect, "proxy"
	deployment := noderestriction.Request{Operation: noderestriction.Create, Group: "apps", Version: "v1", Resource: "deployments"}
	odd := relabel
	odd.Operation = "PATCH"

	checkAll(t, shop(), []expectation{
		{rule: "people are not restricted", request: as("ada", "system:authenticated"), code: noderestriction.NotANode},
		{
			rule: "a node's name alone does not make a node", request: as("system:node:worker-1", "system:authenticated"),
			code: noderestriction.NotANode,
		},
		{rule: "the group alone does not make a node", request: as("ada", "system:nodes"), code: noderestriction.NotANode},
		{rule: "nodes are restricted", request: as("system:node:worker-1", "system:nodes"), code: noderestriction.WritesOtherNode},
		{rule: "a node that cannot be named may not write nodes", request: unnamed(relabel), code: noderestriction.UnnamedNode},
		{rule: "a node that cannot be named may write nothing at all", request: unnamed(deployment), code: noderestriction.UnnamedNode},
		{rule: "connections are not restricted", request: from("worker-1", connect), code: noderestriction.NotRestricted},
		{
			rule: "connections of a node that cannot be named are not restricted", request: unnamed(connect),
			code: noderestriction.NotRestricted,
		},
		{rule: "other resources are not restricted", request: from("worker-1", deployment), code: noderestriction.NotRestricted},
		{
			rule: "resources of the same name in another group are not restricted",
			request: from("worker-1", noderestriction.Request{
				Operation: noderestriction.Create, Group: "example.com", Version: "v1", Resource: "pods",
			}),
			code: noderestriction.NotRestricted,
		},
		{
			rule: "an unknown operation is refused", request: from("worker-1", odd),
			code: noderestriction.OperationNotAllowed,
		},
	})
}

func TestAnswersNameNodeAndRule(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	node := &corev1.Node{}
	tainted := changed(node, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} })
	for _, tc := range []struct {
		name    string
		request *noderestriction.Request
		rule    string
	}{
		{
			"an allowed request",
			from("worker-1", noderestriction.Request{
				Operation: noderestriction.Update, Resource: "nodes", Subresource: "status", Name: "worker-1", Object: node,
				OldObject: node,
			}),
			"update nodes",
		},
		{
			"a refused request",
			from("worker-1", noderestriction.Request{
				Operation: noderestriction.Update, Resource: "nodes", Name: "worker-1", Object: tainted, OldObject: node,
			}),
			"update nodes: taints do not change",
		},
		{
			"a subresource of a group",
			from("worker-1", noderestriction.Request{
				Operation: noderestriction.Delete, Group: "storage.k8s.io", Resource: "csinodes", Name: "worker-1",
			}),
			"update, delete csinodes.storage.k8s.io",
		},
		{"no rule", from("worker-1", noderestriction.Request{Operation: noderestriction.Create, Resource: "events"}), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := r.Decide(t.Context(), tc.request); got.Node != "worker-1" || got.Rule != tc.rule {
				t.Errorf("got node %q, rule %q, want worker-1, %q", got.Node, got.Rule, tc.rule)
			}
		})
	}
}

// TestDecideConcurrently is for the race detector.
func TestDecideConcurrently(t *testing.T) {
	c := shop().withStorage()
	c.addDriver("ebs.csi.aws.com", "ebs")
	c.withVolumes(volume("v", corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}),
		tokenVolume("vault"))
	r := noderestriction.New(c, grants{}, kubeversion.For(kubeversion.Latest))
	requests := frequent()
	requests["migrated"] = requestToken("web", "ebs")
	requests["mirror"] = createPod(func(*corev1.Pod) {})
	requests["claim"] = updateClaim(func(c *corev1.PersistentVolumeClaim) { c.Status.Conditions = nil })
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for name, req := range requests {
				if got := r.Decide(t.Context(), req); got.Decision != verdict.Allow {
					t.Errorf("%s: %s", name, got.Reason.Message)
				}
			}
		})
	}
	all.Wait()
}
