// Package e2e tests node-authorizer on a real control plane with real kubelet
// code, started by localplane.
package e2e
