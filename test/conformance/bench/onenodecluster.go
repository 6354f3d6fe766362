package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// podsPerVolume is how many pods there are for one whose claim is bound.
	podsPerVolume = 10
	// bindingsPerNamespace is the number of roles of a namespace, each with a binding.
	bindingsPerNamespace = 10
)

// volumeLayout adds to a cluster the claims, volumes and attachments of some pods, and roles.
type volumeLayout struct{ layout }

func (l volumeLayout) volumeCount() int { return l.pods / podsPerVolume }

func (l volumeLayout) fill(ctx context.Context, client kubernetes.Interface) error {
	err := each(ctx, l.volumeCount(), func(ctx context.Context, i int) error { return l.createVolume(ctx, client, i*podsPerVolume) })
	if err != nil {
		return err
	}
	return each(ctx, l.namespaces*bindingsPerNamespace, func(ctx context.Context, i int) error {
		meta := metav1.ObjectMeta{Namespace: namespaceName(i % l.namespaces), Name: fmt.Sprintf("operator-%d", i/l.namespaces)}
		_, err := client.RbacV1().Roles(meta.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps", "services"}, Verbs: []string{"get", "list", "watch"}},
		}}, metav1.CreateOptions{})
		if err := unlessExists(err); err != nil {
			return err
		}
		_, err = client.RbacV1().RoleBindings(meta.Namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
		}, metav1.CreateOptions{})
		return unlessExists(err)
	})
}

// createVolume creates the volume and the attachment behind the claim of the i-th pod.
func (l volumeLayout) createVolume(ctx context.Context, client kubernetes.Interface, i int) error {
	p := l.place(i)
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	none, volume := "", newVolume(volumeName(i), namespaceName(p.namespace), claimName(p.owner), nil)
	volume.Spec.Capacity, volume.Spec.AccessModes = size, modes
	volume.Spec.CSI.VolumeHandle = volumeName(i)
	if _, err := client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); unlessExists(err) != nil {
		return err
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName(p.namespace), Name: claimName(p.owner)}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, VolumeName: volume.Name, StorageClassName: &none, Resources: corev1.VolumeResourceRequirements{Requests: size},
	}
	_, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
	if unlessExists(err) != nil {
		return err
	}
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("csi-%064x", i)}}
	attachment.Spec = storagev1.VolumeAttachmentSpec{
		Attacher: volume.Spec.CSI.Driver, NodeName: nodeName(p.node),
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name},
	}
	_, err = client.StorageV1().VolumeAttachments().Create(ctx, attachment, metav1.CreateOptions{})
	return unlessExists(err)
}

// unlessExists drops the error of an object that a retry of the client created before.
func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
