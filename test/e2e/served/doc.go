// Package served starts a control plane whose kube-apiserver has neither the
// Node authorizer nor NodeRestriction but asks "node-authorizer server", as two
// processes behind one address, for both. Every file that kube-apiserver and the
// server read is the one that deploy/static-pod gives to users, with other
// addresses and folders.
package served
