// Package machines starts a control plane that machines join by themselves, and
// the machines.
//
// The control plane runs what users get from deploy/bootstrap: the custom
// resource, the rights, the admission policy, the config file, and as many
// replicas of "node-authorizer server" with the service account of these files.
// kube-controller-manager signs, and approves nothing.
//
// A machine is an instance of a fake of AWS, with a metadata service and a
// loopback address of its own, from which it speaks to the service. It runs the
// real "node-authorizer client" and then a kubelet that handles its certificates
// as a real one.
//
// README.md says which test shows what, attack by attack.
package machines
