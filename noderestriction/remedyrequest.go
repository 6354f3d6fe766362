package noderestriction

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func (d *draft) neverWrites(answer Answer) {
	q := question{Restriction: d.Restriction, req: &d.req}
	d.none = fmt.Sprintf("no node may %s %s, with any right: use another credential", strings.ToLower(string(d.req.Operation)), q.resource())
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
	if !ok || pod.Spec.NodeName != "" || given && old.Spec.NodeName != "" {
		d.none = fmt.Sprintf("a node acts only for its own pods, with any right, and a pod stays on its node: use another credential than that of %s",
			answer.Node)
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
	d.warnings = append(d.warnings, "the pod waits for its scheduler, which may choose another node: this binds it without the scheduler's checks")
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

// mayAllocate reports whether nodes write the allocated resources of claims.
func (d *draft) mayAllocate() bool {
	return d.features.Enabled(kubeversion.RecoverVolumeExpansionFailure)
}

// bindToken completes the reference to a pod on the node.
func (d *draft) bindToken(answer Answer) {
	token, ok := d.req.Object.(*authenticationv1.TokenRequest)
	pod, exists := d.meantPod()
	if !ok || token.Spec.BoundObjectRef == nil || !exists {
		d.none = "the token must be bound to a pod on node " + answer.Node + ", and only the caller knows for which one it is"
		return
	}
	*token.Spec.BoundObjectRef = authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// oneAudience keeps an audience that is allowed, or else the first.
func (d *draft) oneAudience(answer Answer) {
	token, ok := d.req.Object.(*authenticationv1.TokenRequest)
	if !ok || len(token.Spec.Audiences) == 0 {
		return
	}
	all := token.Spec.Audiences
	for _, audience := range all {
		token.Spec.Audiences = []string{audience}
		if d.Decide(d.ctx, &d.req).Decision == verdict.Allow {
			break
		}
		token.Spec.Audiences = all[:1]
	}
	d.warnings = append(d.warnings, "the node needs one request for each audience")
}

func (d *draft) grantAudience(answer Answer) {
	token, ok := d.req.Object.(*authenticationv1.TokenRequest)
	if !ok {
		return
	}
	audience, _ := oneAudience(token)
	if d.features.Minor() < migrationSince {
		d.none = fmt.Sprintf("in Kubernetes %s only a volume of the pod allows audience %q, and the volumes of a pod stay: create the pod again",
			d.features.Minor(), audience)
		return
	}
	d.grant("request-serviceaccounts-token-audience", audience, d.req.Name,
		fmt.Sprintf("whoever takes over node %s can then get tokens for audience %q", answer.Node, audience))
}

// grantAsked gives the right that an authorizer failed to decide about: an allow of another one counts.
func (d *draft) grantAsked(answer Answer) {
	if _, ok := d.req.Object.(*authenticationv1.TokenRequest); ok {
		d.grantAudience(answer)
		return
	}
	d.grantSigner(answer)
}

func (d *draft) grantSigner(answer Answer) {
	spec, ok := certificateSpecOf(d.req.Object)
	if !ok {
		return
	}
	d.grant("request-serviceaccounts-podcertificate-signer", strings.ReplaceAll(spec.signer, "/", ":"), spec.account,
		fmt.Sprintf("whoever takes over node %s can then get certificates of signer %q", answer.Node, spec.signer))
}

// grant gives the node's user the right by RBAC that [question.ask] asks for.
func (d *draft) grant(verb, resource, account, what string) {
	req := access.Request{
		User: d.req.User, Groups: d.req.Groups, Verb: verb, ResourceRequest: true, Group: d.req.Group, Version: d.req.Version,
		Resource: resource, Namespace: d.req.Namespace, Name: account,
	}
	d.Restriction = New(d.state, granted{d.authorizer, req}, d.features)
	d.changes = append(d.changes, req.Grant()...)
	d.warnings = append(d.warnings, fmt.Sprintf("%s of service account %s/%s; a projected volume of the pod would limit this to the pod", what,
		req.Namespace, account))
}

// granted is an authorizer that also allows one request.
type granted struct {
	Authorizer
	request access.Request
}

func (g granted) Authorize(ctx context.Context, req *access.Request) (allowed bool, reason string, err error) {
	if req.Verb == g.request.Verb && req.Resource == g.request.Resource && req.Namespace == g.request.Namespace && req.Name == g.request.Name {
		return true, "", nil
	}
	if g.Authorizer == nil {
		return false, "", nil
	}
	return g.Authorizer.Authorize(ctx, req)
}

func (d *draft) lookupFirst(answer Answer) {
	d.none = "what leads from the pod's volumes to their CSI drivers must exist first: " + answer.Reason.Message
}

func (d *draft) signAgain(answer Answer) {
	d.none = fmt.Sprintf("the request must be made and signed again for the common name %s%s, which only the node can do with its key",
		nodeidentity.UserPrefix, answer.Node)
}

// dropReferences removes what a mirror pod must not have.
func (d *draft) dropReferences(Answer) {
	pod, ok := d.req.Object.(*corev1.Pod)
	if !ok {
		return
	}
	spec := &pod.Spec
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", ""
	spec.ImagePullSecrets = slices.DeleteFunc(spec.ImagePullSecrets, func(s corev1.LocalObjectReference) bool { return s.Name != "" })
	dropped := map[string]bool{}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		dropped[v.Name] = d.volumeRefers(v)
		return dropped[v.Name]
	})
	claims := d.features.Minor() >= claimsSince
	if claims {
		spec.ResourceClaims = nil
	}
	drop := func(env *[]corev1.EnvVar, from *[]corev1.EnvFromSource, mounts *[]corev1.VolumeMount, r *corev1.ResourceRequirements) {
		*env = slices.DeleteFunc(*env, func(v corev1.EnvVar) bool { return environmentReference(environment{env: []corev1.EnvVar{v}}) != "" })
		*from = slices.DeleteFunc(*from, func(s corev1.EnvFromSource) bool {
			return environmentReference(environment{envFrom: []corev1.EnvFromSource{s}}) != ""
		})
		*mounts = slices.DeleteFunc(*mounts, func(m corev1.VolumeMount) bool { return dropped[m.Name] })
		if claims {
			r.Claims = nil
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			drop(&c.Env, &c.EnvFrom, &c.VolumeMounts, &c.Resources)
		}
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		drop(&c.Env, &c.EnvFrom, &c.VolumeMounts, &c.Resources)
	}
}

// claimsSince is the minor since which mirror pods must not have resource claims.
const claimsSince kubeversion.Minor = 32

// volumeRefers reports whether a mirror pod must not have the volume.
func (d *draft) volumeRefers(v corev1.Volume) bool {
	alone := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{v}}}
	if podReference(alone) != "" {
		return true
	}
	if d.features.Minor() < 34 {
		return volumeReferenceBefore34(alone) != ""
	}
	return volumeReference(alone) != ""
}
