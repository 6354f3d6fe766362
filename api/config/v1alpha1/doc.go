// Package v1alpha1 is the config file of the server: config.node-authorizer.io/v1alpha1,
// kind ServerConfiguration.
//
// [Parse] is the way in: it reads YAML or JSON over the defaults, refuses what
// it does not know, and checks what it read. It returns all mistakes at once, as
// [Problems]: the field, the line, what is wrong, and what to write instead.
// [Defaults] are the values of what a file leaves out, and [Document] is the
// same as a file with an explanation of each field.
//
// The package neither reads files nor looks at the ones that a configuration
// names.
package v1alpha1
