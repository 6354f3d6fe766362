// Package minors keeps one oracle per older Kubernetes minor: a program linked
// with that minor's in-tree Node authorizer and NodeRestriction, each in a module
// of its own under v1.NN. See the package protocol for what they speak.
//
// oracle.go.txt and restriction.go.txt are the parts that all oracles share word
// for word; go generate copies them into each. version.go is what differs. After
// a change of any, the oracles are built anew by the next "make conformance-minors".
package minors

//go:generate go run copy.go
