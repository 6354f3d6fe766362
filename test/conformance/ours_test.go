package conformance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
)

// graphOf returns our graph of a cluster.
func graphOf(c *generate.Cluster) *graph.Graph {
	g := graph.New()
	for _, object := range c.Objects() {
		apply(g, generate.Event{Object: object})
	}
	return g
}

// apply applies an event to our graph.
func apply(g *graph.Graph, e generate.Event) {
	switch o := e.Object.(type) {
	case *corev1.Pod:
		if e.Deleted {
			g.DeletePod(o.Namespace, o.Name)
		} else {
			g.SetPod(o)
		}
	case *corev1.PersistentVolume:
		if e.Deleted {
			g.DeletePersistentVolume(o.Name)
		} else {
			g.SetPersistentVolume(o)
		}
	case *storagev1.VolumeAttachment:
		if e.Deleted {
			g.DeleteVolumeAttachment(o.Name)
		} else {
			g.SetVolumeAttachment(o)
		}
	case *resourcev1.ResourceSlice:
		if e.Deleted {
			g.DeleteResourceSlice(o.Name)
		} else {
			g.SetResourceSlice(o)
		}
	case *certificatesv1.PodCertificateRequest:
		if e.Deleted {
			g.DeletePodCertificateRequest(o.Namespace, o.Name)
		} else {
			g.SetPodCertificateRequest(o)
		}
	default:
		panic(fmt.Sprintf("event of unknown type %T", e.Object))
	}
}

// requestOf converts a question to ours.
func requestOf(r *generate.Request) *access.Request {
	return &access.Request{
		User:            r.User,
		Groups:          r.Groups,
		Verb:            r.Verb,
		Group:           r.Group,
		Resource:        r.Resource,
		Subresource:     r.Subresource,
		Namespace:       r.Namespace,
		Name:            r.Name,
		FieldSelector:   r.FieldSelector,
		ResourceRequest: r.ResourceRequest(),
		Path:            r.Path,
	}
}

// randomFeatures draws gates for a minor: its defaults half of the time. The
// map holds every gate that the minor lets one set, with its value.
func randomFeatures(t *testing.T, r *rand.Rand, m kubeversion.Minor) (kubeversion.Features, map[string]bool) {
	t.Helper()
	features := kubeversion.For(m)
	defaults := r.IntN(2) == 0
	for _, gate := range kubeversion.Gates() {
		if defaults || !features.Settable(gate) {
			continue
		}
		with, err := features.With(gate, r.IntN(2) == 0)
		if err != nil {
			t.Fatal(err)
		}
		features = with
	}
	return features, settings(features)
}

// served returns the part of a cluster that reaches the in-tree graph in a minor with its
// gates: API servers read resource slices and pod certificate requests only with their
// gates on (pkg/kubeapiserver/authorizer/config.go), and pods have had a claim for
// extended resources since 1.34.
func served(c *generate.Cluster, f kubeversion.Features) *generate.Cluster {
	var objects []any
	for _, object := range c.Objects() {
		switch o := object.(type) {
		case *resourcev1.ResourceSlice:
			if !f.Enabled(kubeversion.DynamicResourceAllocation) {
				continue
			}
		case *certificatesv1.PodCertificateRequest:
			if !f.Enabled(kubeversion.PodCertificateRequest) {
				continue
			}
		case *corev1.Pod:
			if f.Minor() < 34 && o.Status.ExtendedResourceClaimStatus != nil {
				o = o.DeepCopy()
				o.Status.ExtendedResourceClaimStatus = nil
				object = o
			}
		}
		objects = append(objects, object)
	}
	return c.With(objects)
}
