package main

import (
	"encoding/json"

	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"

	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// decodePod reads a pod; the fields that this minor lacks are dropped.
func decodePod(text []byte, pod *corev1.Pod) error { return json.Unmarshal(text, pod) }

// setFieldSelector shows the selector to the authorizer.
func setFieldSelector(attributes *authorizer.AttributesRecord, selector []protocol.Requirement) {
	for _, r := range selector {
		attributes.FieldSelectorRequirements = append(attributes.FieldSelectorRequirements,
			fields.Requirement{Field: r.Field, Operator: selection.Operator(r.Operator), Value: r.Value})
	}
}

// addPodCertificateRequest adds a request in this minor's API version.
func addPodCertificateRequest(graph *node.Graph, placed protocol.Placed) error {
	request := &certificatesv1alpha1.PodCertificateRequest{}
	request.Namespace, request.Name = placed.Namespace, placed.Name
	request.Spec.NodeName = types.NodeName(placed.Node)
	graph.AddPodCertificateRequest(request)
	return nil
}
