package nodescope_test

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// The cluster is the state of NodeRestriction.

func (c *cluster) Pod(namespace, name string) (*corev1.Pod, bool) {
	pod, found := c.pods[namespace+"/"+name]
	return pod, found
}

func (c *cluster) Node(name string) (*corev1.Node, bool) { return nil, false }

func (c *cluster) ServiceAccount(string, string) (*corev1.ServiceAccount, bool) { return nil, false }

func (c *cluster) PersistentVolumeClaim(string, string) (*corev1.PersistentVolumeClaim, bool) {
	return nil, false
}

func (c *cluster) PersistentVolume(string) (*corev1.PersistentVolume, bool) { return nil, false }

func (c *cluster) CSIDriver(string) (*storagev1.CSIDriver, bool) { return nil, false }
