// Package scopewebhooks writes the configuration with which an API server asks this server about
// the accounts of NodeScopes, and about quarantines: an AuthorizationConfiguration and a
// MutatingWebhookConfiguration.
//
// Match conditions send only the requests concerned. They are expressions in CEL, which an API
// server evaluates for every request, and which have a largest size. [Options.Selection] says how
// exactly they select: by account, by namespace, or all service accounts. A selection that is
// wider than the scopes changes no answer: the server has no opinion about other accounts.
package scopewebhooks
