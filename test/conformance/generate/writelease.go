package generate

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// leaseNamespace is where the leases of nodes are.
const leaseNamespace = "kube-node-lease"

func drawLease(operation string) func(*draft) {
	return func(d *draft) {
		d.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: d.node}}
		d.lease.Spec.HolderIdentity = new(d.node)
		if operation == "" {
			operation := pick(d.r, []string{"UPDATE", "DELETE"})
			d.about(operation, "coordination.k8s.io", "leases", "", leaseNamespace, d.node)
			return
		}
		d.about(operation, "coordination.k8s.io", "leases", "", leaseNamespace, pick(d.r, []string{"", d.node}))
	}
}

// finishLease sets the object, and the old one on update and deletion.
func finishLease(d *draft) {
	if d.Operation != "DELETE" {
		d.Object = d.lease
	}
	if d.Operation != "CREATE" {
		d.OldObject = d.lease.DeepCopy()
	}
}

// leaseCreate is the creation of a lease, which the object names.
func leaseCreate() kind {
	return kind{
		name: "leases create", weight: 3, outcome: Allowed, draw: drawLease("CREATE"), finish: finishLease,
		mutations: []mutation{
			{"another node's", Refused, func(d *draft) { d.lease.Name = d.otherNode() }},
			{"another name in the request", Allowed, func(d *draft) { d.Name = d.otherNode() }},
			{"without a name", Refused, func(d *draft) { d.lease.Name, d.lease.GenerateName = "", d.node }},
			{
				"another namespace", Refused,
				func(d *draft) { d.Namespace = pick(d.r, []string{"", "default", "kube-system", "kube-node-lease0"}) },
			},
			{"another namespace in the object", Allowed, func(d *draft) { d.lease.Namespace = "default" }},
		},
	}
}

// leaseOther is an update or the deletion of a lease, which the request names.
func leaseOther() kind {
	return kind{
		name: "leases update and delete", weight: 3, outcome: Allowed, draw: drawLease(""), finish: finishLease,
		mutations: []mutation{
			{"another node's", Refused, func(d *draft) { d.Name = d.otherNode() }},
			{"another name in the object", Allowed, func(d *draft) { d.lease.Name = d.otherNode() }},
			{"without a name", Refused, func(d *draft) { d.Name = "" }},
			{"another namespace", Refused, func(d *draft) { d.Namespace = pick(d.r, []string{"", "default", "kube-system"}) }},
		},
	}
}

func drawCSINode(operations ...string) func(*draft) {
	return func(d *draft) {
		d.csiNode = &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: d.node}}
		d.csiNode.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "csi.example.com", NodeID: d.node, TopologyKeys: []string{"z"}}}
		d.oldCSINode = d.csiNode.DeepCopy()
		d.about(pick(d.r, operations), "storage.k8s.io", "csinodes", "", "", d.node)
	}
}

func finishCSINode(d *draft) {
	if d.Operation != "DELETE" {
		d.Object = d.csiNode
	}
	if d.Operation != "CREATE" {
		d.OldObject = d.oldCSINode
	}
}

// csiNodeCreate is the creation of a CSINode, which the object names.
func csiNodeCreate() kind {
	return kind{
		name: "csinodes create", weight: 4, outcome: Allowed, draw: drawCSINode("CREATE"), finish: finishCSINode,
		mutations: []mutation{
			{"another node's", Refused, func(d *draft) { d.csiNode.Name = d.otherNode() }},
			{"another name in the request", Allowed, func(d *draft) { d.Name = pick(d.r, []string{"", d.otherNode()}) }},
			{"through the status", Refused, func(d *draft) { d.Subresource = "status" }},
		},
	}
}

// csiNodeOther is an update or the deletion of a CSINode, which the request
// names.
func csiNodeOther() kind {
	return kind{
		name: "csinodes update and delete", weight: 3, outcome: Allowed, draw: drawCSINode("UPDATE", "DELETE"), finish: finishCSINode,
		mutations: []mutation{
			{"another node's", Refused, func(d *draft) { d.Name = d.otherNode() }},
			{"another name in the object", Allowed, func(d *draft) { d.csiNode.Name = d.otherNode() }},
			{"drivers", Allowed, func(d *draft) { d.csiNode.Spec.Drivers = nil }},
		},
	}
}

// csiNodeStatus is an update of a CSINode's status, which needs a gate.
func csiNodeStatus() kind {
	driver := func(change func(*storagev1.CSINodeDriver)) func(*draft) {
		return func(d *draft) {
			for i := range d.csiNode.Spec.Drivers {
				change(&d.csiNode.Spec.Drivers[i])
			}
		}
	}
	return kind{
		name: "csinodes/status update", weight: 6, outcome: Either,
		draw: func(d *draft) {
			drawCSINode("UPDATE")(d)
			d.Subresource = "status"
			d.csiNode.Status.StorageHealth = []storagev1.StorageHealth{{}}
		},
		finish: finishCSINode,
		mutations: []mutation{
			{"another node's", Refused, func(d *draft) { d.Name = d.otherNode() }},
			{"delete", Refused, func(d *draft) { d.Operation = "DELETE" }},
			{"driver", Refused, driver(func(c *storagev1.CSINodeDriver) { c.NodeID = "x" })},
			{"topology", Refused, driver(func(c *storagev1.CSINodeDriver) { c.TopologyKeys = nil })},
			{
				"allocatable volumes", Refused,
				driver(func(c *storagev1.CSINodeDriver) { c.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(3))} }),
			},
			{"empty drivers instead of none", Either, func(d *draft) {
				d.oldCSINode.Spec.Drivers, d.csiNode.Spec.Drivers = nil, []storagev1.CSINodeDriver{}
			}},
			{"labels", Either, func(d *draft) { setLabel(&d.csiNode.ObjectMeta, "a", "b") }},
		},
	}
}

func drawSlice(operation string) func(*draft) {
	return func(d *draft) {
		d.slice = &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}}
		d.slice.Spec.Driver, d.slice.Spec.Pool.Name = "gpu.example.com", d.node
		d.slice.Spec.NodeName = new(d.node)
		d.about(operation, "resource.k8s.io", "resourceslices", "", "", "slice")
	}
}

// finishSlice sets the objects, in any of the versions that the API has.
func finishSlice(d *draft) {
	slice := sliceVersion(d)
	if d.Operation != "DELETE" {
		d.Object = slice
	}
	if d.Operation != "CREATE" {
		d.OldObject = slice.DeepCopyObject()
	}
}

func sliceVersion(d *draft) runtime.Object {
	switch d.r.IntN(4) {
	case 0:
		d.Version = "v1beta2"
		slice := &resourcev1beta2.ResourceSlice{ObjectMeta: d.slice.ObjectMeta}
		slice.Spec.Driver, slice.Spec.NodeName = d.slice.Spec.Driver, d.slice.Spec.NodeName
		return slice
	case 1:
		d.Version = "v1beta1"
		slice := &resourcev1beta1.ResourceSlice{ObjectMeta: d.slice.ObjectMeta}
		slice.Spec.Driver = d.slice.Spec.Driver
		if d.slice.Spec.NodeName != nil {
			slice.Spec.NodeName = *d.slice.Spec.NodeName
		}
		return slice
	default:
		return d.slice
	}
}

func sliceMutations() []mutation {
	return []mutation{
		{"another node's", Refused, func(d *draft) { d.slice.Spec.NodeName = new(d.otherNode()) }},
		{"no node's", Refused, func(d *draft) { d.slice.Spec.NodeName = pick(d.r, []*string{nil, new("")}) }},
		{"every node's", Refused, func(d *draft) { d.slice.Spec.NodeName, d.slice.Spec.AllNodes = nil, new(true) }},
		{"another name", Allowed, func(d *draft) { d.slice.Name, d.Name = "other", "other" }},
	}
}

// sliceCreate is the creation of a resource slice.
func sliceCreate() kind {
	return kind{
		name: "resourceslices create", weight: 3, outcome: Allowed, draw: drawSlice("CREATE"), finish: finishSlice,
		mutations: sliceMutations(),
	}
}

// sliceDelete is the deletion of a resource slice, which the old object places.
// Updates are not checked.
func sliceDelete() kind {
	return kind{
		name: "resourceslices delete", weight: 3, outcome: Allowed, draw: drawSlice("DELETE"), finish: finishSlice,
		mutations: append(sliceMutations(), mutation{"update, of another node's", Allowed, func(d *draft) {
			d.Operation, d.slice.Spec.NodeName = "UPDATE", new(d.otherNode())
		}}),
	}
}
