// Package doctor examines the identities and rights of a cluster's nodes: how their AWS roles
// are mapped, under which usernames their kubelets authenticate, which rights are left from
// before nodes were restricted, and how the API servers authorize requests. It predicts what
// happens to a node, and says what to change.
//
// [Read] and [List] build a [Cluster] from files and from a live cluster, and [Cluster.Add]
// adds files to either. [Examine] runs every check on it. A check reads only the Cluster, so
// that it can be tested with a few lines of YAML. A check is undetermined if the Cluster lacks
// what it needs; [CheckResult] lists what is missing. The absence of findings is meaningful
// only if the check was made.
package doctor
