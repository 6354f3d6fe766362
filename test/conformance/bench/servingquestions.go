package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// accessQuestions are SubjectAccessReviews about the cluster's pods, as an API
// server sends them.
func (c *servingCluster) accessQuestions(n int) []posts {
	var kinds []kindOfQuestion
	for _, kind := range allowedKinds {
		if !strings.Contains(kind.name, "volume") { // the cluster has none
			kinds = append(kinds, kind)
		}
	}
	each := n / len(kinds)
	return []posts{
		accessReviews(mixed("allowed", c.layout.ask(kinds, authorizer.DecisionAllow, each)), true),
		accessReviews(mixed("refused", c.layout.ask(refusedKinds[:2], authorizer.DecisionNoOpinion, each)), false),
	}
}

func accessReviews(q questions, allowed bool) posts {
	s := posts{kind: q.kind, path: "/authorize", check: func(body []byte) error {
		var review authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(body, &review); err != nil {
			return err
		}
		if review.Status.Allowed != allowed {
			return fmt.Errorf("allowed is %t: %s", review.Status.Allowed, bytes.TrimSpace(body))
		}
		return nil
	}}
	for _, a := range q.attr {
		s.bodies = append(s.bodies, document(accessReview(a)))
	}
	return s
}

func accessReview(a *authorizer.AttributesRecord) *authorizationv1.SubjectAccessReview {
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: a.User.GetName(), Groups: a.User.GetGroups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: a.Verb, Group: a.APIGroup, Version: a.APIVersion, Resource: a.Resource, Subresource: a.Subresource,
				Namespace: a.Namespace, Name: a.Name,
			},
		},
	}
	if len(a.FieldSelectorRequirements) > 0 {
		review.Spec.ResourceAttributes.FieldSelector = fieldSelector(a.FieldSelectorRequirements)
	}
	return review
}

func fieldSelector(requirements fields.Requirements) *authorizationv1.FieldSelectorAttributes {
	selector := &authorizationv1.FieldSelectorAttributes{}
	for _, r := range requirements {
		selector.Requirements = append(selector.Requirements, metav1.FieldSelectorRequirement{
			Key: r.Field, Operator: metav1.FieldSelectorOpIn, Values: []string{r.Value},
		})
	}
	return selector
}

// admissionQuestions are the writes that kubelets make all the time.
func (c *servingCluster) admissionQuestions(n int) []posts {
	leases := posts{kind: "lease renewals", path: "/admit", check: admitted}
	heartbeats := posts{kind: "node status updates", path: "/admit", check: admitted}
	for i := range n {
		node := i % c.layout.nodes
		leases.bodies = append(leases.bodies, document(leaseRenewal(node)))
		if i < n/8 {
			heartbeats.bodies = append(heartbeats.bodies, document(statusUpdate(node)))
		}
	}
	return []posts{leases, heartbeats}
}

func admitted(body []byte) error {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return err
	}
	if review.Response == nil || !review.Response.Allowed {
		return fmt.Errorf("not allowed: %s", bytes.TrimSpace(body))
	}
	return nil
}

func leaseRenewal(node int) *admissionv1.AdmissionReview {
	seconds, holder := int32(40), nodeName(node)
	lease := &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-node-lease", Name: holder, UID: "5e1f3a5e-5cd6-4a7b-8d5b-1f6a3f1c9e77",
			ResourceVersion: "123456",
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
	}
	review := update(node, lease.TypeMeta, "leases", "", "kube-node-lease")
	review.Request.Object.Raw, review.Request.OldObject.Raw = document(lease), document(lease)
	return review
}

// statusUpdate is of a node with as many images and conditions as nodes have.
func statusUpdate(number int) *admissionv1.AdmissionReview {
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName(number), UID: "0b2f3a5e-5cd6-4a7b-8d5b-1f6a3f1c9e77",
			Labels: map[string]string{
				"kubernetes.io/hostname": nodeName(number), "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"pool": "general",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "example:///zone-a/" + nodeName(number)},
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
	} {
		node.Status.Conditions = append(node.Status.Conditions,
			corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "KubeletReports", Message: "kubelet reports its state"})
	}
	for i := range 50 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{
				fmt.Sprintf("registry.k8s.io/service-%02d@sha256:%064x", i, i),
				fmt.Sprintf("registry.k8s.io/service-%02d:v1.%d", i, i),
			},
			SizeBytes: int64(i) << 20,
		})
	}
	review := update(number, node.TypeMeta, "nodes", "status", "")
	review.Request.Object.Raw, review.Request.OldObject.Raw = document(node), document(node)
	return review
}

// update is a node's update of the object that bears its name.
func update(node int, kind metav1.TypeMeta, resource, subresource, namespace string) *admissionv1.AdmissionReview {
	gvk := kind.GroupVersionKind()
	asking := kubelet(node)
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:         types.UID(fmt.Sprintf("705ab4f5-6393-11e8-b7cc-%012x", node)),
			Kind:        metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
			Resource:    metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: resource},
			SubResource: subresource, Namespace: namespace, Name: nodeName(node),
			Operation: admissionv1.Update, UserInfo: userInfo(asking),
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	}
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: u.GetName(), Groups: u.GetGroups()}
}

func document(o any) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic("an object does not encode: " + err.Error())
	}
	return text
}
