// Package quarantines writes Quarantines and waits until servers apply them.
package quarantines

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// Quarantine is a Quarantine of a cluster. InForce and End expect that it is the only one.
type Quarantine struct {
	client dynamic.ResourceInterface
	name   string
}

// Create writes a Quarantine with an administrator's rights. It does not wait for its effect.
func Create(ctx context.Context, admin *rest.Config, name string, spec v1alpha1.QuarantineSpec) (*Quarantine, error) {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("write Quarantine %s: %w", name, err)
	}
	q := &Quarantine{client: client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.QuarantineResource)), name: name}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.Quarantine{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.QuarantineKind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       spec,
	})
	if err != nil {
		return nil, fmt.Errorf("write Quarantine %s: %w", name, err)
	}
	if _, err := q.client.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("write Quarantine %s: %w", name, err)
	}
	return q, nil
}

// InForce waits until each of the servers applies the Quarantine.
func (q *Quarantine) InForce(ctx context.Context, servers ...*server.Server) error {
	return q.await(ctx, "is in force", 1, servers)
}

// End deletes the Quarantine, and waits until none of the servers applies it. It may be called again.
func (q *Quarantine) End(ctx context.Context, servers ...*server.Server) error {
	if err := q.Delete(ctx); err != nil {
		return err
	}
	return q.await(ctx, "has ended", 0, servers)
}

// Delete deletes the Quarantine, and does not wait. It may be called again.
func (q *Quarantine) Delete(ctx context.Context) error {
	if err := q.client.Delete(ctx, q.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Quarantine %s: %w", q.name, err)
	}
	return nil
}

// await waits until each server applies so many Quarantines.
func (q *Quarantine) await(ctx context.Context, what string, n int, servers []*server.Server) error {
	want := fmt.Sprintf(`node_authorizer_containment_objects{code="Accepted",resource=%q} %d`, v1alpha1.QuarantineResource, n)
	for _, s := range servers {
		err := await.Until(ctx, fmt.Sprintf("Quarantine %s %s on %s", q.name, what, s.Address), func(ctx context.Context) error {
			text, err := s.Metrics(ctx)
			if err == nil && !strings.Contains(text+"\n", want+"\n") {
				err = fmt.Errorf("the server does not say %s", want)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
