// Package deploy has the files of this folder that commands install, so that a command and a person install the same.
package deploy

import "embed"

// Files has the static pod with what kube-apiserver needs for it, the rights of the server, and the custom resources
// of NodeScopes and Quarantines. Texts in capitals, such as IMAGE, are replaced before use.
//
//go:embed static-pod rbac containment
var Files embed.FS
