package source

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const overlayCluster = `
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
---
apiVersion: v1
kind: Namespace
metadata: {name: a}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: x, namespace: a, uid: u1}
---
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: a, annotations: {kubernetes.io/service-account.name: x}}
type: kubernetes.io/service-account-token
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: a
  labels: {pod-template-hash: h}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-h, uid: u, controller: true}]
spec:
  nodeName: n1
  serviceAccountName: x
  containers: [{name: c, envFrom: [{secretRef: {name: s}}]}]
  volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: token}}]}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: tidy-29000000-1
  namespace: a
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: tidy-29000000, uid: u, controller: true}]
spec: {nodeName: n1, serviceAccountName: x, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: agent-1
  namespace: a
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: u, controller: true}]
spec: {nodeName: n1, serviceAccountName: x, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: b}
spec: {nodeName: n2, serviceAccountName: x, containers: [{name: c}]}
`

// overlayState loads a cluster, and the changes of a text.
func overlayState(t *testing.T, with string, without ...ObjectRef) (*State, []Applied, []string, error) {
	t.Helper()
	dir := t.TempDir()
	cluster, manifest := filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "with.yaml")
	for file, text := range map[string]string{cluster: overlayCluster, manifest: with} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state, err := LoadFiles(t.Context(), []string{cluster}, FileOptions{Inventory: true})
	if err != nil {
		t.Fatal(err)
	}
	var changes *Changes
	if with != "" {
		if changes, err = ReadChanges(t.Context(), []string{manifest}, ChangeOptions{Namespace: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	applied, notes, err := state.Change(changes, without)
	return state, applied, notes, err
}

// mustChange applies the objects of a text to a state.
func mustChange(t *testing.T, s *State, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "with.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	changes, err := ReadChanges(t.Context(), []string{file}, ChangeOptions{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Change(changes, nil); err != nil {
		t.Fatal(err)
	}
}

// podNames lists the pods of an inventory with their nodes.
func podNames(s *State) string {
	var names []string
	for _, p := range s.Inventory.Pods() {
		name := p.Name.String() + "@" + p.Node
		if p.Planned {
			name += "planned"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestWhatIsRemovedTakesAlong(t *testing.T) {
	const all = "a/agent-1@n1 a/tidy-29000000-1@n1 a/web-1@n1 b/alone@n2"
	for name, c := range map[string]struct {
		remove ObjectRef
		want   string
	}{
		"a Deployment its pods": {
			ObjectRef{Kind: "Deployment", Group: "apps", Namespace: "a", Name: "web"},
			"a/agent-1@n1 a/tidy-29000000-1@n1 b/alone@n2",
		},
		"a CronJob those of Jobs": {
			ObjectRef{Kind: "CronJob", Group: "batch", Namespace: "a", Name: "tidy"}, "a/agent-1@n1 a/web-1@n1 b/alone@n2",
		},
		"a Job its pods": {
			ObjectRef{Kind: "Job", Group: "batch", Namespace: "a", Name: "tidy-29000000"}, "a/agent-1@n1 a/web-1@n1 b/alone@n2",
		},
		"a DaemonSet its pods": {
			ObjectRef{Kind: "DaemonSet", Group: "apps", Namespace: "a", Name: "agent"},
			"a/tidy-29000000-1@n1 a/web-1@n1 b/alone@n2",
		},
		"a namespace its pods": {ObjectRef{Kind: "Namespace", Name: "a"}, "b/alone@n2"},
		"a pod nothing": {
			ObjectRef{Kind: "Pod", Namespace: "b", Name: "alone"}, "a/agent-1@n1 a/tidy-29000000-1@n1 a/web-1@n1",
		},
		"a service account no pods": {ObjectRef{Kind: "ServiceAccount", Namespace: "a", Name: "x"}, all},
		"a node its pods, of which some come back": {
			ObjectRef{Kind: "Node", Name: "n1"}, "a/tidy-29000000-1@planned a/web-1@planned b/alone@n2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, err := overlayState(t, "", c.remove)
			if err != nil {
				t.Fatal(err)
			}
			if got := podNames(s); got != c.want {
				t.Errorf("pods are %s, want %s", got, c.want)
			}
			if k, ok := kindOf(c.remove.Group, c.remove.Kind); ok && s.holds(k, c.remove.Namespace, c.remove.Name) {
				t.Error("the object is there")
			}
		})
	}
}

func TestServiceAccountTakesItsTokens(t *testing.T) {
	s, applied, _, err := overlayState(t, "", ObjectRef{Kind: "ServiceAccount", Namespace: "a", Name: "x"})
	if err != nil || len(s.Inventory.Secrets()) != 0 || len(applied) != 2 {
		t.Errorf("secrets %v, applied %v, error %v", s.Inventory.Secrets(), applied, err)
	}
}

func TestWhatDoesNotExistCannotBeRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		remove ObjectRef
		known  []string
	}{
		"a workload":                   {ObjectRef{Kind: "Deployment", Group: "apps", Namespace: "a", Name: "wed"}, []string{"web"}},
		"in another namespace":         {ObjectRef{Kind: "Deployment", Group: "apps", Namespace: "b", Name: "web"}, nil},
		"a node":                       {ObjectRef{Kind: "Node", Name: "n3"}, []string{"n1", "n2"}},
		"a ReplicaSet of a Deployment": {ObjectRef{Kind: "ReplicaSet", Group: "apps", Namespace: "a", Name: "web-h"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, err := overlayState(t, "", ObjectRef{Kind: "Pod", Namespace: "b", Name: "alone"}, c.remove)
			missing := new(NotFoundError)
			if !errors.As(err, &missing) || !slices.Equal(missing.Known, c.known) {
				t.Errorf("error is %v with %v, want one with %v", err, missing.Known, c.known)
			}
			if !s.Inventory.Has("Pod", "b", "alone") {
				t.Error("something was removed before the error")
			}
		})
	}
}

const sameTemplate = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {serviceAccountName: x, containers: [{name: c, envFrom: [{secretRef: {name: s}}]}]}}}
`

func TestAppliedWorkloads(t *testing.T) {
	for name, c := range map[string]struct{ with, want string }{
		"the same template keeps the pods": {sameTemplate, "a/agent-1@n1 a/tidy-29000000-1@n1 a/web-1@n1 b/alone@n2"},
		"another template replaces them": {
			strings.Replace(sameTemplate, "x,", "z,", 1), "a/agent-1@n1 a/tidy-29000000-1@n1 a/web-*@planned b/alone@n2",
		},
		"a new one has a pod without a node": {
			strings.Replace(sameTemplate, "web", "new", 1), "a/agent-1@n1 a/new-*@planned a/tidy-29000000-1@n1 a/web-1@n1 b/alone@n2",
		},
		"one that names its node has it there": {
			strings.Replace(strings.Replace(sameTemplate, "web", "new", 1), "x,", "x, nodeName: n2,", 1),
			"a/agent-1@n1 a/new-*@n2 a/tidy-29000000-1@n1 a/web-1@n1 b/alone@n2",
		},
		"two of one name and different kinds": {
			strings.Replace(sameTemplate, "web", "new", 1) + "---" +
				strings.NewReplacer("web", "new", "Deployment", "StatefulSet").Replace(sameTemplate),
			"a/agent-1@n1 a/new-*@planned a/new-**@planned a/tidy-29000000-1@n1 a/web-1@n1 b/alone@n2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, err := overlayState(t, c.with)
			if err != nil {
				t.Fatal(err)
			}
			if got := podNames(s); got != c.want {
				t.Errorf("pods are %s, want %s", got, c.want)
			}
		})
	}
}

// An object that is unknown before a change stays unknown.
// Controllers make the claims of a StatefulSet's templates and of ephemeral volumes. They go with their pods.
func TestClaimsOfWorkloadsThatAreAdded(t *testing.T) {
	const (
		volume  = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {hostPath: {path: /}, storageClassName: manual}}"
		mount   = "volumeMounts: [{name: data, mountPath: /data}]"
		of      = "{volumeName: pv, storageClassName: manual}"
		meta    = "metadata: {namespace: shop, name: web}"
		set     = "{apiVersion: apps/v1, kind: StatefulSet, " + meta + ", spec: {template: {"
		claims  = set + "spec: {containers: [{name: c, " + mount + "}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: "
		inPod   = "spec: {containers: [{name: c, " + mount + "}], volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: "
		changed = set + "spec: {containers: [{name: c}]}}}}"
	)
	for rule, text := range map[string]string{
		"a template of a stateful set":              claims + of + "}]}}",
		"a template of a stateful set with a class": claims + "{storageClassName: manual}}]}}",
		"an ephemeral volume":                       "{apiVersion: v1, kind: Pod, " + meta + ", " + inPod + of + "}}}]}}",
		"an ephemeral volume of a deployment": "{apiVersion: apps/v1, kind: Deployment, " + meta + ", spec: {template: {" +
			inPod + of + "}}}]}}}}",
		"an ephemeral volume of a stateful set": set + inPod + of + "}}}]}}}}",
	} {
		s := mustLoad(t, "state.yaml", volume)
		mustChange(t, s, text)
		pods := s.Inventory.Pods()
		if len(pods) != 1 || len(pods[0].WaysOut(s.Inventory.References())) == 0 {
			t.Errorf("%s: the pods are %+v, with ways out %+v", rule, pods, pods[0].WaysOut(s.Inventory.References()))
		}
		if strings.Contains(rule, "stateful set") {
			mustChange(t, s, changed)
			left := s.Inventory.Has("PersistentVolumeClaim", "shop", "data-web-*") ||
				s.Inventory.Has("PersistentVolumeClaim", "shop", "web-*-data")
			if pods := s.Inventory.Pods(); len(pods) != 1 || left {
				t.Errorf("%s: a claim stays when the workload has none", rule)
			}
		}
	}
}

func TestChangesDoNotCompleteAState(t *testing.T) {
	s, _, _, err := overlayState(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
---
apiVersion: v1
kind: Pod
metadata: {name: new}
spec: {nodeName: n3, containers: [{name: c}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if s.RBACLoaded() {
		t.Error("an added role counts as all roles")
	}
	if s.HasPods("n3") || !s.HasPods("n1") {
		t.Error("an added pod counts as all pods of its node")
	}
	gaps := s.Gaps("n3", graph.Secret, "a", "other")
	if !slices.ContainsFunc(gaps, func(g Gap) bool { return g.Lacks == "any pod of node n3" }) {
		t.Errorf("gaps are %v", gaps)
	}
}

func TestPodsWithoutNodesAreGaps(t *testing.T) {
	s, _, _, err := overlayState(t, strings.Replace(sameTemplate, "web", "new", 1))
	if err != nil {
		t.Fatal(err)
	}
	of := verdict.Object{Kind: "Deployment", Namespace: "a", Name: "new"}
	named := func(g Gap) bool { return strings.Contains(g.Lacks, of.String()) }
	if gaps := s.Gaps("n2", graph.Secret, "a", "s"); !slices.ContainsFunc(gaps, named) {
		t.Errorf("gaps are %v", gaps)
	}
	if gaps := s.Gaps("n2", graph.Secret, "a", "other"); slices.ContainsFunc(gaps, named) {
		t.Errorf("gaps are %v", gaps)
	}
}

// The API server's admission gives pods their account and its token.
func TestAddedPodsAreAdmitted(t *testing.T) {
	account := func(name, mounts string) string {
		return "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + "}\nautomountServiceAccountToken: " + mounts + "\n---\n"
	}
	pod := func(spec string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + spec + " containers: [{name: c}]}\n"
	}
	for name, c := range map[string]struct {
		with, account string
		token         bool
	}{
		"no account":                 {pod(""), "default", true},
		"an account":                 {pod("serviceAccountName: x,"), "x", true},
		"an account without a token": {account("q", "false") + pod("serviceAccountName: q,"), "q", false},
		"the pod wants one": {
			account("q", "false") + pod("serviceAccountName: q, automountServiceAccountToken: true,"), "q", true,
		},
		"the pod wants none": {
			account("q", "true") + pod("serviceAccountName: q, automountServiceAccountToken: false,"), "q", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, err := overlayState(t, c.with)
			if err != nil {
				t.Fatal(err)
			}
			added := s.Inventory.PodsWhere(func(p *inventory.Pod) bool { return p.Name.Name == "p" })
			if len(added) != 1 || added[0].ServiceAccount != c.account || (len(added[0].Audiences) > 0) != c.token {
				t.Errorf("pods are %+v", added)
			}
		})
	}
}

// The account default is changed after the state was read: its token goes to pods that are added then, or no longer does.
func TestChangesOfTheAccountOfPodsThatNameNone(t *testing.T) {
	const (
		pod     = "---\n{apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: p}, spec: {containers: [{name: c}]}}"
		account = "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: shop, name: default}, automountServiceAccountToken: "
	)
	for before, after := range map[string]string{"true": "false", "false": "true"} {
		s := mustLoad(t, "state.yaml", account+before+"}")
		mustChange(t, s, account+after+"}\n"+pod)
		pods := s.Inventory.Pods()
		if len(pods) != 1 || pods[0].ServiceAccount != "default" || len(pods[0].Audiences) > 0 != (after == "true") {
			t.Errorf("after the account mounts its token %s instead of %s, the pods are %+v", after, before, pods)
		}
	}
}

// A node reads the secrets behind the volumes of its pods, and no longer once the pods are gone.
func TestRemovedPodsTakeTheSecretsBehindTheirVolumes(t *testing.T) {
	s := mustLoad(t, "state.yaml", `
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec:
  claimRef: {namespace: shop, name: data}
  csi: {driver: d, volumeHandle: v, nodePublishSecretRef: {namespace: shop, name: key}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: shop, name: data}
spec: {volumeName: pv}
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: p}
spec: {nodeName: n1, containers: [{name: c}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}
`)
	if !s.Graph.HasPath("n1", graph.Secret, "shop", "key") {
		t.Fatal("the node does not read the secret of the volume of its pod")
	}
	if _, _, err := s.Change(nil, []ObjectRef{{Kind: "Pod", Namespace: "shop", Name: "p"}}); err != nil {
		t.Fatal(err)
	}
	if s.Graph.HasPath("n1", graph.Secret, "shop", "key") {
		t.Error("the node reads the secret of the volume of a pod that is gone")
	}
}
