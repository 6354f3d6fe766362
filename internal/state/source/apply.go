package source

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// apiObject is an API object of a kept kind, in the version that package graph or
// rbac uses.
type apiObject interface {
	metav1.Object
	runtime.Object
}

// newAPIObject returns an empty object of the kind.
func newAPIObject(k kind) apiObject {
	switch k {
	case kindAPIService:
		return &apiService{}
	case kindClusterRole:
		return &rbacv1.ClusterRole{}
	case kindClusterRoleBinding:
		return &rbacv1.ClusterRoleBinding{}
	case kindCSIDriver:
		return &storagev1.CSIDriver{}
	case kindMutatingWebhookConfiguration:
		return &admissionv1.MutatingWebhookConfiguration{}
	case kindNamespace:
		return &corev1.Namespace{}
	case kindNode:
		return &corev1.Node{}
	case kindNodeScope:
		return &policyv1alpha1.NodeScope{}
	case kindPersistentVolume:
		return &corev1.PersistentVolume{}
	case kindPersistentVolumeClaim:
		return &corev1.PersistentVolumeClaim{}
	case kindPod:
		return &corev1.Pod{}
	case kindPodCertificateRequest:
		return &certificatesv1.PodCertificateRequest{}
	case kindQuarantine:
		return &policyv1alpha1.Quarantine{}
	case kindResourceQuota:
		return &corev1.ResourceQuota{}
	case kindRuntimeClass:
		return &nodev1.RuntimeClass{}
	case kindResourceSlice:
		return &resourcev1.ResourceSlice{}
	case kindRole:
		return &rbacv1.Role{}
	case kindRoleBinding:
		return &rbacv1.RoleBinding{}
	case kindSecret:
		return &corev1.Secret{}
	case kindServiceAccount:
		return &corev1.ServiceAccount{}
	case kindValidatingAdmissionPolicy:
		return &admissionv1.ValidatingAdmissionPolicy{}
	case kindValidatingAdmissionPolicyBinding:
		return &admissionv1.ValidatingAdmissionPolicyBinding{}
	case kindValidatingWebhookConfiguration:
		return &admissionv1.ValidatingWebhookConfiguration{}
	case kindVolumeAttachment:
		return &storagev1.VolumeAttachment{}
	}
	panic(fmt.Sprintf("no API type for kind %d", k))
}

// set adds a trimmed object to the state and reports whether it replaced one of the
// same name. The state keeps strings of the object; it keeps RBAC objects as a whole.
//
// The record is added before the relation and removed after it: a request that was
// allowed because of a relation finds the record in admission.
func (s *State) set(k kind, o apiObject, version stamp) (replaced bool, err error) {
	replaced, err = s.record(k, o, version)
	s.relate(o)
	s.listeners.notify(o)
	return replaced, err
}

// record keeps the part of the object that the graph and the policy do not.
func (s *State) record(k kind, o apiObject, version stamp) (replaced bool, err error) {
	key := keyOf(o.GetNamespace(), o.GetName())
	s.mu.Lock()
	defer s.mu.Unlock()
	replaced = s.objects.table(k).has(key)
	if s.Inventory != nil {
		s.Inventory.Set(o)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		var r podRecord
		r, err = newPodRecord(o)
		r.stamp = version
		s.objects.pods[key] = r
		s.objects.setUnnamedClaims(key, o)
	case *corev1.PersistentVolume:
		var r volumeRecord
		r, err = newVolumeRecord(o)
		r.stamp = version
		s.objects.volumes[key] = r
	case *corev1.Node:
		s.objects.nodes[key] = stamped[NodeInfo]{
			NodeInfo{UID: o.UID, Labels: o.Labels, KubeletVersion: o.Status.NodeInfo.KubeletVersion}, version,
		}
	case *corev1.PersistentVolumeClaim:
		s.objects.claims[key] = stamped[string]{o.Spec.VolumeName, version}
	case *corev1.ServiceAccount:
		s.objects.accounts[key] = stamped[types.UID]{o.UID, version}
	case *apiService:
		s.objects.apiServices[key] = stamped[apiServiceSpec]{o.Spec, version}
		s.aggregation.Store(nil)
	case *policyv1alpha1.NodeScope:
		s.objects.scopes[key] = stamped[*policyv1alpha1.NodeScope]{o, version}
	case *policyv1alpha1.Quarantine:
		s.objects.quarantines[key] = stamped[*policyv1alpha1.Quarantine]{o, version}
	case *storagev1.CSIDriver:
		s.objects.drivers[key] = stamped[[]storagev1.TokenRequest]{o.Spec.TokenRequests, version}
	default:
		s.objects.namesOnly[k][key] = version
	}
	return replaced, err
}

// relate adds the object to the graph or the policy.
func (s *State) relate(o apiObject) {
	switch o := o.(type) {
	case *corev1.Pod:
		s.Graph.SetPod(o)
	case *corev1.PersistentVolume:
		s.Graph.SetPersistentVolume(o)
	case *storagev1.VolumeAttachment:
		s.Graph.SetVolumeAttachment(o)
	case *resourcev1.ResourceSlice:
		s.Graph.SetResourceSlice(o)
	case *certificatesv1.PodCertificateRequest:
		s.Graph.SetPodCertificateRequest(o)
	default:
		setPolicy(s.RBAC, o)
	}
}

func setPolicy(p *rbac.Policy, o apiObject) {
	switch o := o.(type) {
	case *rbacv1.Role:
		p.SetRole(o)
	case *rbacv1.ClusterRole:
		p.SetClusterRole(o)
	case *rbacv1.RoleBinding:
		p.SetRoleBinding(o)
	case *rbacv1.ClusterRoleBinding:
		p.SetClusterRoleBinding(o)
	}
}

// remove removes an object from the state.
func (s *State) remove(k kind, namespace, name string) {
	switch k {
	case kindPod:
		s.Graph.DeletePod(namespace, name)
	case kindPersistentVolume:
		s.Graph.DeletePersistentVolume(name)
	case kindVolumeAttachment:
		s.Graph.DeleteVolumeAttachment(name)
	case kindResourceSlice:
		s.Graph.DeleteResourceSlice(name)
	case kindPodCertificateRequest:
		s.Graph.DeletePodCertificateRequest(namespace, name)
	case kindRole:
		s.RBAC.DeleteRole(namespace, name)
	case kindClusterRole:
		s.RBAC.DeleteClusterRole(name)
	case kindRoleBinding:
		s.RBAC.DeleteRoleBinding(namespace, name)
	case kindClusterRoleBinding:
		s.RBAC.DeleteClusterRoleBinding(name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects.table(k).remove(keyOf(namespace, name))
	if s.Inventory != nil {
		s.Inventory.Delete(k.String(), namespace, name)
	}
	switch k {
	case kindPod:
		delete(s.objects.unnamedClaims, keyOf(namespace, name))
	case kindAPIService:
		s.aggregation.Store(nil)
	}
}

// sweep removes all objects of a kind except those listed.
func (s *State) sweep(k kind, listed map[objectKey]struct{}) {
	for _, key := range s.keys(k) {
		if _, ok := listed[key]; !ok {
			s.remove(k, key.namespace.Value(), key.name)
		}
	}
}

// keys returns the names of all objects of a kind, in any order.
func (s *State) keys(k kind) []objectKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.table(k).keys()
}

// holdsVersion reports whether the state has the object in the version that the API
// server sent.
func (s *State) holdsVersion(k kind, o metav1.Object) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known, ok := s.objects.table(k).stamp(keyOf(o.GetNamespace(), o.GetName()))
	return ok && known == s.objects.stampOf(o)
}
