// Package policies tests admission policies on a real control plane: that attack paths predict the decisions of
// the API server, and that the policies of NodeScopes refuse the writes that they are for.
package policies
