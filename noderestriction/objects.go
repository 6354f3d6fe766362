package noderestriction

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// typed is a pointer to an API type.
type typed[T any] interface {
	*T
	runtime.Object
}

// object returns a check of the object, which must have the check's type.
func object[T any, P typed[T]](holds func(*question, P) *refusal) func(*question) *refusal {
	return func(q *question) *refusal {
		o, ok := as[T, P](q.req.Object)
		if !ok {
			return unexpected("object", q.req.Object)
		}
		return holds(q, o)
	}
}

// oldObject returns a check of the old object, which must have the check's type.
func oldObject[T any, P typed[T]](holds func(*question, P) *refusal) func(*question) *refusal {
	return func(q *question) *refusal {
		o, ok := as[T, P](q.req.OldObject)
		if !ok {
			return unexpected("old object", q.req.OldObject)
		}
		return holds(q, o)
	}
}

// update returns a check of both objects, which must have the check's type.
func update[T any, P typed[T]](holds func(q *question, from, to P) *refusal) func(*question) *refusal {
	return func(q *question) *refusal {
		from, ok := as[T, P](q.req.OldObject)
		if !ok {
			return unexpected("old object", q.req.OldObject)
		}
		to, ok := as[T, P](q.req.Object)
		if !ok {
			return unexpected("object", q.req.Object)
		}
		return holds(q, from, to)
	}
}

func as[T any, P typed[T]](o runtime.Object) (P, bool) {
	p, ok := o.(P)
	return p, ok && p != nil
}

func unexpected(which string, o runtime.Object) *refusal {
	if o == nil {
		return forbid(UnexpectedObject, "the request has no %s", which)
	}
	return forbid(UnexpectedObject, "the %s is of the unexpected type %T", which, o)
}

func operationRefused(q *question) *refusal {
	return forbid(OperationNotAllowed, "nodes may not %s %s", operationOf(q.req.Operation), q.resource())
}

func subresourceRefused(q *question) *refusal {
	if q.req.Subresource == "" {
		return forbid(OperationNotAllowed, "nodes may not %s %s", operationOf(q.req.Operation), q.resource())
	}
	return forbid(SubresourceNotAllowed, "nodes may not write %s", q.resource())
}

// resource returns the resource of the request: "pods/eviction".
func (q *question) resource() string {
	if q.req.Subresource == "" {
		return q.req.Resource
	}
	return q.req.Resource + "/" + q.req.Subresource
}
