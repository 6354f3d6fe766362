// Package e2e tests node-authorizer on real control planes with real kubelet
// code, started by localplane.
//
// Two planes run beside each other, with the same workload: one with the in-tree
// Node authorizer and NodeRestriction, the other with node-authorizer server in
// their place, installed from the files in deploy/. On them it is shown that
//
//   - can-i answers what the in-tree API server does,
//   - nodes join, live, and run what the examples run, by what the server allows,
//   - a stolen kubelet certificate gets from both planes the same answers
//     (package attack, which writes docs/attack-matrix.md),
//   - RBAC can grant nodes audiences,
//   - no kubelet is refused because it is faster than the server's watches, and
//   - whatever breaks, nothing is allowed that should not be, no node is lost
//     while one server lives, and everything recovers by itself.
//
// Package machines does the same for machines that join. Package server runs the
// servers of all these tests.
package e2e
