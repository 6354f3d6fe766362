// Code generated from ../oracle.go.txt by go generate. DO NOT EDIT.

// The program answers questions with the in-tree Node authorizer and
// NodeRestriction of one Kubernetes minor, over standard input and output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

func main() {
	klog.SetLogger(logr.Discard())
	if err := protocol.Serve(os.Stdin, os.Stdout, &oracle{}); err != nil {
		log.Fatal(err)
	}
}

type oracle struct {
	authorizer *node.NodeAuthorizer
	restriction
}

// Load builds the graph of a final state, as the API server's event handlers
// would: of bound pods only, and of kinds whose gate is on.
func (o *oracle) Load(s protocol.State) error {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(s.Gates); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	graph := node.NewGraph()
	for _, text := range s.Pods {
		var pod corev1.Pod
		if err := decodePod(text, &pod); err != nil {
			return fmt.Errorf("reading a pod: %w", err)
		}
		if pod.Spec.NodeName != "" {
			graph.AddPod(&pod)
		}
	}
	for _, text := range s.PersistentVolumes {
		var pv corev1.PersistentVolume
		if err := json.Unmarshal(text, &pv); err != nil {
			return fmt.Errorf("reading a persistent volume: %w", err)
		}
		graph.AddPV(&pv)
	}
	for _, va := range s.VolumeAttachments {
		graph.AddVolumeAttachment(va.Name, va.Node)
	}
	for _, slice := range s.ResourceSlices {
		graph.AddResourceSlice(slice.Name, slice.Node)
	}
	for _, request := range s.PodCertificateRequests {
		if err := addPodCertificateRequest(graph, request); err != nil {
			return err
		}
	}
	o.authorizer = node.NewAuthorizer(graph, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules())
	return nil
}

// Decide asks the authorizer.
func (o *oracle) Decide(r *protocol.Request) protocol.Decision {
	attributes := authorizer.AttributesRecord{
		User:            &user.DefaultInfo{Name: r.User, Groups: r.Groups},
		Verb:            r.Verb,
		APIGroup:        r.Group,
		Resource:        r.Resource,
		Subresource:     r.Subresource,
		Namespace:       r.Namespace,
		Name:            r.Name,
		ResourceRequest: r.Path == "",
		Path:            r.Path,
	}
	setFieldSelector(&attributes, r.FieldSelector)
	switch decision, _, err := o.authorizer.Authorize(context.Background(), attributes); {
	case err != nil:
		return protocol.Failed
	case decision == authorizer.DecisionAllow:
		return protocol.Allow
	case decision == authorizer.DecisionNoOpinion:
		return protocol.NoOpinion
	default:
		return protocol.Deny
	}
}

// Gate looks a feature gate up, and tries on a copy whether it can be set.
func (o *oracle) Gate(name string) (protocol.Gate, bool) {
	feature := featuregate.Feature(name)
	if _, ok := utilfeature.DefaultMutableFeatureGate.GetAll()[feature]; !ok {
		return protocol.Gate{}, false
	}
	enabled := utilfeature.DefaultFeatureGate.Enabled(feature)
	err := utilfeature.DefaultMutableFeatureGate.DeepCopy().SetFromMap(map[string]bool{name: !enabled})
	return protocol.Gate{Enabled: enabled, Locked: err != nil}, true
}
