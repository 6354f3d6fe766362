package source

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/graph"
)

const gappy = `
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: shop}
spec:
  nodeName: worker-1
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: loose, persistentVolumeClaim: {claimName: loose}}
  - {name: bound, persistentVolumeClaim: {claimName: bound}}
  resourceClaims:
  - {name: gpu, resourceClaimTemplateName: gpu}
  - {name: nic, resourceClaimTemplateName: nic}
  - {name: fixed, resourceClaimName: fixed}
status:
  resourceClaimStatuses: [{name: nic, resourceClaimName: api-nic-1}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {volumeName: pv-1}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-2}
spec: {claimRef: {namespace: shop, name: bound}}
`

func loadText(t *testing.T, text string) *State {
	t.Helper()
	s, err := LoadFiles(t.Context(), []string{"-"}, FileOptions{Stdin: strings.NewReader(text), Retain: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGaps(t *testing.T) {
	s := loadText(t, gappy)
	data := "persistent volume pv-1 of persistentvolumeclaim shop/data, which pod shop/api uses " +
		"(spec.volumes[name=data].persistentVolumeClaim)"
	loose := "the persistent volume bound to persistentvolumeclaim shop/loose, which pod shop/api uses " +
		"(spec.volumes[name=loose].persistentVolumeClaim)"
	claims := "status.resourceClaimStatuses of pod shop/api, which names the resource claims that are made for it"
	for _, tc := range []struct {
		rule            string
		node            string
		kind            graph.Kind
		namespace, name string
		want            string
	}{
		{"a secret could be that of any volume", "worker-1", graph.Secret, "storage", "key", data + "; " + loose},
		{"a volume that a claim names", "worker-1", graph.PersistentVolume, "", "pv-1", data + "; " + loose},
		{"a volume that a claim does not name could be another claim's", "worker-1", graph.PersistentVolume, "", "pv-3", loose},
		{"config maps need no volume", "worker-1", graph.ConfigMap, "shop", "settings", ""},
		{"resource claims of unknown name", "worker-1", graph.ResourceClaim, "shop", "api-gpu-1", claims},
		{"resource claims are of a pod's namespace", "worker-1", graph.ResourceClaim, "other", "api-gpu-1", ""},
		{"a node without pods", "worker-2", graph.Secret, "shop", "db", "any pod of node worker-2"},
		{"a pod in the files has its node", "worker-2", graph.Pod, "shop", "api", ""},
		{"a missing pod", "worker-1", graph.Pod, "shop", "none", "pod shop/none"},
		{"a missing volume attachment", "worker-1", graph.VolumeAttachment, "", "csi-1", "volumeattachment csi-1"},
		{"a missing resource slice", "worker-1", graph.ResourceSlice, "", "gpu", "resourceslice gpu"},
		{"a missing pod certificate request", "worker-1", graph.PodCertificateRequest, "shop", "x", "podcertificaterequest shop/x"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := gapsText(s.Gaps(tc.node, tc.kind, tc.namespace, tc.name)); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
	want := data + "; " + loose + "; " + claims +
		"; any volumeattachments.storage.k8s.io, resourceslices.resource.k8s.io, podcertificaterequests.certificates.k8s.io"
	if got := gapsText(s.NodeGaps("worker-1")); got != want {
		t.Errorf("of the node: got %q, want %q", got, want)
	}
	s.remove(kindPod, "shop", "api")
	if got := gapsText(s.unnamedClaims("worker-1", "")); got != "" {
		t.Errorf("of a deleted pod: %q", got)
	}
}

func gapsText(gaps []Gap) string {
	lines := make([]string, len(gaps))
	for i, g := range gaps {
		lines[i] = g.String()
	}
	return strings.Join(lines, "; ")
}

// A snapshot of a cluster is complete: objects that it does not hold do not exist.
// Adding manifests does not change that, and a snapshot of both is complete too.
func TestSnapshotsOfClustersAreComplete(t *testing.T) {
	const cluster = `{"apiVersion":"snapshot.node-authorizer.io/v1alpha1","kind":"Snapshot","cluster":true,` +
		`"rbacReadable":true,"objects":{}}` + "\n"
	const manifests = `{"apiVersion":"snapshot.node-authorizer.io/v1alpha1","kind":"Snapshot","cluster":false,` +
		`"rbacReadable":false,"objects":{}}` + "\n"
	for _, tc := range []struct {
		rule, text string
		complete   bool
	}{
		{"a snapshot of a cluster", cluster, true},
		{"a snapshot of manifests", manifests, false},
		{"manifests", gappy, false},
		{"a snapshot of a cluster, and manifests", cluster + "---" + gappy, true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := loadText(t, tc.text)
			if s.Complete() != tc.complete || (len(s.Gaps("worker-2", graph.Pod, "shop", "none")) == 0) != tc.complete ||
				(len(s.NodeGaps("worker-2")) == 0) != tc.complete {
				t.Errorf("complete: %v, gaps %v, of a node %v", s.Complete(), s.Gaps("worker-2", graph.Pod, "shop", "none"),
					s.NodeGaps("worker-2"))
			}
			var written strings.Builder
			if err := WriteSnapshot(&written, s); err != nil {
				t.Fatal(err)
			}
			if again := loadText(t, written.String()); again.Complete() != tc.complete {
				t.Errorf("its snapshot is complete: %v", again.Complete())
			}
		})
	}
}
