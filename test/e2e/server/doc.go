// Package server runs "node-authorizer server" beside a control plane of localplane:
// its folder, ports, certificates, kubeconfig and config file, the process with its
// log, and what the server answers about itself. What a server serves, and what is
// between it and kube-apiserver, is the business of the packages that use this one.
package server
