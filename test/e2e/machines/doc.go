// Package machines starts a control plane and machines that join it with the bootstrap
// service.
//
// The control plane has the files of deploy/bootstrap: the custom resource, the rights,
// the admission policy, the config file, and several replicas of "node-authorizer server"
// with the service account of these files. The replicas follow Quarantines, with the
// files of deploy/containment. kube-controller-manager signs, and does not approve.
//
// A machine is an instance of a fake of AWS, with a metadata service and its own loopback
// address, from which it connects to the service. It runs the real "node-authorizer
// client" and then a kubelet that handles its certificates like a real one.
//
// README.md lists the test of each attack and each fault.
package machines
