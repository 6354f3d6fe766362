package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/spf13/pflag"
)

// The values of flags, as help names them.
const (
	ValueFile      = "FILE"
	ValueName      = "NAME"
	ValueText      = "TEXT"
	ValueURL       = "URL"
	ValueDuration  = "DURATION"
	ValueNumber    = "NUMBER"
	ValueNode      = "NODE"
	ValueNamespace = "NAMESPACE"
	ValueAddress   = "ADDRESS"
)

// FlagValues are the names of values, by "command flag" or by flag.
var FlagValues = map[string]string{
	"snapshot output": ValueFile, "kubeadm output": ValueFile, "kubernetes-dir": ValueFile, "image": ValueName,
	"port": ValueNumber, "pki": ValueFile,
	"kubeadm for": ValueName, "attack-paths to": "HOLDING", "diff fail-on": "FINDING",

	"account": "NUMBER", "add": ValueFile, "allow": "WORDS", "as": "USER", "as-group": "GROUP", "as-uid": "ID", "audit-report": ValueFile,
	"compare-with":         ValueFile,
	"authorization-config": ValueFile, "authorization-timeout": ValueDuration, "authorizer": ValueName,
	"certificate-authority": ValueFile, "certificate-ttl": ValueDuration, "checks": "CHECKS", "client-certificate": ValueFile,
	"cert-dir": ValueFile, "key-file": ValueFile, "certificate-file": ValueFile,
	"client-common-name": ValueName, "credential": "KIND", "identity-token-file": ValueFile,
	"tpm-device": ValueFile, "tpm-event-log": ValueFile,
	"client-key": ValueFile, "cluster": ValueName, "cluster-id": "ID", "cluster-name": ValueName,
	"cluster-tag": "KEY", "config": ValueFile, "context": ValueName, "expect-ek": "HASH", "expect-key": "HASH",
	"collector-command": "COMMAND", "command": "COMMAND", "environment": "VARIABLE", "evidence": ValueFile,
	"other-evidence": ValueFile, "remote-address": ValueText,
	"external-id": "ID", "fail-on": "SEVERITY",
	"baseline": ValueFile, "write-baseline": ValueFile, "failure-policy": "POLICY", "server-user": "USER",
	"webhook-kubeconfig": ValueFile, "admit-url": ValueURL, "serviceaccount": "NAMESPACE/NAME", "audit": ValueFile, "mode": "MODE",
	"feature": ValueName, "feature-gates": "GATES", "field-selector": "SELECTOR", "filename": ValueFile,
	"for": ValueDuration, "from": ValueFile, "group": "GROUP", "interval": ValueDuration, "kind": "TYPE",
	"kubeapi-ca":  ValueFile,
	"kubeapi-url": ValueURL,
	"kubeconfig":  ValueFile, "kubernetes-version": "VERSION", "listen": ValueAddress, "max-paths": ValueNumber,
	"metrics-address": ValueAddress, "namespace": ValueNamespace, "node": ValueNode, "node-name": ValueName, "node-naming": "RULE",
	"node-url": ValueURL, "old-object": ValueFile, "output": "FORMAT",
	"pod": "NAMESPACE/NAME", "token-node": ValueNode,
	"part": "INDEX/COUNT", "partial": ValueFile, "password": ValueText, "profile": ValueName, "proxy-url": ValueURL,
	"reason": ValueText, "region": "REGION", "request-timeout": ValueDuration, "role": "ARN", "server": ValueURL,
	"session-name": ValueName, "subresource": ValueName, "techniques": ValueFile, "timeout": ValueDuration, "tls-cert": ValueFile,
	"tls-client-ca": ValueFile, "tls-private-key": ValueFile, "tls-server-name": ValueName, "to": ValueFile, "token": "TOKEN",
	"token-ttl": ValueDuration, "user": ValueName, "username": ValueName, "verbosity": ValueNumber,
	"watch-interval": ValueDuration, "with": ValueFile, "without": "KIND/NAME",
}

// namedValue is the value of a flag with a name for people instead of a type of Go.
type namedValue struct {
	pflag.Value
	name string
}

func (v namedValue) Type() string { return v.name }

// FlagValue is the name of a flag's value; empty for a flag without one.
func FlagValue(command string, f *pflag.Flag) string {
	if f.Value.Type() == "bool" {
		return ""
	}
	for _, key := range []string{command + " " + f.Name, f.Name} {
		if name, ok := FlagValues[key]; ok {
			return name
		}
	}
	return f.Value.Type()
}

// forHelp is a copy of a flag, as help shows it.
func forHelp(command string, f *pflag.Flag) *pflag.Flag {
	shown := *f
	if name := FlagValue(command, f); name != "" {
		shown.Value = namedValue{f.Value, name}
	}
	if slices.Contains([]string{"[]", "0", "0s"}, f.DefValue) {
		shown.DefValue = ""
	}
	return &shown
}

// Annotations: flagVariable is the environment variable of a flag. helpVariables and helpFiles are
// further variables and files of a command, a line "NAME: TEXT" for each.
const (
	FlagVariable  = "variable"
	HelpVariables = "variables"
	HelpFiles     = "files"
)

// NoteVariables notes the environment variables of flags, for the reference.
func NoteVariables(cmd *cobra.Command, names map[string]string) {
	for flag, variable := range names {
		Must(cmd.Flags().SetAnnotation(flag, FlagVariable, []string{variable}))
	}
}
