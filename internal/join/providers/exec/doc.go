// Package exec is the provider for machines whose evidence is checked by a program of somebody else:
// a cloud or a company for which node-authorizer has no provider.
//
// The server runs one program, the machine another, or the same. A program gets one JSON document on
// standard input and writes one to standard output; package v1alpha1 has their types. It keeps
// nothing: what it needs in the next round of evidence is sealed into the challenge for the machine.
//
// A program that fails, is too slow or writes something else has not decided: the machine asks again.
// Only a document with a refusal refuses.
//
// The [Collector] is the machine's half, the [Attestor] the server's.
package exec
