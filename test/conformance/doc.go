// Package conformance compares node-authorizer with the authorizers and the admission
// plugins of Kubernetes: it puts random clusters and random questions, generated from a
// seed, to both, and every difference is an error.
//
// If an in-tree answer depends on the history that led to a state, and not on the state
// alone, the state decides: the in-tree graph is built from the final state. The history
// tests apply the events that lead there to our graph, in many orders.
//
// Writes are sent to NodeRestriction in the same way, as function, as admission plugin
// and as webhook. A run fails if it does not cover each aim of a write, each refusal of
// the in-tree plugin and each of our codes, so that no rule can become untested
// unnoticed.
//
// Requests for kubelets' certificates are put to package approve and to the approver and
// the signers of kube-controller-manager, which must recognize and sign the requests that we approve.
//
// "go test" runs a part of it: one list of fixed seeds and one fresh seed, which it
// prints. The environment sets the size of a run:
//
//	CONFORMANCE           "full": 200 clusters, 5000 questions about each,
//	                      3000 writes to each;
//	                      "minors": that for the older minors too, each against
//	                      an oracle process linked with that minor, and the
//	                      table of differences docs/evidence/kubernetes-versions.md
//	CONFORMANCE_CLUSTERS  clusters, instead of 60 or 200
//	CONFORMANCE_REQUESTS  questions for each cluster, instead of 2000 or 5000
//	CONFORMANCE_WRITES    writes to each of as many states, instead of 1000 or
//	                      3000; older minors get a quarter
//	CONFORMANCE_SEED      the fresh seed, to repeat a run
//	CONFORMANCE_MINORS    "1.30,1.34": some of the older minors only, without
//	                      the table
//
// Every feature gate is also tested alone, in both positions, with all others at their
// defaults: for the newest minor in each run, for the older ones in the runs for them.
//
// This is a separate module because it needs k8s.io/kubernetes, which is not meant to be
// imported.
package conformance
