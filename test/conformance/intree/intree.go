// Package intree has the in-tree Node authorizer of the newest supported minor for a
// final state: its graph is built from the state, not from the events that led there.
package intree

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
)

// Graph returns the graph of a cluster, as the API server's event handlers
// build it from a first list: of bound pods only.
func Graph(c *generate.Cluster) *node.Graph {
	g := node.NewGraph()
	for _, pod := range c.Pods {
		if pod.Spec.NodeName != "" {
			g.AddPod(pod)
		}
	}
	for _, pv := range c.PersistentVolumes {
		g.AddPV(pv)
	}
	for _, va := range c.VolumeAttachments {
		g.AddVolumeAttachment(va.Name, va.Spec.NodeName)
	}
	for _, slice := range c.ResourceSlices {
		nodeName := ""
		if slice.Spec.NodeName != nil {
			nodeName = *slice.Spec.NodeName
		}
		g.AddResourceSlice(slice.Name, nodeName)
	}
	for _, request := range c.PodCertificateRequests {
		g.AddPodCertificateRequest(request)
	}
	return g
}

// New returns the authorizer over a graph. It uses the gates of the process
// at the time of the call and, for some rules, at the time of the question.
func New(g *node.Graph) *node.NodeAuthorizer {
	return node.NewAuthorizer(g, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules())
}

// SetGates sets feature gates of the process, which every in-tree authorizer in
// it shares.
func SetGates(gates map[string]bool) error {
	klog.SetLogger(logr.Discard()) // it warns of every gate that is not at its default
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return fmt.Errorf("setting feature gates %v: %w", gates, err)
	}
	return nil
}

// Attributes converts a question.
func Attributes(r *generate.Request) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User:                      &user.DefaultInfo{Name: r.User, Groups: r.Groups},
		Verb:                      r.Verb,
		APIGroup:                  r.Group,
		Resource:                  r.Resource,
		Subresource:               r.Subresource,
		Namespace:                 r.Namespace,
		Name:                      r.Name,
		FieldSelectorRequirements: r.FieldSelector,
		ResourceRequest:           r.ResourceRequest(),
		Path:                      r.Path,
	}
}

// Decide asks an in-tree authorizer.
func Decide(a authorizer.Authorizer, r *generate.Request) (authorizer.Decision, string, error) {
	return a.Authorize(context.Background(), Attributes(r))
}
