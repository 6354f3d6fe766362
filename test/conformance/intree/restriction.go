package intree

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	// These register the internal types of the objects that nodes write.
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"

	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
)

// Restriction is the in-tree NodeRestriction plugin over a state.
type Restriction struct{ plugin *noderestriction.Plugin }

// NewRestriction returns the plugin with gates of its own, which the gates of the
// process do not change. The state must not change after it.
func NewRestriction(s *generate.State, gates map[string]bool, a authorizer.UnconditionalAuthorizer) (*Restriction, error) {
	klog.SetLogger(logr.Discard())
	features := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	if err := features.SetFromMap(gates); err != nil {
		return nil, fmt.Errorf("setting feature gates %v: %w", gates, err)
	}
	factory := informers.NewSharedInformerFactory(nil, 0)
	if err := fill(factory, s); err != nil {
		return nil, err
	}
	plugin := noderestriction.NewPlugin(nodeidentifier.NewDefaultNodeIdentifier())
	plugin.InspectFeatureGates(features)
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetUnconditionalAuthorizer(a)
	if err := plugin.ValidateInitialization(); err != nil {
		return nil, err
	}
	return &Restriction{plugin}, nil
}

// fill gives the listers of a factory the objects of the state; nothing is watched.
func fill(f informers.SharedInformerFactory, s *generate.State) error {
	core := f.Core().V1()
	return errors.Join(
		index(core.Pods().Informer(), s.Pods),
		index(core.Nodes().Informer(), s.Nodes),
		index(core.ServiceAccounts().Informer(), s.ServiceAccounts),
		index(core.PersistentVolumeClaims().Informer(), s.PersistentVolumeClaims),
		index(core.PersistentVolumes().Informer(), s.PersistentVolumes),
		index(f.Storage().V1().CSIDrivers().Informer(), s.CSIDrivers),
	)
}

func index[T any](informer cache.SharedIndexInformer, objects []T) error {
	for _, o := range objects {
		if err := informer.GetIndexer().Add(o); err != nil {
			return err
		}
	}
	return nil
}

// Admitted is an answer to a write.
type Admitted struct {
	// Status is the HTTP status, 200 if the write is allowed.
	Status int
	Reason metav1.StatusReason
	// Message says why a write is refused.
	Message string
	// Panicked is true if the plugin panicked: an API server then fails the
	// request.
	Panicked bool
}

// Admit asks the plugin.
func (r *Restriction) Admit(w *generate.Write) (admitted Admitted, err error) {
	attributes, err := WriteAttributes(w)
	if err != nil {
		return Admitted{}, err
	}
	defer func() {
		if p := recover(); p != nil {
			admitted = Admitted{Status: 500, Message: fmt.Sprint(p), Panicked: true}
		}
	}()
	if !r.plugin.Handles(attributes.GetOperation()) {
		return Admitted{Status: 200}, nil
	}
	return StatusOf(r.plugin.Admit(context.Background(), attributes, nil)), nil
}

// StatusOf is the status in which an API server reports an error of admission. An
// error that wraps a status is not one.
func StatusOf(err error) Admitted {
	if err == nil {
		return Admitted{Status: 200}
	}
	if status, ok := err.(apierrors.APIStatus); ok {
		return Admitted{Status: int(status.Status().Code), Reason: status.Status().Reason, Message: err.Error()}
	}
	return Admitted{Status: 500, Message: err.Error()}
}

// WriteAttributes converts a write to the attributes that an API server gives to admission:
// attributes with objects of internal types that have their defaults.
func WriteAttributes(w *generate.Write) (admission.Attributes, error) {
	object, err := internal(WithDefaults(w, w.Object))
	if err != nil {
		return nil, fmt.Errorf("converting the object: %w", err)
	}
	oldObject, err := internal(WithDefaults(w, w.OldObject))
	if err != nil {
		return nil, fmt.Errorf("converting the old object: %w", err)
	}
	resource := schema.GroupVersionResource{Group: w.Group, Version: w.Version, Resource: w.Resource}
	subject := &user.DefaultInfo{Name: w.User, UID: w.UID, Groups: w.Groups, Extra: w.Extra}
	return admission.NewAttributesRecord(object, oldObject, KindOf(w), w.Namespace, w.Name, resource, w.Subresource,
		admission.Operation(w.Operation), nil, false, subject), nil
}

// WithDefaults returns a copy of one of the write's objects with the defaults
// that an API server sets before admission; nil for none.
func WithDefaults(w *generate.Write, o runtime.Object) runtime.Object {
	if o == nil {
		return nil
	}
	o = o.DeepCopyObject()
	if !w.Undefaulted {
		legacyscheme.Scheme.Default(o)
	}
	return o
}

func internal(o runtime.Object) (runtime.Object, error) {
	if o == nil {
		return nil, nil
	}
	return legacyscheme.Scheme.ConvertToVersion(o, runtime.InternalGroupVersioner)
}

// KindOf returns the kind of a write's objects.
func KindOf(w *generate.Write) schema.GroupVersionKind {
	for _, o := range []runtime.Object{w.Object, w.OldObject} {
		if o == nil {
			continue
		}
		if kinds, _, err := legacyscheme.Scheme.ObjectKinds(o); err == nil {
			return kinds[0]
		}
		return o.GetObjectKind().GroupVersionKind()
	}
	return schema.GroupVersionKind{Version: "v1", Kind: "Unknown"}
}
