// Package installed tests the manifests of deploy/bootstrap on a real control plane.
// The tests show what the API server allows the service account, and what it refuses.
package installed
