package noderestriction

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

func gateRefused(g kubeversion.Gate) func(*question) *refusal {
	return func(q *question) *refusal {
		return forbid(FeatureDisabled, "nodes may write %s only with feature gate %s, which is off", q.resource(), g)
	}
}

func inLeaseNamespace(q *question) *refusal {
	if q.req.Namespace != leasesNamespace {
		return forbid(NotLeaseNamespace, "a node writes leases in namespace %s only, not in %q", leasesNamespace, q.req.Namespace)
	}
	return nil
}

func leaseOfNode(q *question) *refusal { return q.leaseNamed(q.req.Name) }

// newLeaseOfNode reads the name in the object, because a create request may lack it.
func newLeaseOfNode(q *question, lease *coordinationv1.Lease) *refusal {
	return q.leaseNamed(lease.Name)
}

func (q *question) leaseNamed(name string) *refusal {
	if name != q.node {
		return forbid(NotOwnLease, "node %s may not write the lease %q", q.node, name)
	}
	return nil
}

func csiNodeOfNode(q *question) *refusal { return q.csiNodeNamed(q.req.Name) }

// newCSINodeOfNode reads the name in the object, because a create request may lack
// it.
func newCSINodeOfNode(q *question) *refusal {
	if q.req.Object == nil {
		return unexpected("object", nil)
	}
	o, err := meta.Accessor(q.req.Object)
	if err != nil {
		return unexpected("object", q.req.Object).because(err)
	}
	return q.csiNodeNamed(o.GetName())
}

func (q *question) csiNodeNamed(name string) *refusal {
	if name != q.node {
		return forbid(NotOwnCSINode, "node %s may not write the CSINode %q", q.node, name)
	}
	return nil
}

func csiNodeSpecStays(q *question, from, to *storagev1.CSINode) *refusal {
	if !equality.Semantic.DeepEqual(from.Spec, to.Spec) {
		return forbid(CSINodeSpecChanged, "spec of CSINode %s changes with its status", q.node)
	}
	return nil
}
