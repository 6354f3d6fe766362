// Package setup guards two control plane nodes with "node-authorizer setup kubeadm", observes, replaces the in-tree parts,
// and undoes all of it, while nodes send requests. kube-apiserver and the server run from exactly the files that the
// command writes: a kubelet for static pods (kubelet) starts what is in the folder of manifests, and starts it again when a
// manifest changes. The nodes share this machine and its store, so connections to the server's ports go to the server of the
// node whose process made them (network).
package setup
