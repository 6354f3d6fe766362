package attackpaths_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// TestPlacingAgreesWithMovedPods moves the pods, and evaluates again.
func TestPlacingAgreesWithMovedPods(t *testing.T) {
	placed, helped, moved := 0, 0, 0
	eachCluster(t, 200, func(t *testing.T, rc *randomCluster) {
		rc.addPaths()
		rc.addSizes()
		rc.Objects = rc.withDetail()
		c := rc.cluster(t, rc.Objects)
		before := reachOf(t, c, attackpaths.Holding{})
		advice, err := attackpaths.WhatToChange(c, attackpaths.AdviceOptions{Possible: rc.chance(2)})
		if err != nil {
			t.Fatal(err)
		}
		p := advice.Placing
		if p == nil || len(p.Nodes) == 0 {
			return
		}
		objects := newPatched(t, rc.Objects)
		if err := objects.apply(p.Remedy.Changes); err != nil {
			t.Errorf("the changes %+v cannot be applied: %v", p.Remedy.Changes, err)
			return
		}
		workloads := map[attackpaths.Holding]bool{}
		for _, w := range p.Workloads {
			workloads[w.Object] = true
		}
		after := objects.result(rc.Objects)
		for _, o := range after {
			if pod, ok := o.(*corev1.Pod); ok && workloads[templateOwner(pod)] {
				if node := p.Bound()[inventory.Name{Namespace: pod.Namespace, Name: pod.Name}]; node != "" {
					moved += map[bool]int{true: 1}[pod.Spec.NodeName != node]
					pod.Spec.NodeName = node
				}
			}
		}
		certain, entirely := helpedNodes(before, reachOf(t, rc.cluster(t, after), attackpaths.Holding{}))
		if certain != p.Certain || entirely != p.Entirely {
			t.Errorf("placing %+v on %v helps %d nodes, %d entirely; moved pods help %d, %d", p.Workloads, p.Nodes, p.Certain, p.Entirely,
				certain, entirely)
		}
		placed++
		if certain+entirely > 0 {
			helped++
		}
	})
	t.Logf("%d clusters have a pool, which helps in %d; %d pods move", placed, helped, moved)
	if (helped == 0 || moved == 0) && !testing.Short() && os.Getenv(clustersVariable) == "" {
		t.Error("no pool helps, or no pod moves")
	}
}

// addSizes gives nodes and pods sizes, and pods owners.
func (rc *randomCluster) addSizes() {
	for i, o := range rc.Objects {
		if n, ok := o.(*corev1.Node); ok && !rc.chance(4) {
			n.Status.Allocatable = cpu(1 + rc.IntN(4))
		}
		if p, ok := o.(*corev1.Pod); ok && p.Annotations == nil && len(p.OwnerReferences) == 0 {
			rc.Own(p)
			p.Spec.Containers[0].Resources.Requests = cpu(i % 2)
		}
	}
}

// A pod that no node has yet keeps the template that it was made from, so that the scheduler may bind it to any node:
// it is made again too.
func TestPlacingReplacesPendingPods(t *testing.T) {
	c := newCluster()
	bound := ownedBy(pod("shop", "web-1", "n1", "web"), "apps/v1", "ReplicaSet", "web")
	pending := strings.Replace(ownedBy(pod("shop", "web-2", "n1", "web"), "apps/v1", "ReplicaSet", "web"), "nodeName: n1", "priority: 0", 1)
	parse(t, c, node("n1")+node("n2")+account("shop", "web")+role("r", "", "shop/web", "* *@*")+bound+pending)
	advice, err := attackpaths.WhatToChange(c, attackpaths.AdviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changes := remedyText(advice.Placing.Remedy)
	for _, want := range []string{"remove pod shop/web-1", "remove pod shop/web-2"} {
		if !slices.Contains(changes, want) {
			t.Errorf("the pods are placed by %q, want %q among them", changes, want)
		}
	}
}

func cpu(cores int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cores), resource.DecimalSI)}
}
