package conformance

import (
	"strconv"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// TestInTreeDefects applies histories after which the in-tree graph gives other answers
// than one built from the final state. Ours answers like the final state. If a newer
// in-tree graph does too, the test reports that the defect is fixed and that its entry
// can be removed.
func TestInTreeDefects(t *testing.T) {
	if err := intree.SetGates(map[string]bool{"PodCertificateRequest": true, "DynamicResourceAllocation": true}); err != nil {
		t.Fatal(err)
	}
	for _, defect := range []struct {
		name   string
		events []generate.Event
		ask    generate.Request
	}{
		{
			name:   "a deleted pod that mentioned a secret twice leaves its node access to the secret",
			events: mentionsTwice(onNode("twice", "left"), onNode("other", "left")),
			ask:    nodeGets("left", "", "secrets", "shop", "db"),
		},
		{
			name:   "a new node inherits the access of a node that is gone",
			events: append(mentionsTwice(onNode("twice", "gone")), created(onNode("first", "fresh"))),
			ask:    nodeGets("fresh", "", "secrets", "shop", "db"),
		},
		{
			name: "a bound pod that an unbound one replaces within a watch gap keeps its node's access",
			events: []generate.Event{
				created(onNode("api", "left", "db")), created(onNode("other", "left")), created(onNode("api", "", "db")),
			},
			ask: nodeGets("left", "", "secrets", "shop", "db"),
		},
		{
			name:   "a resource slice that is re-created within a watch gap stays with its old node",
			events: []generate.Event{created(slice("gpu", "old")), created(slice("gpu", "new"))},
			ask:    nodeGets("old", "resource.k8s.io", "resourceslices", "", "gpu"),
		},
		{
			name:   "a pod certificate request that is re-created within a watch gap stays with its old node",
			events: []generate.Event{created(certificateRequest("req", "old")), created(certificateRequest("req", "new"))},
			ask:    nodeGets("old", "certificates.k8s.io", "podcertificaterequests", "shop", "req"),
		},
	} {
		t.Run(defect.name, func(t *testing.T) {
			watched, watchedGraph := intree.Watch(), graph.New()
			for _, e := range defect.events {
				watched.Apply(e)
				apply(watchedGraph, e)
			}
			final := generate.FinalState(defect.events)
			d, _, err := intree.Decide(intree.New(intree.Graph(final)), &defect.ask)
			if want := theirDecision(d, err); want != protocol.NoOpinion {
				t.Fatalf("an in-tree graph built from the final state says %c, want %c", want, protocol.NoOpinion)
			}
			answer := nodeauthz.New(watchedGraph, kubeversion.For(kubeversion.Latest)).Decide(requestOf(&defect.ask))
			if got := ourDecision(answer.Decision); got != protocol.NoOpinion {
				t.Errorf("ours says %c %s after these events, the final state says %c", got, answer.Code, protocol.NoOpinion)
			}
			d, _, err = intree.Decide(intree.New(watched.Graph), &defect.ask)
			if got := theirDecision(d, err); got == protocol.NoOpinion {
				t.Errorf("the in-tree graph answers as the final state does: the defect is gone")
			}
		})
	}
}

// mentionsTwice has 250 nodes with a pod each that mentions secret shop/db, enough for
// the in-tree graph to keep an index for the secret. Then the first given pod, which
// mentions it twice, is created and deleted among the others.
func mentionsTwice(pod *corev1.Pod, others ...*corev1.Pod) []generate.Event {
	var events []generate.Event
	for i := range 250 {
		events = append(events, created(onNode("filler-"+strconv.Itoa(i), "n"+strconv.Itoa(i), "db")))
	}
	for _, other := range others {
		events = append(events, created(other))
	}
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "db"}, {Name: "db"}}
	return append(events, created(pod), generate.Event{Object: pod, Deleted: true})
}

func created(object any) generate.Event { return generate.Event{Object: object} }

// onNode returns a pod in namespace shop that mentions secrets.
func onNode(name, node string, secrets ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "shop", name, types.UID(name+"@"+node)
	pod.Spec.NodeName = node
	for _, secret := range secrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	return pod
}

func slice(name, node string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{}
	s.Name, s.Spec.NodeName = name, &node
	return s
}

func certificateRequest(name, node string) *certificatesv1.PodCertificateRequest {
	r := &certificatesv1.PodCertificateRequest{}
	r.Namespace, r.Name, r.Spec.NodeName = "shop", name, types.NodeName(node)
	return r
}

func nodeGets(node, group, resource, namespace, name string) generate.Request {
	return generate.Request{
		User: "system:node:" + node, Groups: []string{"system:nodes"},
		Verb: "get", Group: group, Resource: resource, Namespace: namespace, Name: name,
	}
}
