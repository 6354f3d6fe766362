package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
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

// addPodCertificateRequest fails: this minor has no such objects.
func addPodCertificateRequest(_ *node.Graph, request protocol.Placed) error {
	return fmt.Errorf("pod certificate request %s/%s in a minor that has none", request.Namespace, request.Name)
}
