package conformance

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// known is the state that our rules read.
type known struct {
	pods     map[types.NamespacedName]*corev1.Pod
	nodes    map[string]*corev1.Node
	accounts map[types.NamespacedName]*corev1.ServiceAccount
	claims   map[types.NamespacedName]*corev1.PersistentVolumeClaim
	volumes  map[string]*corev1.PersistentVolume
	drivers  map[string]*storagev1.CSIDriver
}

var _ noderestriction.State = (*known)(nil)

func newKnown(s *generate.State) *known {
	k := &known{
		pods:     make(map[types.NamespacedName]*corev1.Pod),
		nodes:    make(map[string]*corev1.Node),
		accounts: make(map[types.NamespacedName]*corev1.ServiceAccount),
		claims:   make(map[types.NamespacedName]*corev1.PersistentVolumeClaim),
		volumes:  make(map[string]*corev1.PersistentVolume),
		drivers:  make(map[string]*storagev1.CSIDriver),
	}
	for _, o := range s.Pods {
		k.pods[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
	}
	for _, o := range s.Nodes {
		k.nodes[o.Name] = o
	}
	for _, o := range s.ServiceAccounts {
		k.accounts[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
	}
	for _, o := range s.PersistentVolumeClaims {
		k.claims[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o
	}
	for _, o := range s.PersistentVolumes {
		k.volumes[o.Name] = o
	}
	for _, o := range s.CSIDrivers {
		k.drivers[o.Name] = o
	}
	return k
}

func (k *known) Pod(namespace, name string) (*corev1.Pod, bool) {
	o, ok := k.pods[types.NamespacedName{Namespace: namespace, Name: name}]
	return o, ok
}

func (k *known) Node(name string) (*corev1.Node, bool) {
	o, ok := k.nodes[name]
	return o, ok
}

func (k *known) ServiceAccount(namespace, name string) (*corev1.ServiceAccount, bool) {
	o, ok := k.accounts[types.NamespacedName{Namespace: namespace, Name: name}]
	return o, ok
}

func (k *known) PersistentVolumeClaim(namespace, name string) (*corev1.PersistentVolumeClaim, bool) {
	o, ok := k.claims[types.NamespacedName{Namespace: namespace, Name: name}]
	return o, ok
}

func (k *known) PersistentVolume(name string) (*corev1.PersistentVolume, bool) {
	o, ok := k.volumes[name]
	return o, ok
}

func (k *known) CSIDriver(name string) (*storagev1.CSIDriver, bool) {
	o, ok := k.drivers[name]
	return o, ok
}

var errFault = errors.New("the authorizer was told to fail")

// ourGrants is our RBAC with faults. It records its last question.
type ourGrants struct {
	policy *rbac.Policy
	asked  *access.Request
}

func (g *ourGrants) Authorize(_ context.Context, a *access.Request) (bool, string, error) {
	g.asked = a
	switch d := g.policy.Evaluate(a); protocol.FaultOf(a.Resource, a.Namespace, a.Name) {
	case protocol.Failing:
		return false, "", errFault
	case protocol.Stumbling:
		return d.Allowed, "", errFault
	default:
		return d.Allowed, "", nil
	}
}

// theirGrants is the in-tree RBAC authorizer with the same faults. It records its last
// question.
type theirGrants struct {
	authorizer.UnconditionalAuthorizer
	asked *access.Request
}

func (g *theirGrants) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	g.asked = new(access.Request)
	access.FromAttributes(a, g.asked)
	switch d, reason, err := g.UnconditionalAuthorizer.Authorize(ctx, a); protocol.FaultOf(a.GetResource(), a.GetNamespace(), a.GetName()) {
	case protocol.Failing:
		return authorizer.DecisionNoOpinion, "", errFault
	case protocol.Stumbling:
		return d, reason, errFault
	default:
		return d, reason, err
	}
}
