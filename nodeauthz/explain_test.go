package nodeauthz_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

// TestExplanations prints the explanation of an answer of each code.
func TestExplanations(t *testing.T) {
	g := newCluster()
	for _, replica := range []string{"web-2", "web-3"} { // tls and images are on three nodes
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: replica}}
		pod.Spec.NodeName = "worker-" + replica[len("web-"):] + "0"
		pod.Spec.Containers = []corev1.Container{{Name: "web", EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tls"}}},
		}}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "images"},
		}}}
		g.SetPod(pod)
	}
	a := nodeauthz.New(g, kubeversion.For(kubeversion.Latest))
	old := nodeauthz.New(g, kubeversion.For(33))
	gates, err := kubeversion.For(34).WithOverrides("KubeletServiceAccountTokenForCredentialProviders=false")
	if err != nil {
		t.Fatal(err)
	}
	off := nodeauthz.New(g, gates)

	otherUser, unnamed, outsider := by1("get", "secrets", "shop/db"), from("", "get", "secrets",
		"shop/db"), by1("get", "secrets", "shop/db")
	otherUser.User = "jane"
	outsider.Groups = []string{"system:authenticated"}
	health := by1("get", "", "")
	health.ResourceRequest, health.Path = false, "/healthz"

	var b strings.Builder
	for _, section := range []struct {
		title    string
		a        *nodeauthz.Authorizer
		requests []*access.Request
	}{
		{"Allowed", a, []*access.Request{
			by1("get", "secrets", "shop/db"),
			by1("get", "secrets", "vault/orders-key"),
			by1("get", "persistentvolumes", "pv-orders"),
			by1("create", "serviceaccounts/token", "shop/api"),
			by1("get", "pods", "shop/api"),
			by1("get", "nodes", "worker-1"),
			by1("get", "csinodes.storage.k8s.io", "worker-1"),
			by1("update", "leases.coordination.k8s.io", "kube-node-lease/worker-1"),
			by1("list", "pods", "", "spec.nodeName=worker-1"),
			by1("create", "pods/eviction", "shop/api"),
			by1("list", "runtimeclasses.node.k8s.io", ""),
		}},
		{"No path", a, []*access.Request{
			by1("get", "secrets", "shop/unheard-of"),
			by1("get", "configmaps", "shop/pages"),
			by1("get", "secrets", "shop/tls"),
			by1("get", "secrets", "vault/images-key"),
			from("worker-20", "get", "secrets", "shop/db"),
			by1("get", "secrets", "vault/idle-key"),
			by1("get", "persistentvolumes", "pv-images"),
			by1("get", "persistentvolumes", "pv-idle"),
			by1("get", "persistentvolumes", "pv-unheard-of"),
			by1("get", "persistentvolumeclaims", "shop/idle"),
			by1("create", "serviceaccounts/token", "shop/web"),
			by1("get", "resourceclaims.resource.k8s.io", "shop/v100"),
			by1("get", "pods", "shop/web"),
			by1("get", "pods", "shop/unheard-of"),
			by1("get", "volumeattachments.storage.k8s.io", "csi-worker-2"),
			by1("delete", "resourceslices.resource.k8s.io", "unheard-of"),
			by1("get", "podcertificaterequests.certificates.k8s.io", "shop/web-cert"),
		}},
		{"Refused for any relations", a, []*access.Request{
			otherUser, outsider, unnamed, health,
			by1("get", "deployments.apps", "shop/api"),
			by1("create", "pods/exec", "shop/api"),
			by1("update", "csinodes.storage.k8s.io/scale", "worker-1"),
			by1("delete", "secrets", "shop/db"),
			by1("get", "persistentvolumeclaims/status", "shop/orders"),
			by1("delete", "services", "shop/api"),
			by1("update", "csinodes.storage.k8s.io/status", "worker-1"),
			by1("get", "secrets", "db"),
			by1("get", "persistentvolumes", "shop/pv-orders"),
			by1("list", "secrets", "shop/"),
			by1("get", "persistentvolumeclaims", "shop/"),
			by1("get", "nodes", "worker-2"),
			by1("list", "nodes", ""),
			by1("get", "csinodes.storage.k8s.io", "worker-2"),
			by1("patch", "leases.coordination.k8s.io", "kube-node-lease/worker-2"),
			by1("get", "leases.coordination.k8s.io", "kube-node-lease/"),
			by1("get", "leases.coordination.k8s.io", "kube-system/worker-1"),
			by1("create", "leases.coordination.k8s.io", ""),
			by1("watch", "pods", ""),
			by1("list", "resourceslices.resource.k8s.io", ""),
		}},
		{"Refused in 1.33", old, []*access.Request{
			by1("get", "serviceaccounts", "shop/api"),
			by1("list", "clustertrustbundles.certificates.k8s.io", ""),
			by1("create", "podcertificaterequests.certificates.k8s.io", "shop/"),
		}},
		{"Refused in 1.34 with gates off", off, []*access.Request{
			by1("get", "serviceaccounts", "shop/api"),
			by1("update", "clustertrustbundles.certificates.k8s.io", "ca"),
		}},
	} {
		fmt.Fprintf(&b, "\n# %s\n", section.title)
		for _, req := range section.requests {
			writeExplanation(&b, req, section.a.Explain(req))
		}
	}
	compareGolden(t, "explanations.golden", b.String())
}

func writeExplanation(b *strings.Builder, req *access.Request, e nodeauthz.Explanation) {
	fmt.Fprintf(b, "\n%s %s %s%s\n", req.User, req.Verb, question(req), selector(req))
	line := func(name string, value any) {
		if text := fmt.Sprint(value); text != "" {
			fmt.Fprintf(b, "  %-8s %s\n", name, text)
		}
	}
	line("answer", fmt.Sprint(e.Decision, " ", e.Code))
	line("rule", e.Rule)
	line("message", e.Reason.Message)
	line("path", e.Reason.Path)
	line("hint", e.Reason.Hint)
	if e.Nearest != nil {
		for _, path := range e.Nearest.Paths {
			line("nearest", path)
		}
		line("nodes", fmt.Sprint(e.Nearest.TotalNodes))
	}
}

// question returns the object of a request in the notation of from.
func question(req *access.Request) string {
	if !req.ResourceRequest {
		return req.Path
	}
	resource := req.Resource
	if req.Group != "" {
		resource += "." + req.Group
	}
	if req.Subresource != "" {
		resource += "/" + req.Subresource
	}
	if req.Namespace != "" {
		return resource + " " + req.Namespace + "/" + req.Name
	}
	return strings.TrimSpace(resource + " " + req.Name)
}

func selector(req *access.Request) string {
	var all []string
	for _, r := range req.FieldSelector {
		all = append(all, " "+r.Field+string(r.Operator)+r.Value)
	}
	return strings.Join(all, ",")
}

func TestExplanationIsReadableAsJSON(t *testing.T) {
	for _, tc := range []struct {
		request *access.Request
		want    string
	}{
		{by1("get", "nodes", "worker-1"), `{
  "decision": "Allow",
  "code": "OwnName",
  "node": "worker-1",
  "rule": "get, list, watch nodes (bears the node's name)",
  "reason": {
    "code": "OwnName",
    "message": "the object's name is the node's own, worker-1"
  }
}`},
		{by1("get", "pods", "shop/web"), `{
  "decision": "NoOpinion",
  "code": "NoPathToObject",
  "node": "worker-1",
  "rule": "get pods (related to the node)",
  "reason": {
    "code": "NoPathToObject",
    "message": "pod shop/web is on node worker-2, not on node worker-1",
    "path": [
      {
        "from": {
          "kind": "Pod",
          "namespace": "shop",
          "name": "web"
        },
        "to": {
          "kind": "Node",
          "name": "worker-2"
        },
        "holder": {
          "kind": "Pod",
          "namespace": "shop",
          "name": "web"
        },
        "field": "spec.nodeName"
      }
    ],
    "hint": "a node has access only to its own pods: check the pod's name, namespace and spec.nodeName, which must be worker-1"
  },
  "nearest": {
    "paths": [
      [
        {
          "from": {
            "kind": "Pod",
            "namespace": "shop",
            "name": "web"
          },
          "to": {
            "kind": "Node",
            "name": "worker-2"
          },
          "holder": {
            "kind": "Pod",
            "namespace": "shop",
            "name": "web"
          },
          "field": "spec.nodeName"
        }
      ]
    ],
    "totalNodes": 1
  }
}`},
	} {
		got, err := json.MarshalIndent(latest().Explain(tc.request), "", "  ")
		if err != nil || string(got) != tc.want {
			t.Errorf("got %s, %v\nwant %s", got, err, tc.want)
		}
	}
}
