// Package mapped compares what node-authorizer makes of an aws-auth ConfigMap with
// what the mapper of aws-iam-authenticator makes of it.
package mapped
