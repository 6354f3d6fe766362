// Package doctor examines what a cluster says of its nodes' identities and rights:
// how their AWS roles are mapped, what names their kubelets go by, what was left over
// from before they were restricted, and how the API server decides. It says what will
// happen to a node, and what to change.
//
// [Read] and [List] make a [Cluster] of files and of a live cluster, and [Cluster.Add]
// adds files to either. [Examine] makes every check on it. A check sees nothing but the
// Cluster, so that what it says can be tested with a few lines of YAML; a check that
// needs what the Cluster does not show is undetermined, and [CheckResult] says what that
// is. That a check found nothing means something only if it was made.
package doctor
