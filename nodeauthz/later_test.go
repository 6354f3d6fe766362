package nodeauthz_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A refusal is not worded with the path that came after it.
func TestMessageOfAnAnswerThatTheGraphHasOutrun(t *testing.T) {
	g := graph.New()
	a := nodeauthz.New(g, kubeversion.For(kubeversion.Latest))
	req := by1("get", "secrets", "shop/db")
	answer := a.Decide(req)
	if got := a.Message(req, answer); !strings.Contains(got, "nothing on any node refers to it") {
		t.Errorf("before: %s", got)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"}}
	pod.Spec.NodeName = "worker-1"
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "db"}}
	g.SetPod(pod)
	if got := a.Message(req, answer); !strings.HasSuffix(got, "when this was decided; there is one now") {
		t.Errorf("after: %s", got)
	}
}

// Values that are lost in JSON are not asked for.
func TestMessageOfAnAnswerFromJSON(t *testing.T) {
	a := nodeauthz.New(newCluster(), kubeversion.For(kubeversion.Latest))
	for _, req := range []*access.Request{
		by1("get", "secrets", "shop/db"), by1("get", "secrets", "shop/none"), by1("delete", "secrets", "shop/db"),
		by1("get", "nodes", "worker-2"), by1("get", "widgets", "shop/db"), from("", "get", "secrets", "shop/db"),
		by1("get", "secrets", "db"), by1("list", "pods", ""), by1("update", "pods/status", "shop/db"),
		by1("update", "nodes/proxy", "worker-1"),
	} {
		decided := a.Decide(req)
		text, err := json.Marshal(decided)
		if err != nil {
			t.Fatal(err)
		}
		var answer nodeauthz.Answer
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		if got := a.Message(req, answer); got == "" {
			t.Errorf("%s has no message", text)
		}
	}
}
