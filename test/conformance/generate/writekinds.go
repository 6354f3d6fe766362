package generate

// kinds returns the kinds of requests: kinds that a rule is about, weighted by the
// number of possible mistakes, and kinds that pass.
func kinds() []kind {
	return []kind{
		mirrorPod().object(Refused),
		podDelete().oldObject(Allowed),
		podUpdate(),
		podStatus().object(Refused).oldObject(Refused),
		podEviction().object(Refused),
		podOther(),
		nodeCreate().object(Refused),
		nodeUpdate().object(Refused).oldObject(Refused),
		nodeDelete().oldObject(Allowed),
		claimStatus().object(Refused).oldObject(Refused),
		claimOther(),
		tokenCreate().object(Refused),
		accountOther().object(Allowed),
		podCertificate().object(Refused),
		leaseCreate().object(Refused),
		leaseOther().object(Allowed),
		csiNodeCreate().object(Refused),
		csiNodeOther().object(Allowed),
		csiNodeStatus().object(Refused).oldObject(Refused),
		sliceCreate().object(Refused),
		sliceDelete().oldObject(Refused),
		signingRequest().object(Either),
		signingRequestOther().object(Allowed),
		unrestricted(),
	}
}

// anyOperation draws one of the operations.
func (d *draft) anyOperation() string { return pick(d.r, []string{"CREATE", "UPDATE", "DELETE"}) }

// podOther is about subresources of pods that a node may not write.
func podOther() kind {
	return kind{
		name: "pods other subresources", weight: 3, outcome: Refused,
		draw: func(d *draft) {
			pod := d.ownPod()
			d.about(d.anyOperation(), "", "pods", pick(d.r,
				[]string{"binding", "ephemeralcontainers", "resize", "log", "proxy", "exec", "Status"}),
				pod.Namespace, pod.Name)
			d.pod = pod.DeepCopy()
		},
		finish: func(d *draft) { d.Object, d.OldObject = d.pod, d.pod.DeepCopy() },
	}
}

// claimOther is everything about claims but an update of their status.
func claimOther() kind {
	return kind{
		name: "persistentvolumeclaims, not an update of the status", weight: 3, outcome: Refused,
		draw: func(d *draft) {
			drawClaim(d)
			d.Operation, d.Subresource = d.anyOperation(), pick(d.r, []string{"", "scale"})
			if chance(d.r, 30) {
				d.Operation, d.Subresource = pick(d.r, []string{"CREATE", "DELETE"}), "status"
			}
		},
		finish: finishClaim,
	}
}

// unrestricted returns writes to which no rule applies.
func unrestricted() kind {
	return kind{
		name: "what no rule is about", weight: 4, outcome: Allowed,
		draw: func(d *draft) {
			resource := pick(d.r, []struct{ group, resource string }{
				{"", "events"},
				{"", "configmaps"},
				{"", "secrets"},
				{"", "namespaces"},
				{"authorization.k8s.io", "subjectaccessreviews"},
				{"authentication.k8s.io", "tokenreviews"},
				{"metrics.k8s.io", "pods"},
				{"metrics.k8s.io", "nodes"},
				{"apps", "deployments"},
				{"storage.k8s.io", "volumeattachments"},
				{"resource.k8s.io", "resourceclaims"},
				{"example.com", "leases"},
				{"certificates.k8s.io", "clustertrustbundles"},
				{"events.k8s.io", "events"},
				{"", "leases"},
				{"apps", "persistentvolumeclaims"},
			})
			d.about(d.anyOperation(), resource.group, resource.resource, pick(d.r, []string{"", "", "status"}),
				pick(d.r, d.state.Namespaces), pick(d.r, objectNames))
		},
		finish: func(d *draft) { d.Object, d.OldObject = unrelatedObject(d), unrelatedObject(d) },
	}
}
