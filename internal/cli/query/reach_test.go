package query

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// largeReach returns a session with one node that reaches 3,000 secrets in 100 namespaces.
func largeReach(t *testing.T) *command.Session {
	t.Helper()
	g := graph.New()
	for i := range 300 {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%02d", i%100), Name: fmt.Sprintf("pod-%03d", i)},
			Spec:       corev1.PodSpec{NodeName: "worker"},
		}
		for j := range 10 {
			pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{
				Name: fmt.Sprintf("secret-%d-%d", i, j),
			})
		}
		g.SetPod(pod)
	}
	state := &source.State{Graph: g, RBAC: rbac.NewPolicy(), Origin: "file large.yaml"}
	evaluator, err := evaluate.New(t.Context(), state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		t.Fatal(err)
	}
	return &command.Session{Evaluator: evaluator, Names: command.NewNames(state), Namespace: command.DefaultNamespace}
}

func TestTableOfALargeReachIsBounded(t *testing.T) {
	result, err := Reach(largeReach(t), "worker", command.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(format render.Format) string {
		var b bytes.Buffer
		if err := render.Write(&b, result, render.Options{Format: format}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	table := text(render.Table)
	if lines := strings.Count(table, "\n"); lines > 120 {
		t.Errorf("the table has %d lines", lines)
	}
	for _, want := range []string{
		"Reaches 3,300 objects",
		"all         300   3,000",
		"… and another 85 namespaces",
		"… and 2,990 more",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	for _, format := range []render.Format{render.Wide, render.JSON, render.YAML, render.Dot} {
		if all := text(format); !strings.Contains(all, "secret-299-9") || strings.Contains(all, "… and") {
			t.Errorf("%s is not complete", format)
		}
	}
}
