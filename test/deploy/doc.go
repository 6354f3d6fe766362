// Package deploy checks what users install: the manifests of deploy, the chart,
// the alert rules and the dashboard, and what their documentation says of them.
//
// It renders with Helm and kustomize, decodes strictly into the API's types,
// compiles and evaluates the match conditions as the API server does, and
// compares the rights with what the server asks a cluster for, and the metrics
// with those that it serves. Nothing here needs a cluster; test/e2e applies the
// same files to one.
package deploy
