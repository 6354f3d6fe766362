// Package conformance compares node-authorizer with the authorizers and the
// admission plugins of Kubernetes itself: random clusters and random questions,
// generated from a seed, are put to both, and every difference is an error.
//
// Where an in-tree answer depends on the history that led to a state, and not
// on the state alone, the state decides: the in-tree graph is built from the
// final state. The history tests put our graph through the events that lead
// there, in many orders.
//
// Writes are put to NodeRestriction in the same way, as function, as admission
// plugin and as webhook. A write that the tests know by its aim, a refusal of the
// in-tree plugin and a code of ours that a run does not cover fail the run, so that
// no rule can stop being tested unnoticed.
//
// Requests for kubelets' certificates are put to package approve and to the
// approver and the signers of kube-controller-manager: what we approve, they
// recognize and sign.
//
// "go test" runs a budget of it: one list of fixed seeds and one fresh seed,
// which it prints. The environment sizes a run:
//
//	CONFORMANCE           "full": 200 clusters, 5000 questions about each,
//	                      3000 writes to each;
//	                      "minors": that for the older minors too, each against
//	                      an oracle process linked with that minor, and the
//	                      table of differences docs/kubernetes-versions.md
//	CONFORMANCE_CLUSTERS  clusters, instead of 60 or 200
//	CONFORMANCE_REQUESTS  questions for each cluster, instead of 2000 or 5000
//	CONFORMANCE_WRITES    writes to each of as many states, instead of 1000 or
//	                      3000; older minors get a quarter
//	CONFORMANCE_SEED      the fresh seed, to repeat a run
//	CONFORMANCE_MINORS    "1.30,1.34": some of the older minors only, without
//	                      the table
//
// Every feature gate is also tested by itself, in both positions, with all others at
// their defaults: for the newest minor in each run, for the older ones in the runs
// that are for them.
//
// The module is apart from the rest of the project because it needs
// k8s.io/kubernetes, which is not made to be imported.
package conformance
