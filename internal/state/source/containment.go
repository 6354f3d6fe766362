package source

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// The kinds that say what a node's credentials may not do.
const (
	NodeScopes  Kinds = 1 << kindNodeScope
	Quarantines Kinds = 1 << kindQuarantine
)

// ContainmentKinds returns NodeScopes and Quarantines, which are custom resources: if a cluster does not
// serve them, there are none. With them come APIServices, where NodeScopes let less pass. All of them only take
// rights away, so that an allow is in doubt if they could not be read.
func ContainmentKinds() Kinds { return NodeScopes | Quarantines | APIServices }

// NodeScopes returns the NodeScopes by name: metadata.name, metadata.creationTimestamp and spec. They
// must not be changed. A State of [Watch] has none.
func (s *State) NodeScopes() []*policyv1alpha1.NodeScope {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sortedRecords(s.objects.scopes)
}

// Quarantines returns the Quarantines by name: the same fields, without spec.reason. They must not be
// changed. A State of [Watch] has none.
func (s *State) Quarantines() []*policyv1alpha1.Quarantine {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sortedRecords(s.objects.quarantines)
}

func sortedRecords[O apiObject](records map[objectKey]stamped[O]) []O {
	keys := slices.SortedFunc(maps.Keys(records), func(a, b objectKey) int { return strings.Compare(a.name, b.name) })
	all := make([]O, len(keys))
	for i, key := range keys {
		all[i] = records[key].record
	}
	return all
}

// trimContainment keeps what decides. The age decides which objects count if there are too many. The
// reason of a Quarantine is for people, and may be confidential.
func trimContainment(o apiObject) {
	switch o := o.(type) {
	case *policyv1alpha1.NodeScope:
		*o = policyv1alpha1.NodeScope{ObjectMeta: created(&o.ObjectMeta), Spec: o.Spec}
	case *policyv1alpha1.Quarantine:
		*o = policyv1alpha1.Quarantine{ObjectMeta: created(&o.ObjectMeta), Spec: o.Spec}
		o.Spec.Reason = ""
		if o.Spec.ExpirationTime.IsZero() {
			o.Spec.ExpirationTime = nil
		}
	}
}

func created(o *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := named(o)
	kept.CreationTimestamp = o.CreationTimestamp
	return kept
}
