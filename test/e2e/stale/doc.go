// Package stale disconnects servers from their API server in several ways. It measures
// how long they answer from their copy of the state, when they become not ready, and when
// they recover.
//
// Each fault has a server, a node and a pod of its own. All faults run at the same time,
// on three control planes: one whose API server works, one whose API server is stopped
// and whose store is then restored to an earlier state, and one whose store is restored while
// a second API server keeps running.
package stale
