// Package server runs "node-authorizer server" with a control plane of localplane: its
// folder, ports, certificates, kubeconfig and config file, the process with its log, and
// its health and metrics endpoints. Other packages configure what it serves.
package server
