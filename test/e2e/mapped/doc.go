// Package mapped compares how node-authorizer and the mapper of aws-iam-authenticator
// interpret an aws-auth ConfigMap.
package mapped
