// Package minors keeps one oracle per older Kubernetes minor: a program linked
// with that minor's in-tree Node authorizer, each in a module of its own under
// v1.NN. See the package protocol for what they speak.
//
// oracle.go.txt is the part that all oracles share word for word; go generate
// copies it into each of them. version.go is what differs. After a change of
// either, the oracles are built anew by the next "make conformance-minors".
package minors

//go:generate go run copy.go
