package stale

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// TestRestoredStoreBehindAnAPIServerThatKeepsRunning restores the store to a time before a pod, a NodeScope, a Quarantine
// and a change of the mappings, and writes until the resource version has passed the old one. The API server that the server
// follows keeps running, so that it lists and watches all of them for good. Within twice maxStaleness the server uses none of
// them, until this API server is restarted.
func TestRestoredStoreBehindAnAPIServerThatKeepsRunning(t *testing.T) {
	t.Parallel()
	p, ctx := second, t.Context()
	s := &testServer{plane: p, name: "beside", secret: "beside", apiServer: p.other.Server, containment: true}
	s.run(t)
	s.until(t, time.Minute, "it is allowed", func() error { return s.expect(ctx, allowed) })
	saved := filepath.Join(p.dir, "saved")
	if err := p.SaveStore(ctx, saved); err != nil {
		t.Fatal(err)
	}
	s.secret = "later"
	s.until(t, time.Minute, "the pod is created", func() error { return p.pod(ctx, "later", s.name) })
	for resource, spec := range map[string]any{
		v1alpha1.NodeScopeResource: &v1alpha1.NodeScope{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.NodeScopeKind},
			ObjectMeta: metav1.ObjectMeta{Name: "later"},
			Spec: v1alpha1.NodeScopeSpec{
				Mode: v1alpha1.Enforce, Subjects: []v1alpha1.Subject{{Namespace: space, Name: "later"}},
			},
		},
		v1alpha1.QuarantineResource: &v1alpha1.Quarantine{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.QuarantineKind},
			ObjectMeta: metav1.ObjectMeta{Name: "later"},
			Spec:       v1alpha1.QuarantineSpec{Node: "another"},
		},
	} {
		if err := p.policy(ctx, resource, spec); err != nil {
			t.Fatal(err)
		}
	}
	mappings, err := p.admin.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "aws-auth", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mappings.Labels = map[string]string{"later": ""}
	if _, err := p.admin.CoreV1().ConfigMaps(metav1.NamespaceSystem).Update(ctx, mappings, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until(t, time.Minute, "it is allowed", func() error { return s.expect(ctx, allowed) })
	s.until(t, time.Minute, "the policies are accepted", func() error {
		for _, resource := range []string{v1alpha1.NodeScopeResource, v1alpha1.QuarantineResource} {
			series := fmt.Sprintf("node_authorizer_containment_objects{code=\"Accepted\",resource=%q}", resource)
			if n := s.metric(ctx, series); n != "1" {
				return fmt.Errorf("%s is %q", series, n)
			}
		}
		return nil
	})
	seen := p.version(t)

	began := time.Now()
	if err := p.RestoreStore(ctx, saved); err != nil {
		t.Fatal(err)
	}
	s.pass(t, seen)
	passed := time.Since(began)
	s.until(t, time.Until(began.Add(2*maxStaleness)), "it uses nothing of it", func() error { return s.usesNothing(ctx) })
	ended := time.Since(began)
	for time.Since(began) < ended+maxStaleness { // also if it reads everything again
		if err := s.usesNothing(ctx); err != nil {
			t.Fatal(err)
		}
		s.pause(t)
	}
	if err := p.otherLists(ctx, "later"); err != nil {
		t.Errorf("there was nothing to find: %v", err)
	}
	if err := p.other.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.other.Start(ctx); err != nil {
		t.Fatal(err)
	}
	restarted := time.Now()
	s.until(t, recovery, "it is refused", func() error { return s.expect(ctx, refused) })
	s.until(t, recovery, "it is ready", func() error { return s.Ready(ctx) })
	t.Logf("etcd restored behind a running API server: its resource version passed after %.1f s, nothing of it used after %.1f s "+
		"(limit %v), ready %.1f s after the restart of the API server", passed.Seconds(), ended.Seconds(),
		2*maxStaleness, time.Since(restarted).Seconds())
	s.secret = s.name
	s.until(t, recovery, "an existing pod is allowed", func() error { return s.expect(ctx, allowed) })
}

// usesNothing returns an error unless the answers that depend on pods, NodeScopes, Quarantines and mappings are errors.
func (s *testServer) usesNothing(ctx context.Context) error {
	if err := s.expect(ctx, failed); err != nil {
		return err
	}
	err := s.Ready(ctx)
	for _, check := range []string{"nodescopes", "quarantines", "mappings"} {
		if err == nil || !strings.Contains(err.Error(), "[-]"+check+" failed") {
			return fmt.Errorf("readyz does not say that %s failed: %v", check, err)
		}
	}
	return nil
}

// otherLists returns an error unless the second API server lists a pod.
func (p *plane) otherLists(ctx context.Context, name string) error {
	config := p.AdminConfig()
	config.Host = p.other.Server
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err == nil && len(pods.Items) == 0 {
		err = fmt.Errorf("pod %s is not listed", name)
	}
	return err
}

// policy creates a NodeScope or a Quarantine.
func (p *plane) policy(ctx context.Context, resource string, object any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(p.AdminConfig())
	if err != nil {
		return err
	}
	_, err = client.Resource(v1alpha1.GroupVersion().WithResource(resource)).Create(ctx, &unstructured.Unstructured{Object: content},
		metav1.CreateOptions{})
	return err
}
