// Code generated from ../restriction.go.txt by go generate. DO NOT EDIT.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	// These register the types of the objects that nodes write.
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// restriction is the minor's NodeRestriction, and what it asks.
type restriction struct {
	plugin *noderestriction.Plugin
	grants *grants
}

// LoadWrites starts a plugin over a state, which nothing changes.
func (r *restriction) LoadWrites(s protocol.WriteState) error {
	features := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	if err := features.SetFromMap(s.Gates); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	factory := informers.NewSharedInformerFactory(nil, 0)
	core := factory.Core().V1()
	err := errors.Join(
		index[corev1.Node](core.Nodes().Informer(), s.Nodes),
		index[corev1.Pod](core.Pods().Informer(), s.Pods),
		index[corev1.ServiceAccount](core.ServiceAccounts().Informer(), s.ServiceAccounts),
		index[corev1.PersistentVolumeClaim](core.PersistentVolumeClaims().Informer(), s.PersistentVolumeClaims),
		index[corev1.PersistentVolume](core.PersistentVolumes().Informer(), s.PersistentVolumes),
		index[storagev1.CSIDriver](factory.Storage().V1().CSIDrivers().Informer(), s.CSIDrivers),
	)
	if err != nil {
		return err
	}
	if r.grants, err = newGrants(s); err != nil {
		return err
	}
	r.plugin = noderestriction.NewPlugin(nodeidentifier.NewDefaultNodeIdentifier())
	r.plugin.InspectFeatureGates(features)
	r.plugin.SetExternalKubeInformerFactory(factory)
	if p, asks := any(r.plugin).(interface{ SetAuthorizer(authorizer.Authorizer) }); asks {
		p.SetAuthorizer(r.grants)
	}
	return r.plugin.ValidateInitialization()
}

// list reads objects of one type.
func list[T any](texts []json.RawMessage) ([]*T, error) {
	var objects []*T
	for _, text := range texts {
		object := new(T)
		if err := json.Unmarshal(text, object); err != nil {
			return nil, fmt.Errorf("reading a %T: %w", object, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func index[T any](informer cache.SharedIndexInformer, texts []json.RawMessage) error {
	objects, err := list[T](texts)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := informer.GetIndexer().Add(o); err != nil {
			return err
		}
	}
	return nil
}

// Admit asks the plugin.
func (r *restriction) Admit(w *protocol.Write) (admitted protocol.Admitted, err error) {
	object, err := internal(w.Object, w.Undefaulted)
	if err != nil {
		return protocol.Admitted{}, fmt.Errorf("reading the object: %w", err)
	}
	oldObject, err := internal(w.OldObject, w.Undefaulted)
	if err != nil {
		return protocol.Admitted{}, fmt.Errorf("reading the old object: %w", err)
	}
	r.grants.asked = nil
	defer func() {
		if p := recover(); p != nil {
			admitted = protocol.Admitted{Status: 500, Message: fmt.Sprint(p), Panicked: true}
		}
		admitted.Asked = r.grants.asked
	}()
	operation := admission.Operation(w.Operation)
	if !r.plugin.Handles(operation) {
		return protocol.Admitted{Status: 200}, nil
	}
	resource := schema.GroupVersionResource{Group: w.Group, Version: w.Version, Resource: w.Resource}
	return statusOf(r.plugin.Admit(context.Background(), admission.NewAttributesRecord(object, oldObject, schema.GroupVersionKind{},
		w.Namespace, w.Name, resource, w.Subresource, operation, nil, false,
		&user.DefaultInfo{Name: w.User, UID: w.UID, Groups: w.Groups, Extra: w.Extra}), nil)), nil
}

// internal reads an object as an API server does: with defaults, and in its
// internal form.
func internal(text json.RawMessage, undefaulted bool) (runtime.Object, error) {
	if text == nil {
		return nil, nil
	}
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	if !undefaulted {
		legacyscheme.Scheme.Default(object)
	}
	return legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
}

// statusOf is what an API server answers with for an error of admission.
func statusOf(err error) protocol.Admitted {
	if err == nil {
		return protocol.Admitted{Status: 200}
	}
	if status, ok := err.(apierrors.APIStatus); ok {
		return protocol.Admitted{Status: int(status.Status().Code), Reason: string(status.Status().Reason), Message: err.Error()}
	}
	return protocol.Admitted{Status: 500, Message: err.Error()}
}

// grants is the minor's RBAC authorizer with faults. It notes what it was asked
// last.
type grants struct {
	rbac  *rbac.RBACAuthorizer
	asked *protocol.Access
}

func newGrants(s protocol.WriteState) (*grants, error) {
	roles, err := list[rbacv1.Role](s.Roles)
	roleBindings, err1 := list[rbacv1.RoleBinding](s.RoleBindings)
	clusterRoles, err2 := list[rbacv1.ClusterRole](s.ClusterRoles)
	clusterRoleBindings, err3 := list[rbacv1.ClusterRoleBinding](s.ClusterRoleBindings)
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return nil, err
	}
	_, all := validation.NewTestRuleResolver(roles, roleBindings, clusterRoles, clusterRoleBindings)
	return &grants{rbac: rbac.New(all, all, all, all)}, nil
}

var errFault = errors.New("the authorizer was told to fail")

// Authorize implements authorizer.Authorizer.
func (g *grants) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	u := a.GetUser()
	g.asked = &protocol.Access{
		User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra(), Verb: a.GetVerb(),
		Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(), Namespace: a.GetNamespace(), Name: a.GetName(),
	}
	switch d, reason, err := g.rbac.Authorize(ctx, a); protocol.FaultOf(a.GetResource(), a.GetNamespace(), a.GetName()) {
	case protocol.Failing:
		return authorizer.DecisionNoOpinion, "", errFault
	case protocol.Stumbling:
		return d, reason, errFault
	default:
		return d, reason, err
	}
}
