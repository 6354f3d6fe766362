package controller

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
)

const kindRequest = "certificate signing request"

// decide approves or denies one request, if this approver is responsible for it.
func (c *Controller) decide(ctx context.Context, name string) error {
	object, exists, err := c.requests.GetByKey(name)
	if err != nil || !exists {
		return err
	}
	known := object.(*request)
	if known.decided {
		return nil
	}
	if err := c.fresh(); err != nil {
		c.opts.Observer.TooOld()
		return fmt.Errorf("decide %s %s: %w", kindRequest, name, err)
	}
	answer, err := c.readAndDecide(ctx, known)
	if isTooOld(err) {
		c.opts.Observer.TooOld()
	}
	event := Event{
		Request: name, Kind: known.claim.Kind, Outcome: answer.Outcome, Code: answer.Code, Message: answer.Message,
		Node: answer.Node, Waited: c.opts.Clock().Sub(known.CreationTimestamp.Time), Err: err,
	}
	switch {
	case err != nil && expected(err):
		return err // it is decided again with the current state
	case err != nil:
		event.Outcome, event.Code, event.Message = approve.Leave, "", ""
	case answer.Code == approve.NotOurs || answer.Code == approve.AlreadyDecided:
		return nil
	case answer.Outcome == approve.Leave:
		if answer.Code == approve.NamesNotVouched {
			c.decideLater(known)
		}
		if !c.firstLeave(known.UID) {
			return nil
		}
	}
	c.opts.Observer.Decided(event)
	return err
}

// readAndDecide reads the whole request from the API server, because the informer does not keep
// it, and decides it. A request that was deleted, or replaced by one of the same name, needs no
// decision; the informer reports the other one.
func (c *Controller) readAndDecide(ctx context.Context, known *request) (approve.Answer, error) {
	csr, err := c.opts.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, known.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return approve.Answer{Code: approve.NotOurs}, nil
	case err != nil:
		return approve.Answer{}, wrap(err, "read", kindRequest, known.Name)
	case csr.UID != known.UID:
		return approve.Answer{Code: approve.NotOurs}, nil
	}
	return c.decideRequest(ctx, csr)
}

// decideRequest finds the answer and writes it to the request.
func (c *Controller) decideRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (approve.Answer, error) {
	answer, decided := approve.Ahead(csr)
	if !decided {
		var err error
		switch approve.ClaimOf(csr).Kind {
		case approve.Client:
			return c.decideClient(ctx, csr)
		default:
			answer, err = c.decideNode(ctx, csr)
		}
		if err != nil {
			return answer, err
		}
	}
	return answer, c.write(ctx, csr, &answer)
}

// write adds the condition with the decision. A request that was deleted needs no decision.
func (c *Controller) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, answer *approve.Answer) error {
	condition := certificatesv1.CertificateSigningRequestCondition{
		Status: corev1.ConditionTrue, Reason: string(answer.Code), Message: answer.Message,
		LastUpdateTime: metav1.NewTime(c.opts.Clock()),
	}
	switch answer.Outcome {
	case approve.Approve:
		condition.Type = certificatesv1.CertificateApproved
	case approve.Deny:
		condition.Type = certificatesv1.CertificateDenied
	default:
		return nil
	}
	decided := csr.DeepCopy()
	decided.Status.Conditions = append(decided.Status.Conditions, condition)
	requests := c.opts.Client.CertificatesV1().CertificateSigningRequests()
	_, err := requests.UpdateApproval(ctx, csr.Name, decided, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return wrap(err, answer.Outcome.String(), kindRequest, csr.Name)
	}
	return nil
}
