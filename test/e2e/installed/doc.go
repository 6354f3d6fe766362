// Package installed has tests of what users install so that machines can join:
// the manifests of deploy/bootstrap, applied to a real control plane. They show
// what the API server lets the service account do with them, and what not.
package installed
