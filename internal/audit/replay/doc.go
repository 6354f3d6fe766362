// Package replay evaluates the requests of kubelets in an audit log. It reports which
// allowed requests would be refused, which requests were refused and why, and which
// kubelets do not authenticate as their node.
//
// The log shows which users are kubelets. A user with the name of a node in the group
// system:nodes conforms. These users are kubelets that do not conform: a user in the group
// without the name of a node, a user with such a name outside of the group, a user whose
// user agent is a kubelet, and a user that writes the status of a Node or renews its Lease.
// A user with a bootstrap token is bootstrapping. All other users are skipped. An
// impersonated request belongs to the impersonated user.
//
// The path of a request says what it requests, as authorizers see it. The logged object is
// used only if the path is missing.
//
// The evaluators answer from one state of the cluster, which may differ from the state at
// the time of the log. Refusals that could be caused by deleted objects are marked. Writes
// are counted as not examined if the log lacks what a rule reads.
//
// Parts of a log can be evaluated apart: a [Merger] adds their partial reports up.
package replay
