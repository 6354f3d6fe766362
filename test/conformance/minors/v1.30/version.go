package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"

	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// decodePod reads a pod. In 1.30 the target of a pod's resource claim is one
// level deeper than since, in spec.resourceClaims[].source.
func decodePod(text []byte, pod *corev1.Pod) error {
	if err := json.Unmarshal(text, pod); err != nil {
		return err
	}
	var since struct {
		Spec struct {
			ResourceClaims []corev1.ClaimSource `json:"resourceClaims"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &since); err != nil {
		return err
	}
	for i, source := range since.Spec.ResourceClaims {
		pod.Spec.ResourceClaims[i].Source = source
	}
	return nil
}

// setFieldSelector does nothing: authorizers of 1.30 see no selectors.
func setFieldSelector(*authorizer.AttributesRecord, []protocol.Requirement) {}

// addPodCertificateRequest fails: this minor has no such objects.
func addPodCertificateRequest(_ *node.Graph, request protocol.Placed) error {
	return fmt.Errorf("pod certificate request %s/%s in a minor that has none", request.Namespace, request.Name)
}
