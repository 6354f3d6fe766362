package attackpaths_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
	"github.com/node-authorizer/node-authorizer/internal/testing/randomcluster"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// randomCluster is a random cluster as the engine reads it.
type randomCluster struct {
	*randomcluster.Cluster
	custom []attackpaths.CustomTechnique
	// policy are the NodeScopes; nil for none.
	policy *nodescope.Policy
}

func newRandomCluster(seed uint64) *randomCluster {
	rc := &randomCluster{Cluster: randomcluster.New(seed)}
	rc.startPods(rand.New(rand.NewPCG(seed, 3)))
	if !rc.Impersonating { // custom techniques are not followed through constrained impersonation
		rc.custom = rc.customs()
	}
	return rc
}

// startPods gives pods phases, init containers and secrets in their environment.
func (rc *randomCluster) startPods(r *rand.Rand) {
	for _, o := range rc.Objects {
		p, ok := o.(*corev1.Pod)
		if !ok {
			continue
		}
		c := &p.Spec.Containers[0]
		if p.Status.Phase == "" {
			p.Status.Phase = []corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning}[r.IntN(3)]
		}
		if r.IntN(4) == 0 {
			first := *c
			first.Name, *c = "first", corev1.Container{Name: c.Name, Image: c.Image}
			if r.IntN(3) == 0 {
				first.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, first)
		}
		if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; !mirror && r.IntN(4) == 0 {
			env := corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s1"}}
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &env})
		}
	}
}

func pick[T any](rc *randomCluster, from []T) T { return from[rc.IntN(len(from))] }

// some picks one or two.
func (rc *randomCluster) some(from []string) []string {
	list := []string{pick(rc, from)}
	if other := pick(rc, from); rc.chance(2) && other != list[0] {
		list = append(list, other)
	}
	return list
}

// chance is true with a probability of 1/of.
func (rc *randomCluster) chance(of int) bool { return rc.IntN(of) == 0 }

// cluster makes a cluster of objects.
func (rc *randomCluster) cluster(t *testing.T, objects []runtime.Object) *attackpaths.Cluster {
	t.Helper()
	c := newCluster()
	c.Features, c.EKS, c.Custom, c.Policies = rc.Features, rc.EKS, rc.custom, admissionpolicy.New()
	c.NodeScopes = rc.policy
	c.Audiences = func(_, pod string) (audiences []string, restricted bool) {
		switch pod {
		case "p1":
			return []string{"", "vault"}, true
		case "p2":
			return nil, false
		}
		return nil, true
	}
	for _, o := range objects {
		add(t, c, o)
	}
	return c
}

// starts returns all holdings of the cluster that From accepts.
func (rc *randomCluster) starts(n *naive) []attackpaths.Holding {
	var all []attackpaths.Holding
	for _, node := range n.nodes {
		all = append(all, attackpaths.Holding{Kind: attackpaths.Node, Name: node.Name})
	}
	for a := range n.accounts {
		all = append(all, attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: a.Namespace, Name: a.Name})
	}
	for u := range n.users {
		if f := identityOf(u); f.kind == attackpaths.User {
			all = append(all, attackpaths.Holding{Kind: attackpaths.User, Name: u})
		}
	}
	for g := range n.groups {
		all = append(all, attackpaths.Holding{Kind: attackpaths.Group, Name: g})
	}
	for _, p := range n.pods {
		all = append(all, attackpaths.Holding{Kind: attackpaths.Pod, Namespace: p.Namespace, Name: p.Name.Name})
	}
	slices.SortFunc(all, func(a, b attackpaths.Holding) int { return a.Compare(b) })
	return all
}
