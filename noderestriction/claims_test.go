package noderestriction_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "pv-1",
			Resources:  corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
		},
	}
}

func updateClaim(change func(*corev1.PersistentVolumeClaim)) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: noderestriction.Update, Version: "v1", Resource: "persistentvolumeclaims", Subresource: "status",
		Namespace: "shop", Name: "data",
		OldObject: claim(), Object: changed(claim(), change),
	})
}

func TestClaimStatus(t *testing.T) {
	class := "gold"
	noObject := updateClaim(func(*corev1.PersistentVolumeClaim) {})
	noObject.Object = nil
	noOld := updateClaim(func(*corev1.PersistentVolumeClaim) {})
	noOld.OldObject = nil
	cases := []expectation{
		{
			rule:    "capacity",
			request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity["storage"] = resource.MustParse("2Gi") }),
			code:    noderestriction.RestrictionsMet,
		},
		{rule: "conditions", request: updateClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending}}
		}), code: noderestriction.RestrictionsMet},
		{
			rule:    "an update without condition",
			request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "" }),
			code:    noderestriction.RestrictionsMet,
		},
		{rule: "managed fields", request: updateClaim(func(c *corev1.PersistentVolumeClaim) {
			c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		}), code: noderestriction.RestrictionsMet},
		{rule: "quantities count by value", request: updateClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests["storage"] = resource.MustParse("1024Mi")
		}), code: noderestriction.RestrictionsMet},
		{rule: "nothing and empty are the same", request: updateClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Labels, c.Spec.AccessModes = map[string]string{}, []corev1.PersistentVolumeAccessMode{}
		}), code: noderestriction.RestrictionsMet},
		{
			rule:    "what only decoding adds",
			request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.TypeMeta = metav1.TypeMeta{} }),
			code:    noderestriction.RestrictionsMet,
		},
		{
			rule: "labels", request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }),
			code: noderestriction.ClaimChanged,
		},
		{
			rule: "finalizers", request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"a/b"} }),
			code: noderestriction.ClaimChanged,
		},
		{
			rule:    "owners",
			request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} }),
			code:    noderestriction.ClaimChanged,
		},
		{
			rule: "the volume", request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }),
			code: noderestriction.ClaimChanged,
		},
		{rule: "the requested size", request: updateClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests["storage"] = resource.MustParse("2Gi")
		}), code: noderestriction.ClaimChanged},
		{
			rule: "the phase", request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }),
			code: noderestriction.ClaimChanged,
		},
		{rule: "access modes", request: updateClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}), code: noderestriction.ClaimChanged},
		{
			rule:    "the attributes class",
			request: updateClaim(func(c *corev1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = &class }),
			code:    noderestriction.ClaimChanged,
		},
		{rule: "a change of attributes", request: updateClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: class}
		}), code: noderestriction.ClaimChanged},
		{rule: "no object", request: noObject, code: noderestriction.UnexpectedObject},
		{rule: "no old object", request: noOld, code: noderestriction.UnexpectedObject},
	}
	checkAll(t, shop(), cases)
}

func TestClaimAllocation(t *testing.T) {
	resources := updateClaim(func(c *corev1.PersistentVolumeClaim) {
		c.Status.AllocatedResources = corev1.ResourceList{"storage": resource.MustParse("2Gi")}
	})
	statuses := updateClaim(func(c *corev1.PersistentVolumeClaim) {
		c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
			"storage": corev1.PersistentVolumeClaimNodeResizePending,
		}
	})
	on := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	off := noderestriction.New(shop(), nil, features(t, 33, "RecoverVolumeExpansionFailure=false"))
	expectation{rule: "allocated resources with the gate", request: resources, code: noderestriction.RestrictionsMet}.check(t, on)
	expectation{rule: "their statuses with the gate", request: statuses, code: noderestriction.RestrictionsMet}.check(t, on)
	expectation{rule: "allocated resources without the gate", request: resources, code: noderestriction.ClaimChanged}.check(t, off)
	expectation{rule: "their statuses without the gate", request: statuses, code: noderestriction.ClaimChanged}.check(t, off)
}

func TestOtherClaimOperations(t *testing.T) {
	write := func(o noderestriction.Operation, subresource string) *noderestriction.Request {
		return from("worker-1", noderestriction.Request{
			Operation: o, Version: "v1", Resource: "persistentvolumeclaims", Subresource: subresource, Namespace: "shop",
			Name: "data", Object: claim(), OldObject: claim(),
		})
	}
	checkAll(t, shop(), []expectation{
		{rule: "create a claim", request: write(noderestriction.Create, ""), code: noderestriction.OperationNotAllowed},
		{rule: "update a claim", request: write(noderestriction.Update, ""), code: noderestriction.OperationNotAllowed},
		{rule: "delete a claim", request: write(noderestriction.Delete, ""), code: noderestriction.OperationNotAllowed},
		{rule: "create a status", request: write(noderestriction.Create, "status"), code: noderestriction.OperationNotAllowed},
		{rule: "delete a status", request: write(noderestriction.Delete, "status"), code: noderestriction.OperationNotAllowed},
		{rule: "another subresource", request: write(noderestriction.Update, "x"), code: noderestriction.SubresourceNotAllowed},
	})
}
