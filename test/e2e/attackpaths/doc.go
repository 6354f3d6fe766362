// Package attackpaths carries out attack paths on a real control plane.
//
// A case is a set of objects and a start. The test reads the cluster as the command does, takes
// the engine's result, and carries out the path to each certain holding with real requests. It
// begins with the start's credential alone. Each step gives the next credential or content, and
// the end shows the holding. Holdings that are not in the result are then attempted by each technique, with
// each identity that was reached, and has to be refused.
//
// The nodes web-1 and pay-1 have hollow kubelets: real code with a fake container runtime. Their
// certificates are those on their disks. Hollow kubelets write no volumes, and other nodes of
// cases have no kubelet. So the files and variables of a pod's containers come from the request that a kubelet
// makes for it, with the node's credential: the token of a pod by a TokenRequest bound to the
// pod, a secret by a get. README.md says where each technique ends.
//
// The executor knows the objects that it changes, because an update without a right to read has
// to contain the whole object. It reads them as administrator.
//
// The tests run on Kubernetes 1.37, and for techniques that changed with the minor on an API
// server of 1.37 that emulates 1.34.
package attackpaths
