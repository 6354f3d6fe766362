package inventory_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// When a pod runs, its init containers have ended, and the other ways out of it count for themselves.
func TestWaysOutOfInitContainers(t *testing.T) {
	const (
		again   = "when the init container runs again"
		volumes = "{volumes: [{name: h, hostPath: {path: /var/lib/kubelet/pki}}, {name: d, persistentVolumeClaim: {claimName: d}}], "
		reads   = "containers: [{name: c, volumeMounts: [{name: h, mountPath: /h, readOnly: true}]}]}"
		init    = "initContainers: [{name: i, securityContext: {privileged: true}}], "
		sidecar = "initContainers: [{name: i, restartPolicy: Always, securityContext: {privileged: true}}], "
		claims  = "initContainers: [{name: i, volumeMounts: [{name: d, mountPath: /d}]}], containers: [{name: c}]}"
	)
	node, credential := inventory.TakesNode, inventory.TakesCredential
	for _, c := range []struct {
		rule, spec string
		phase      corev1.PodPhase
		effects    []inventory.Effect
		dependsOn  string // of the way to the node
	}{
		{"of a pod of which no phase is known", volumes + init + reads, "", []inventory.Effect{node}, ""},
		{"of a pod that starts", volumes + init + reads, corev1.PodPending, []inventory.Effect{node}, ""},
		{"of a pod that runs", volumes + init + reads, corev1.PodRunning, []inventory.Effect{credential, node}, again},
		{"behind a claim of a pod that starts", volumes + claims, corev1.PodPending, []inventory.Effect{node}, ""},
		{"behind a claim of a pod that runs", volumes + claims, corev1.PodRunning, []inventory.Effect{node}, again},
		{"of one that is started again", volumes + sidecar + reads, corev1.PodRunning, []inventory.Effect{node}, ""},
	} {
		i, pod, pv := inventory.New(), &corev1.Pod{}, &corev1.PersistentVolume{}
		if err := yaml.UnmarshalStrict([]byte(c.spec), &pod.Spec); err != nil {
			t.Fatal(err)
		}
		pv.Name, pv.Spec.HostPath = "pv", &corev1.HostPathVolumeSource{Path: "/usr"}
		pvc := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
		pod.Namespace, pod.Name, pod.Status.Phase, pvc.Namespace, pvc.Name = "shop", "web", c.phase, "shop", "d"
		for _, o := range []any{pod, pv, pvc} {
			i.Set(o)
		}
		p, planned := i.Pods()[0], inventory.NewPlanned(pod, inventory.Workload{})
		got := p.WaysOut(i.References())
		var effects []inventory.Effect
		for _, way := range got {
			effects = append(effects, way.Effect)
			if way.Effect == node && way.DependsOn != c.dependsOn {
				t.Errorf("%s: the way to the node depends on %q, want %q", c.rule, way.DependsOn, c.dependsOn)
			}
		}
		if !slices.Equal(effects, c.effects) {
			t.Errorf("%s: ways out are %+v, want the effects %v", c.rule, got, c.effects)
		}
		if ways := planned.WaysOut(i.References()); !p.Like(planned) || len(ways) != 1 || ways[0].DependsOn != "" {
			t.Errorf("%s: the next pod is like this one: %v, and its ways out are %+v", c.rule, p.Like(planned), ways)
		}
	}
}
