package noderestriction

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func (d *draft) neverWrites(answer Answer) {
	q := question{Restriction: d.Restriction, req: &d.req}
	d.none = fmt.Sprintf("no node may %s %s, with any right: use another credential",
		strings.ToLower(string(d.req.Operation)), q.resource())
}

// turnOn turns on the feature gate of the resource.
func (d *draft) turnOn(Answer) {
	gate := kubeversion.PodCertificateRequest
	if d.req.Resource == "csinodes" {
		gate = kubeversion.CSIVolumeHealth
	}
	with, err := d.features.With(gate, true)
	if err != nil || d.features.Enabled(gate) {
		d.none = fmt.Sprintf("Kubernetes %s does not let nodes write this", d.features.Minor())
		return
	}
	d.Restriction = New(d.state, d.authorizer, with)
	d.changes = append(d.changes, verdict.Change{
		Of: verdict.OfFeatureGate, Op: verdict.Replace, Object: verdict.Object{Kind: "FeatureGate", Name: string(gate)},
		Value: json.RawMessage("true"),
	})
	d.warnings = append(d.warnings, fmt.Sprintf("feature gate %s changes the whole cluster", gate))
}

// meantPod returns the pod in the state that a request is about.
func (d *draft) meantPod() (*corev1.Pod, bool) { return d.state.Pod(d.req.Namespace, d.meantPodName()) }

func (d *draft) meantPodName() string {
	switch o := d.req.Object.(type) {
	case *authenticationv1.TokenRequest:
		if o.Spec.BoundObjectRef != nil {
			return o.Spec.BoundObjectRef.Name
		}
	case *policyv1.Eviction:
		return cmp.Or(d.req.Name, o.Name)
	case *policyv1beta1.Eviction:
		return cmp.Or(d.req.Name, o.Name)
	}
	if spec, ok := certificateSpecOf(d.req.Object); ok {
		return spec.pod
	}
	return d.req.Name
}

func (d *draft) podFirst(answer Answer) {
	d.none = "the pod must exist first, on node " + answer.Node + ": a node acts only for its own pods"
}

func (d *draft) usePodUID(Answer) {
	pod, ok := d.meantPod()
	if !ok {
		return
	}
	if token, ok := d.req.Object.(*authenticationv1.TokenRequest); ok {
		token.Spec.BoundObjectRef.UID = pod.UID
		return
	}
	d.certificateUIDs(func(podUID, _, _ *types.UID) { *podUID = pod.UID })
}

// bindPod sets the node of a pod that is created, or binds a pod that is on no node yet.
func (d *draft) bindPod(answer Answer) {
	if pod, ok := d.req.Object.(*corev1.Pod); ok && d.req.Operation == Create && d.req.Subresource == "" {
		pod.Spec.NodeName = answer.Node
		return
	}
	pod, ok := d.meantPod()
	old, given := d.req.OldObject.(*corev1.Pod)
	given = given && old != nil && d.req.Operation == Update
	if given {
		// The rule is about the stored object, not about the name of the request.
		pod, ok = d.state.Pod(old.Namespace, old.Name)
	}
	if !ok || pod.Spec.NodeName != "" || given && old.Spec.NodeName != "" {
		d.none = fmt.Sprintf("a node acts only for its own pods, with any right, and a pod stays on its node: "+
			"use another credential than the one of node %s", answer.Node)
		return
	}
	if given {
		stored := old.DeepCopy()
		stored.Spec.NodeName = answer.Node
		d.req.OldObject = stored
	}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = answer.Node
	d.Restriction = New(boundPod{d.state, bound}, d.authorizer, d.features)
	d.changes = append(d.changes, verdict.Change{
		Of: verdict.OfObject, Op: verdict.Add, APIVersion: "v1",
		Object: verdict.Object{Kind: "Binding", Namespace: pod.Namespace, Name: pod.Name},
		Value: encoded(corev1.Binding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			Target:     corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: answer.Node},
		}),
	})
	d.warnings = append(d.warnings,
		"the pod waits for its scheduler, which may choose another node: this binds it without the scheduler's checks")
}

// boundPod is a state in which one pod is bound.
type boundPod struct {
	State
	pod *corev1.Pod
}

func (b boundPod) Pod(namespace, name string) (*corev1.Pod, bool) {
	if namespace == b.pod.Namespace && name == b.pod.Name {
		return b.pod, true
	}
	return b.State.Pod(namespace, name)
}

func (d *draft) nameSelfOnCreate(answer Answer) {
	if d.req.Operation != Create {
		d.none = "a node writes only its own Node object, with any right: use another credential"
		return
	}
	d.nameSelf(answer)
}

// nameSelf writes the object of the node instead, except for a deletion, which means the other.
func (d *draft) nameSelf(answer Answer) {
	if d.req.Operation == Delete {
		d.none = fmt.Sprintf("a node deletes no %s of another node, with any right: use another credential", d.req.Resource)
		return
	}
	d.set("name", &d.req.Name, answer.Node)
	d.rename()
}

func (d *draft) useLeaseNamespace(Answer) {
	d.set("namespace", &d.req.Namespace, leasesNamespace)
	d.rename()
}
