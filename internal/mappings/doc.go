// Package mappings keeps the mappings of AWS callers to users as they are in files
// and in the cluster: in a file, in a ConfigMap such as kube-system/aws-auth, in
// the custom resource IAMIdentityMapping.
//
// All sources are followed. What becomes unreadable stays as it was when it was
// good last, key by key, and is reported; what is taken away, a whole ConfigMap
// too, is gone. A source that was not heard from for longer than a limit maps nobody:
// to ask it is an error. A caller is looked up in the sources in their order, and is not
// said to be unknown while a source that might know it has never been read: that
// is an error.
package mappings
