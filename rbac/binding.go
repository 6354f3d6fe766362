package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// binding is a role binding or cluster role binding.
type binding struct {
	ref      Ref
	role     Ref
	subjects []rbacv1.Subject
	// isDefault is true if the API server restores it.
	isDefault bool
}

func newBinding(kind string, meta *metav1.ObjectMeta, role rbacv1.RoleRef, subjects []rbacv1.Subject) *binding {
	b := &binding{
		ref:       Ref{Kind: kind, Namespace: meta.Namespace, Name: meta.Name},
		role:      Ref{Kind: role.Kind, Name: role.Name},
		subjects:  subjects,
		isDefault: isDefault(meta),
	}
	if role.Kind == "Role" {
		b.role.Namespace = meta.Namespace
	}
	return b
}

// subject returns the subject with its effective namespace.
func (b *binding) subject(i int) rbacv1.Subject {
	s := b.subjects[i]
	if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" {
		s.Namespace = b.ref.Namespace
	}
	return s
}

// principal is the user or group that a subject identifies. A service account is a
// user.
type principal struct {
	group bool
	name  string
}

// principal returns false for subjects that match no user: subjects of an unknown kind,
// and service accounts without a namespace.
func (b *binding) principal(i int) (principal, bool) {
	s := b.subject(i)
	switch s.Kind {
	case rbacv1.UserKind:
		return principal{name: s.Name}, true
	case rbacv1.GroupKind:
		return principal{group: true, name: s.Name}, true
	case rbacv1.ServiceAccountKind:
		return principal{name: "system:serviceaccount:" + s.Namespace + ":" + s.Name}, s.Namespace != ""
	default:
		return principal{}, false
	}
}

// entry is a binding with the index of the subject that names a principal.
type entry struct {
	*binding
	subjectIndex int
}

// subjectIndex finds the bindings of one scope by principal, each once, by the
// first subject that names the principal, ordered by binding.
type subjectIndex map[principal][]entry

func (x subjectIndex) add(b *binding) {
	for i := range b.subjects {
		pr, ok := b.principal(i)
		if !ok {
			continue
		}
		at, found := x.find(pr, b)
		if !found {
			x[pr] = slices.Insert(x[pr], at, entry{binding: b, subjectIndex: i})
		}
	}
}

func (x subjectIndex) remove(b *binding) {
	for i := range b.subjects {
		pr, ok := b.principal(i)
		if !ok {
			continue
		}
		at, found := x.find(pr, b)
		if !found {
			continue
		}
		if x[pr] = slices.Delete(x[pr], at, at+1); len(x[pr]) == 0 {
			delete(x, pr)
		}
	}
}

func (x subjectIndex) find(pr principal, b *binding) (int, bool) {
	return slices.BinarySearchFunc(x[pr], b.ref, func(e entry, ref Ref) int {
		return compareRefs(e.ref, ref)
	})
}
