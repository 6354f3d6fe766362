package inventory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// Volumes of a pod with the mount of v.
const (
	ofClaim       = "[{name: v, persistentVolumeClaim: {claimName: data}}]"
	ofStatefulSet = "[{name: v, persistentVolumeClaim: {claimName: v-web}}]"
	ofTemplate    = "[{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}]"
)

// A pod escapes through a claim whose volume is a folder of the host as it does through the folder itself.
func TestWaysOutBehindClaims(t *testing.T) {
	forData := func(source string) string { return "{" + source + ", claimRef: {namespace: shop, name: data}}" }
	const etc = "hostPath: {path: /etc}"
	for _, c := range []struct {
		// claim is that of the namespace shop, with its volume.
		rule, volumes, mount, volume, claim string
		means                               string
		effect                              inventory.Effect
		// class is the storage class of the claim; empty for none.
		class, dependsOn string
		// notFollowed is the folder of which it is not known what it gives.
		notFollowed string
	}{
		{rule: "hostPath", volume: forData(etc), claim: "data=pv", means: "container c mounts /etc of its node (claim data)"},
		{
			rule: "local", volume: forData("local: {path: /var/lib/kubelet/pki}"), mount: "readOnly: true", claim: "data=pv",
			means: "container c mounts /var/lib/kubelet/pki of its node (read only) (claim data)", effect: inventory.TakesCredential,
		},
		{
			rule: "a part of it", mount: "subPath: etc", volume: forData("hostPath: {path: /}"), claim: "data=pv",
			means: "container c mounts /etc of its node (claim data)",
		},
		{
			rule: "a claim that a volume names", volume: forData(etc), claim: "data=",
			means: "container c mounts /etc of its node (claim data)",
		},
		{
			rule: "a volume that a claim names", volume: "{" + etc + "}", claim: "data=pv",
			means: "container c mounts /etc of its node (claim data)",
		},
		{
			rule: "a claim that may be bound to a volume of its class", volume: "{" + etc + ", storageClassName: manual}", claim: "data=",
			class: "manual", means: "container c mounts /etc of its node (claim data)",
			dependsOn: "whether the claim is bound to the volume",
		},
		{
			rule: "a claim without a class has one that is not known", volume: "{" + etc + ", storageClassName: manual}", claim: "data=",
			means: "container c mounts /etc of its node (claim data)", dependsOn: "whether the claim is bound to the volume",
		},
		{rule: "a volume of another class", volume: "{" + etc + ", storageClassName: manual}", claim: "data=", class: "fast"},
		{rule: "a volume that waits for another claim", volume: "{" + etc + ", claimRef: {namespace: shop, name: x}}", claim: "data="},
		{rule: "a claim of another volume", volume: forData(etc), claim: "data=x"},
		{rule: "a volume of another claim", volume: "{" + etc + ", claimRef: {namespace: a, name: data}}", claim: "data=pv"},
		{rule: "no claim", volume: forData(etc), claim: "other=pv"},
		{
			rule: "data", volume: forData("hostPath: {path: /data}"), claim: "data=pv", mount: "readOnly: true",
			notFollowed: "/data (read only) (claim data)",
		},
		{rule: "data that a claim may get", volume: "{hostPath: {path: /data}}", claim: "data=", notFollowed: "/data (claim data)"},
		{rule: "another kind of volume", volume: forData("nfs: {server: s, path: /etc}"), claim: "data=pv"},
		{
			rule: "the claim of a stateful set", volumes: ofStatefulSet, claim: "v-web=pv",
			volume: "{" + etc + ", claimRef: {namespace: shop, name: v-web}}", means: "container c mounts /etc of its node (claim v-web)",
		},
		{
			rule: "a template for a claim", volumes: ofTemplate, claim: "web-v=pv",
			volume: "{" + etc + ", claimRef: {namespace: shop, name: web-v}}", means: "container c mounts /etc of its node (claim web-v)",
		},
	} {
		if c.volumes == "" {
			c.volumes = ofClaim
		}
		i := inventory.New()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
		claim.Name, claim.Spec.VolumeName, _ = strings.Cut(c.claim, "=")
		if c.class != "" {
			claim.Spec.StorageClassName = &c.class
		}
		spec := "{volumes: " + c.volumes + ", containers: [{name: c, volumeMounts: [{name: v, mountPath: /v, " + c.mount + "}]}]}"
		for text, into := range map[string]any{spec: &pod.Spec, c.volume: &pv.Spec} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatalf("%s: %v", c.rule, err)
			}
		}
		for _, o := range []any{pod, pv, claim} {
			i.Set(o)
		}
		p := i.Pods()[0]
		got := p.WaysOut(i.References())
		want := inventory.Escape{Means: c.means, Effect: c.effect, DependsOn: c.dependsOn}
		switch {
		case len(p.Escapes) > 0:
			t.Errorf("%s: Pod Security sees %+v", c.rule, p.Escapes)
		case (c.means != "") != (len(got) > 0), len(got) > 0 && got[0] != want:
			t.Errorf("%s: ways out are %+v, want first %+v", c.rule, got, want)
		}
		if got := strings.Join(p.NotFollowed(i.References()), ", "); got != c.notFollowed {
			t.Errorf("%s: not followed is %q, want %q", c.rule, got, c.notFollowed)
		}
		i.Delete("PersistentVolumeClaim", claim.Namespace, claim.Name)
		if got := p.WaysOut(i.References()); len(got) > 0 {
			t.Errorf("%s: without the claim, ways out are %+v", c.rule, got)
		}
	}
}

// Claims that are bound to no volume share the list of those that they may get: many claims beside many volumes take memory for
// their sum, not for their product.
func TestClaimsShareVolumesThatTheyMayGet(t *testing.T) {
	i := inventory.New()
	for n := range 3 {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pv-", n)}}
		pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/etc"}
		i.Set(pv)
		i.Set(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("claim-", n)}})
	}
	claimed := i.References().Claimed
	first := claimed[inventory.Name{Namespace: "shop", Name: "claim-0"}]
	if len(claimed) != 3 || len(first) != 3 {
		t.Fatalf("volumes by claims are %+v", claimed)
	}
	for claim, volumes := range claimed {
		if &volumes[0] != &first[0] {
			t.Errorf("%s has a list of its own", claim)
		}
	}
}

// Of more volumes than are examined, those that give most come first, and the others are a part of what is not followed.
func TestVolumesThatAClaimMayGetAreBounded(t *testing.T) {
	i := inventory.New()
	add := func(name, folder string) {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: folder}
		i.Set(pv)
	}
	for n := range 40 {
		add(fmt.Sprint("data-", n), fmt.Sprint("/data/", n))
	}
	add("last", "/usr")
	i.Set(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	spec := "{volumes: " + ofClaim + ", containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}]}"
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	i.Set(pod)
	p := i.Pods()[0]
	if got := p.WaysOut(i.References()); len(got) != 1 || got[0].Effect != inventory.TakesNode {
		t.Errorf("ways out are %+v", got)
	}
	got := p.NotFollowed(i.References())
	if len(got) != 32 || !slices.Contains(got, "the folders of more than 32 volumes (claim data)") {
		t.Errorf("not followed are %q", got)
	}
}
