package noderestriction

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

var _ admission.ValidationInterface = (*Restriction)(nil)

// Handles implements admission.Interface for creates, updates and deletes.
func (r *Restriction) Handles(operation admission.Operation) bool {
	return operationOf(Operation(operation)) != 0
}

// Plugin returns the restriction as a plugin of the mutating phase, where Kubernetes
// runs it too, although it changes nothing. There it gets objects as nodes send them.
// In the later validating phase, the API server's registry has set defaults (the
// audience of a token) and reverted fields that an update of a subresource may not
// change (taints in a node's status), so that some decisions would differ from those
// of Kubernetes.
func Plugin(r *Restriction) admission.MutationInterface { return plugin{r} }

type plugin struct{ restriction *Restriction }

func (p plugin) Handles(operation admission.Operation) bool { return p.restriction.Handles(operation) }

// Admit implements admission.MutationInterface.
func (p plugin) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return p.restriction.Validate(ctx, a, o)
}

// Validate implements admission.ValidationInterface. Objects in an API server's
// internal form are converted to the version of the request's kind. The error of a
// refusal has the answer's status and begins with its code. In the validating phase,
// objects have the API server's defaults: see [Plugin].
func (r *Restriction) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	req := requestOf(a)
	object, oldObject := r.Reads(req)
	var err error
	if object {
		if req.Object, err = versioned(a.GetObject(), a, o); err != nil {
			return admission.NewForbidden(a, fmt.Errorf("%s: the object is not readable: %w", UnexpectedObject, err))
		}
	}
	if oldObject {
		if req.OldObject, err = versioned(a.GetOldObject(), a, o); err != nil {
			return admission.NewForbidden(a, fmt.Errorf("%s: the old object is not readable: %w", UnexpectedObject, err))
		}
	}
	return r.Decide(ctx, req).error(a)
}

// error returns nil for an allowed request.
func (a Answer) error(attrs admission.Attributes) error {
	if a.Decision == verdict.Allow {
		return nil
	}
	if errors.Is(a.Err, ErrNotSynced) {
		return ErrNotSynced
	}
	err := fmt.Errorf("%s: %s", a.Code, a.Reason.Message)
	switch a.Status {
	case statusForbidden:
		return admission.NewForbidden(attrs, err)
	case statusNotFound:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: statusNotFound, Reason: metav1.StatusReasonNotFound, Message: err.Error(),
		}}
	}
	return err
}

func requestOf(a admission.Attributes) *Request {
	resource := a.GetResource()
	req := &Request{
		Operation: Operation(a.GetOperation()),
		Group:     resource.Group, Version: resource.Version, Resource: resource.Resource, Subresource: a.GetSubresource(),
		Namespace: a.GetNamespace(), Name: a.GetName(),
	}
	if u := a.GetUserInfo(); u != nil {
		req.User, req.UID, req.Groups, req.Extra = u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra()
	}
	return req
}

// versioned returns an object in a version that the rules support.
func versioned(object runtime.Object, a admission.Attributes, o admission.ObjectInterfaces) (runtime.Object, error) {
	switch object.(type) {
	case nil,
		*corev1.Pod, *corev1.Node, *corev1.PersistentVolumeClaim,
		*authenticationv1.TokenRequest, *coordinationv1.Lease, *storagev1.CSINode,
		*policyv1.Eviction, *policyv1beta1.Eviction,
		*certificatesv1.CertificateSigningRequest, *certificatesv1.PodCertificateRequest, *certificatesv1beta1.PodCertificateRequest,
		*resourcev1.ResourceSlice, *resourcev1beta2.ResourceSlice, *resourcev1beta1.ResourceSlice,
		*unstructured.Unstructured:
		return object, nil
	}
	if o == nil || o.GetObjectConvertor() == nil {
		return nil, errors.New("it is in an internal form, and there is no converter")
	}
	return o.GetObjectConvertor().ConvertToVersion(object, a.GetKind().GroupVersion())
}

// AskAuthorizer adapts an authorizer of k8s.io/apiserver to [Authorizer].
func AskAuthorizer(a authorizer.UnconditionalAuthorizer) Authorizer { return asked{a} }

type asked struct {
	authorizer authorizer.UnconditionalAuthorizer
}

func (a asked) Authorize(ctx context.Context, req *access.Request) (allowed bool, reason string, err error) {
	decision, reason, err := a.authorizer.Authorize(ctx, req.Attributes())
	return decision == authorizer.DecisionAllow, reason, err
}
