// Package mappings follows the mappings of AWS callers to users: in a file, in a ConfigMap
// such as kube-system/aws-auth, and in the custom resource IAMIdentityMapping.
//
// All sources are followed. A key that becomes unreadable keeps its last valid mappings,
// and is reported. Mappings that are deleted are gone, and so are all mappings
// of a deleted ConfigMap. A look-up in a source that is too old is an error. A look-up tries the
// sources in order. It is an error, not a missing mapping, while a source has never been
// read.
package mappings
