// Package installed tests the manifests of deploy/bootstrap and deploy/containment on a real
// control plane. The tests show what the API server allows the service accounts, which objects of
// the custom resources it accepts, and what it refuses.
package installed
