package chain

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of the authorizers in this package. The codes of the Node authorizer are in
// nodeauthz. See docs/reference/reasons.
const (
	// CodeBindingAllows: a rule of a role that is bound to the user allows it.
	CodeBindingAllows verdict.Code = "BindingAllows"
	// CodeNoBindingAllows: no role that is bound to the user allows it.
	CodeNoBindingAllows verdict.Code = "NoBindingAllows"
	// CodePrivilegedGroup: the user is in system:masters.
	CodePrivilegedGroup verdict.Code = "PrivilegedGroup"
	// CodeNotPrivileged: the user is not in system:masters.
	CodeNotPrivileged verdict.Code = "NotPrivileged"
	// CodeEverythingAllowed: AlwaysAllow was asked.
	CodeEverythingAllowed verdict.Code = "EverythingAllowed"
	// CodeNothingAllowed: AlwaysDeny was asked.
	CodeNothingAllowed verdict.Code = "NothingAllowed"
	// CodeWebhookAllows: a webhook allows it.
	CodeWebhookAllows verdict.Code = "WebhookAllows"
	// CodeWebhookDenies: a webhook denies it.
	CodeWebhookDenies verdict.Code = "WebhookDenies"
	// CodeWebhookNoOpinion: a webhook neither allows nor denies it.
	CodeWebhookNoOpinion verdict.Code = "WebhookNoOpinion"
	// CodeWebhookNotAsked: a match condition of the webhook is false.
	CodeWebhookNotAsked verdict.Code = "WebhookNotAsked"
	// CodeWebhookFailed: a webhook could not be reached, or its answer is invalid.
	CodeWebhookFailed verdict.Code = "WebhookFailed"
)

// Names of the authorizers that are not webhooks: their types in an API server's
// configuration. Webhooks have their configured names. An API server asks the authorizers of
// Quarantines and of NodeScopes through a webhook.
const (
	NameMasters     = "system:masters"
	NameQuarantine  = "Quarantine"
	NameNodeScope   = "NodeScope"
	NameNode        = "Node"
	NameRBAC        = "RBAC"
	NameAlwaysAllow = "AlwaysAllow"
	NameAlwaysDeny  = "AlwaysDeny"
)
