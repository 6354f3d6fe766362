package attackpaths_test

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// answered is that the answer to some request has an object in it: to a get, list or watch, to a patch, which may
// be empty, and to a deletion, which may be a dry run.
func (n *naive) answered(other map[admissionv1.OperationType][]string, guarded func(admissionv1.OperationType) bool, asks []ask) fact {
	with := func(verbs []string) fact {
		all := slices.Clone(asks)
		for i := range all {
			all[i].verbs = verbs
		}
		return n.right(all...)
	}
	f := fact{"answer", "", fmt.Sprint(asks)}
	if _, known := n.facts[f]; known {
		return f
	}
	n.step(0, false, f, with(reading))
	for operation, verbs := range other {
		n.step(0, guarded(operation), f, with(verbs))
	}
	return f
}

// readsSecrets is that one of some secrets is read.
func (n *naive) readsSecrets(ns string, asks ...ask) fact {
	return n.answered(map[admissionv1.OperationType][]string{admissionv1.Update: patching, admissionv1.Delete: deleting},
		func(o admissionv1.OperationType) bool { return n.guarded(o, "", "secrets", "", ns) }, asks)
}

// readsRequest is that a request for a certificate of some name is read. An update answers with it too: its author
// knows what it has to contain.
func (n *naive) readsRequest(name string) fact {
	a := ask{group: certificatesGroup, resource: "certificatesigningrequests", name: name}
	f := n.answered(map[admissionv1.OperationType][]string{admissionv1.Update: changing, admissionv1.Delete: deleting},
		func(o admissionv1.OperationType) bool { return n.guarded(o, a.group, a.resource, "", "") }, []ask{a})
	for _, sub := range []string{"approval", "status"} {
		a.verbs, a.sub = verbs("get"), sub
		n.step(0, false, f, n.right(a))
	}
	a.verbs, a.sub = patching, "status" // an update needs the certificate
	n.step(0, n.guarded(admissionv1.Update, a.group, a.resource, "status", ""), f, n.right(a))
	return f
}
