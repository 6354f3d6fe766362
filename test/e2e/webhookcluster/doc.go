// Package webhookcluster starts a control plane whose kube-apiserver has neither the Node
// authorizer nor NodeRestriction. It calls the webhooks of node-authorizer for both,
// which several replicas serve behind one address. All files of kube-apiserver and of the
// servers come from deploy/static-pod, with other addresses and folders. For Quarantines, files of
// deploy/containment are added, and kube-apiserver sends more requests.
package webhookcluster
