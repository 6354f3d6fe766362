// Package containmentserver runs "node-authorizer server" beside API servers that ask it about NodeScopes and
// Quarantines, before the Node authorizer and RBAC and in admission. The configuration of the API servers is
// what "node-authorizer scope authorization-config" prints.
package containmentserver
