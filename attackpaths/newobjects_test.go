package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// Whoever makes a namespace labels it, so that Pod Security lets privileged pods pass.
func TestNamespacesThatAttackersMake(t *testing.T) {
	base, pods := node("n1")+namespace("shop", restrictedLabel)+account("shop", "web"), []string{}
	for _, ns := range systemNamespaces {
		base += namespace(ns, restrictedLabel)
		pods = append(pods, "Certain Namespace "+ns+": PodCreate")
	}
	pods = slices.Clip(append(pods, "Certain Namespace shop: PodCreate"))
	testReach(t, base, []reachCase{
		{
			rule: "with pods in all namespaces", add: role("r", "", "shop/web", "create namespaces@", "create pods@"),
			want: append(pods, "Certain Node n1: PodCreate"),
		},
		{
			rule: "with workloads in all namespaces", add: role("r", "", "shop/web", "create namespaces@", "create jobs@batch"),
			want: append(pods, "Certain Node n1: PodCreate"),
		},
		{
			rule: "not with pods in one namespace", want: pods[len(pods)-1:],
			add: role("r", "", "shop/web", "create namespaces@") + role("p", "shop", "shop/web", "create pods@"),
		},
		{rule: "not by a rule with names", add: role("r", "", "shop/web", "create namespaces@ x", "create pods@"), want: pods},
		{
			rule: "a webhook for namespaces guards them", want: append(pods, "Possible Node n1: PodCreate"),
			add: webhook("namespaces", "CREATE") + role("r", "", "shop/web", "create namespaces@", "create pods@"),
		},
	})
}

// A controller makes the claim of an ephemeral volume, so that a folder of the host needs no right to claims.
func TestVolumesOfTheHostNeedNoClaim(t *testing.T) {
	base := node("n1") + namespace("shop", "pod-security.kubernetes.io/enforce: baseline") + account("shop", "web")
	pods := []string{"Certain Namespace shop: PodCreate"}
	volumes := role("v", "", "shop/web", "create persistentvolumes@")
	testReach(t, base, []reachCase{
		{
			rule: "a pod", add: volumes + role("p", "shop", "shop/web", "create pods@"),
			want: append(pods, "Certain Node n1: PodCreate VolumeControl"),
		},
		{
			rule: "a workload", add: volumes + role("p", "shop", "shop/web", "create statefulsets@apps"),
			want: append(pods, "Certain Node n1: PodCreate VolumeControl"),
		},
		{
			rule: "a webhook for claims guards those that a controller makes",
			add:  volumes + webhook("persistentvolumeclaims", "CREATE") + role("p", "shop", "shop/web", "create pods@"),
			want: append(pods, "Possible Node n1: PodCreate VolumeControl"),
		},
		{
			rule: "a policy about pods with claims does not refuse ephemeral volumes",
			add: volumes + role("p", "shop", "shop/web", "create pods@") + admissionPolicy("p", "pods",
				"!object.spec.?volumes.orValue([]).exists(v, has(v.persistentVolumeClaim))"),
			want: append(pods, "Certain Node n1: PodCreate VolumeControl"),
		},
	})
}

// A right to change a configuration of webhooks needs one that exists.
func TestConfigurationsOfWebhooks(t *testing.T) {
	const in = "@admissionregistration.k8s.io"
	base := namespace("shop", restrictedLabel) + account("shop", "web") + secret("shop", "s", "Opaque", "")
	some := func(kind string) string {
		return fmt.Sprintf("\napiVersion: admissionregistration.k8s.io/v1\nkind: %s\nmetadata: {name: some}\n---", kind)
	}
	const writes = "who writes the objects that the policy rewrites"
	mutating, validating := some("MutatingWebhookConfiguration"), some("ValidatingWebhookConfiguration")
	admin, secrets := []string{"Possible ClusterAdmin : AdmissionControl"}, []string{"Possible Secret shop/s: SecretRead"}
	testReach(t, base, []reachCase{
		{rule: "a new mutating one", add: role("r", "", "shop/web", "create mutatingwebhookconfigurations"+in), want: admin},
		{rule: "a mutating one", add: mutating + role("r", "", "shop/web", "patch mutatingwebhookconfigurations"+in+" some"), want: admin},
		{rule: "not another", add: mutating + role("r", "", "shop/web", "patch mutatingwebhookconfigurations"+in+" other")},
		{rule: "not where there is none", add: validating + role("r", "", "shop/web", "patch mutatingwebhookconfigurations"+in)},
		{rule: "a new validating one", add: role("r", "", "shop/web", "create validatingwebhookconfigurations"+in), want: secrets},
		{rule: "a validating one", add: validating + role("r", "", "shop/web", "update validatingwebhookconfigurations"+in), want: secrets},
		{
			rule: "a mutating policy and its binding, which the state does not show", want: admin,
			add:     role("r", "", "shop/web", "update mutatingadmissionpolicies"+in+" p", "patch mutatingadmissionpolicybindings"+in+" b"),
			because: "may update a mutating admission policy, and patch its binding",
		},
		{
			rule: "any mutating policy and its binding, of which one has to exist", want: admin,
			add:     role("r", "", "shop/web", "update,patch mutatingadmissionpolicies"+in, "patch mutatingadmissionpolicybindings"+in),
			because: "may update a mutating admission policy, and patch its binding",
			dependsOn: "whether any of the mutatingadmissionpolicies exists; " +
				"whether any of the mutatingadmissionpolicybindings exists; " + writes,
		},
		{
			rule: "a new mutating policy with its binding", want: admin, dependsOn: writes,
			add:     role("r", "", "shop/web", "create mutatingadmissionpolicies"+in, "create mutatingadmissionpolicybindings"+in),
			because: "may create a mutating admission policy, and create its binding",
		},
		{rule: "not another of these", add: validating + role("r", "", "shop/web", "update validatingwebhookconfigurations"+in+" x")},
	})
}

// Pod Security does not look behind claims, and a claim of an ephemeral volume names any volume that is free.
func TestVolumesThatNoClaimHas(t *testing.T) {
	base := node("n1") + namespace("shop", "pod-security.kubernetes.io/enforce: baseline") + account("shop", "web") +
		role("p", "shop", "shop/web", "create pods@")
	pods := []string{"Certain Namespace shop: PodCreate"}
	volume := func(folder, claim string) string {
		return fmt.Sprintf("\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: data}\nspec: {hostPath: {path: %s}%s}\n---",
			folder, claim)
	}
	const claim = "\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {namespace: shop, name: c}\nspec: {volumeName: data}\n---"
	testReach(t, base, []reachCase{
		{rule: "a folder that gives the node", add: volume("/etc", ""), want: append(pods, "Certain Node n1: PodCreate VolumeControl")},
		{rule: "not a folder that gives nothing", add: volume("/usr/share/zoneinfo", ""), want: pods},
		{
			rule: "a volume for a claim that does not exist", add: volume("/etc", ", claimRef: {namespace: shop, name: c}"),
			want: append(pods, "Possible Node n1: PodCreate VolumeControl"),
		},
		{rule: "not one for a claim of another namespace", add: volume("/etc", ", claimRef: {namespace: store, name: c}"), want: pods},
		{
			rule: "a volume that a claim names", add: volume("/etc", "") + claim,
			want: append(pods, "Certain Node n1: PodCreate VolumeControl"),
		},
		{
			rule: "a volume that a claim may get, where a webhook guards new claims",
			add: volume("/etc", ", storageClassName: x") + webhook("persistentvolumeclaims", "CREATE") +
				strings.Replace(claim, "volumeName: data", "storageClassName: x", 1),
			want: append(pods, "Possible Node n1: PodCreate VolumeControl"),
		},
		{
			rule: "a webhook for claims guards those that a controller makes",
			add:  volume("/etc", "") + webhook("persistentvolumeclaims", "CREATE"),
			want: append(pods, "Possible Node n1: PodCreate VolumeControl"),
		},
	})
}

// A pod escapes through a claim that may get a folder of the host, and so may two with one claim each.
func TestPodsWithClaimsThatAreNotBound(t *testing.T) {
	const (
		volume = "\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s}\nspec: {storageClassName: x, hostPath: {path: /usr}}\n---"
		claim  = "\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {namespace: shop, name: %s}\nspec: {storageClassName: %s}\n---"
	)
	base := node("n1") + namespace("shop", "") + account("shop", "web") + fmt.Sprintf(volume, "one") + fmt.Sprintf(volume, "two")
	of := func(claim string) string {
		p := pod("shop", "web-1", "n1", "db", "  - {name: c, persistentVolumeClaim: {claimName: "+claim+"}}\n")
		return strings.Replace(p, "image: i}", "image: i, volumeMounts: [{name: c, mountPath: /c}]}", 1)
	}
	start := attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "web-1"}
	account, node := "Certain ServiceAccount shop/db: PodToken", "Possible Node n1: PodEscape"
	testReach(t, base, []reachCase{
		{rule: "of the class", start: start, add: fmt.Sprintf(claim, "a", "x") + of("a"), want: []string{account, node}},
		{rule: "of another class", start: start, add: fmt.Sprintf(claim, "a", "z") + of("a"), want: []string{account}},
		{
			rule: "beside another claim", start: start, add: fmt.Sprintf(claim, "a", "x") + fmt.Sprintf(claim, "b", "x") + of("b"),
			want: []string{account, node},
		},
	})
}

// A quota that is full keeps new objects out until some are gone.
func TestFullQuotasKeepPodsOut(t *testing.T) {
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web")
	quota := func(hard string) string {
		return "\napiVersion: v1\nkind: ResourceQuota\nmetadata: {namespace: shop, name: q}\nspec: {hard: {" + hard + "}}\n---"
	}
	deployments, pods := role("r", "shop", "shop/web", "create deployments@apps"), role("r", "shop", "shop/web", "create pods@")
	certain, possible := []string{"Certain Namespace shop: PodCreate"}, []string{"Possible Namespace shop: PodCreate"}
	testReach(t, base, []reachCase{
		{rule: "a pod", add: pods + quota("pods: 0"), want: possible},
		{rule: "the pods of a deployment", add: deployments + quota("pods: 0"), want: possible},
		{rule: "a deployment", add: deployments + quota("count/deployments.apps: 0"), want: possible},
		{rule: "not a pod by a quota of deployments", add: pods + quota("count/deployments.apps: 0"), want: certain},
		{rule: "not by a quota that has room", add: pods + quota("pods: 1"), want: certain},
	})
}

// The handler of a runtime class says whether pods leave it for their node.
func TestRuntimeClassesOfPods(t *testing.T) {
	base := node("n1") + namespace("shop", "") + account("shop", "web") +
		strings.Replace(pod("shop", "web-1", "n1", "db", ""), "image: i}", "image: i, securityContext: {privileged: true}}", 1)
	base = strings.Replace(base, "spec:\n  nodeName", "spec:\n  runtimeClassName: fast\n  nodeName", 1)
	class := func(handler string) string {
		return "\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: fast}\nhandler: " + handler + "\n---"
	}
	start := attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "web-1"}
	account := "Certain ServiceAccount shop/db: PodToken"
	testReach(t, base, []reachCase{
		{rule: "on the node's kernel", start: start, add: class("runc"), want: []string{"Certain Node n1: PodEscape", account}},
		{rule: "in a sandbox", start: start, add: class("kata"), want: []string{account, "Possible Node n1: PodEscape"}},
		{rule: "a class that is not known", start: start, want: []string{account, "Possible Node n1: PodEscape"}},
	})
}
