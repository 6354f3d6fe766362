// Package policies compares on a real control plane what attack paths say that an admission policy
// decides with what the API server does.
package policies
