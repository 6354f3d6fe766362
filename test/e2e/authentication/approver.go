package authentication

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// approver approves a request for a serving certificate if the certificate names the
// node that sent the request, as the approvers of cloud providers do.
type approver struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	ended  chan error
}

func approve(client kubernetes.Interface) *approver {
	ctx, cancel := context.WithCancel(context.Background())
	a := &approver{client: client, cancel: cancel, ended: make(chan error, 1)}
	go func() { a.ended <- a.run(ctx) }()
	return a
}

func (a *approver) stop() error {
	a.cancel()
	return <-a.ended
}

func (a *approver) run(ctx context.Context) error {
	ticker := time.NewTicker(await.Interval)
	defer ticker.Stop()
	for {
		if err := a.look(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("approve serving certificates: %w", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *approver) look(ctx context.Context) error {
	requests := a.client.CertificatesV1().CertificateSigningRequests()
	all, err := requests.List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
	if err != nil {
		return err
	}
	var errs []error
	for _, request := range all.Items {
		name, err := commonName(request.Spec.Request)
		if err != nil || name != request.Spec.Username || !strings.HasPrefix(name, "system:node:") || len(request.Status.Conditions) > 0 {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "OwnName",
			Message: "the certificate names the requester",
		}}
		if _, err := requests.UpdateApproval(ctx, request.Name, &request, metav1.UpdateOptions{}); err != nil &&
			!apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
