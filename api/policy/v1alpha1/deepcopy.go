package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing with the original.
func (s *NodeScope) DeepCopy() *NodeScope {
	if s == nil {
		return nil
	}
	out := &NodeScope{TypeMeta: s.TypeMeta, Spec: s.Spec.deepCopy(), Status: NodeScopeStatus{
		ObservedGeneration: s.Status.ObservedGeneration, Conditions: copyConditions(s.Status.Conditions),
	}}
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject implements runtime.Object.
func (s *NodeScope) DeepCopyObject() runtime.Object {
	if s == nil {
		return nil
	}
	return s.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *NodeScopeList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &NodeScopeList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = copyEach(l.Items, func(s NodeScope) NodeScope { return *s.DeepCopy() })
	return out
}

// DeepCopy returns a copy that shares nothing with the original.
func (q *Quarantine) DeepCopy() *Quarantine {
	if q == nil {
		return nil
	}
	out := &Quarantine{TypeMeta: q.TypeMeta, Spec: q.Spec.deepCopy(), Status: QuarantineStatus{
		ObservedGeneration: q.Status.ObservedGeneration, Conditions: copyConditions(q.Status.Conditions),
	}}
	q.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject implements runtime.Object.
func (q *Quarantine) DeepCopyObject() runtime.Object {
	if q == nil {
		return nil
	}
	return q.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *QuarantineList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &QuarantineList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = copyEach(l.Items, func(q Quarantine) Quarantine { return *q.DeepCopy() })
	return out
}

func (s *NodeScopeSpec) deepCopy() NodeScopeSpec {
	out := *s
	out.Subjects = slices.Clone(s.Subjects)
	out.NamedAsNode = copyEach(s.NamedAsNode, func(r NamedRule) NamedRule {
		return NamedRule{slices.Clone(r.APIGroups), slices.Clone(r.Resources), slices.Clone(r.Verbs), slices.Clone(r.Namespaces)}
	})
	out.SelectsNode = copyEach(s.SelectsNode, func(r SelectedRule) SelectedRule {
		return SelectedRule{
			slices.Clone(r.APIGroups), slices.Clone(r.Resources), slices.Clone(r.Verbs), slices.Clone(r.Namespaces), r.Field,
		}
	})
	out.PodsOnNode = copyEach(s.PodsOnNode, func(r PodRule) PodRule {
		return PodRule{slices.Clone(r.APIGroups), slices.Clone(r.Resources), slices.Clone(r.Verbs), slices.Clone(r.Namespaces)}
	})
	out.Anywhere = copyEach(s.Anywhere, func(r AnywhereRule) AnywhereRule {
		return AnywhereRule{
			APIGroups: slices.Clone(r.APIGroups), Resources: slices.Clone(r.Resources), ResourceNames: slices.Clone(r.ResourceNames),
			Verbs: slices.Clone(r.Verbs), Namespaces: slices.Clone(r.Namespaces), NonResourceURLs: slices.Clone(r.NonResourceURLs),
		}
	})
	return out
}

func (s *QuarantineSpec) deepCopy() QuarantineSpec {
	out := *s
	out.ExpirationTime = s.ExpirationTime.DeepCopy()
	out.Allow = copyEach(s.Allow, func(r QuarantineRule) QuarantineRule {
		return QuarantineRule{
			APIGroups: slices.Clone(r.APIGroups), Resources: slices.Clone(r.Resources), ResourceNames: slices.Clone(r.ResourceNames),
			Verbs: slices.Clone(r.Verbs), NonResourceURLs: slices.Clone(r.NonResourceURLs), Namespaces: slices.Clone(r.Namespaces),
			ServiceAccounts: slices.Clone(r.ServiceAccounts),
		}
	})
	return out
}

func copyConditions(in []metav1.Condition) []metav1.Condition {
	return copyEach(in, func(c metav1.Condition) metav1.Condition { return *c.DeepCopy() })
}

// copyEach copies a slice element by element; nil stays nil.
func copyEach[T any](in []T, deepCopy func(T) T) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i := range in {
		out[i] = deepCopy(in[i])
	}
	return out
}
