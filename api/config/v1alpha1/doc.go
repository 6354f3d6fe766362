// Package v1alpha1 is the config file of the server: config.node-authorizer.io/v1alpha1,
// kind ServerConfiguration. It also has the files with which users add techniques to attack paths,
// kind Techniques: see [ParseTechniques].
//
// [Parse] reads YAML or JSON over the defaults, rejects unknown fields, and validates the
// result. It returns all mistakes at once, as [Problems]: the field, the line, what is
// wrong, and what to write instead. [Defaults] are the values of omitted fields.
// [Document] is the same as a file with an explanation of each field.
//
// The package does not read files, including those that a configuration names.
package v1alpha1
