// Package stale takes servers away from their API server, in each way in which that
// happens, and measures for how long they answer from what they knew, when they say
// that they are not ready, and when they recover.
//
// Each fault has a server, a node and a pod of its own, and all of them go on at once,
// on two control planes: one whose API server works, and one that is stopped and whose
// store is then taken back to an earlier state.
package stale
