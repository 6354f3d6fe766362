// Package deploy checks what users install: the manifests of deploy, the chart, the alert
// rules and the dashboard, and their documentation.
//
// It renders with Helm and kustomize, decodes strictly into the API's types, compiles and
// evaluates the match conditions like the API server, and compares the rights with the
// requests of the server, and the metrics with those that it serves. It needs no cluster;
// test/e2e applies the same files to one.
package deploy
