// Package policies tests admission policies on a real control plane: that attack paths know what the API
// server decides, and that the policies of NodeScopes refuse what they are for.
package policies
