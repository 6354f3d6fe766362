// Package e2e tests node-authorizer on real control planes with real kubelet
// code, started by localplane.
//
// Two planes run beside each other, with the same workload: one with the in-tree
// Node authorizer and NodeRestriction, the other with node-authorizer server in
// their place, installed from the files in deploy/. The tests show that
//
//   - can-i answers what the in-tree API server does,
//   - nodes join, stay ready and run the workloads of the examples with what the
//     server allows,
//   - both planes give the same answers to a stolen kubelet certificate (package
//     attack, which writes docs/evidence/attack-matrix),
//   - RBAC can grant nodes audiences,
//   - a quarantined node is cut off with the tokens of its pods, and works again after it is
//     released,
//   - no kubelet is refused because the server's watches are slower than its own, and
//   - during each fault nothing is allowed that must be refused, no node is lost
//     while one server runs, and everything recovers by itself.
//
// Package machines does the same for machines that join. Package server runs the
// servers of all these tests.
package e2e
