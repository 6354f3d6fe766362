package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/spf13/pflag"
)

// The values of flags, as help names them.
const (
	valueFile      = "FILE"
	valueName      = "NAME"
	valueText      = "TEXT"
	valueURL       = "URL"
	valueDuration  = "DURATION"
	valueNumber    = "NUMBER"
	valueNode      = "NODE"
	valueNamespace = "NAMESPACE"
	valueAddress   = "ADDRESS"
)

// flagValues are the names of values, by "command flag" or by flag.
var flagValues = map[string]string{
	"snapshot output": valueFile, "attack-paths to": "HOLDING", "diff fail-on": "FINDING",

	"account": "NUMBER", "add": valueFile, "allow": "WORDS", "as": "USER", "as-group": "GROUP", "audit-report": valueFile,
	"authorization-config": valueFile, "authorization-timeout": valueDuration, "authorizer": valueName,
	"certificate-authority": valueFile, "certificate-ttl": valueDuration, "checks": "CHECKS", "client-certificate": valueFile,
	"client-common-name": valueName, "client-key": valueFile, "cluster": valueName, "cluster-id": "ID", "cluster-name": valueName,
	"cluster-tag": "KEY", "config": valueFile, "context": valueName, "external-id": "ID", "fail-on": "SEVERITY",
	"baseline": valueFile, "write-baseline": valueFile, "failure-policy": "POLICY", "server-user": "USER",
	"webhook-kubeconfig": valueFile, "admit-url": valueURL, "serviceaccount": "NAMESPACE/NAME", "audit": valueFile, "mode": "MODE",
	"feature": valueName, "feature-gates": "GATES", "field-selector": "SELECTOR", "filename": valueFile,
	"for": valueDuration, "from": valueFile, "group": "GROUP", "interval": valueDuration, "kind": "TYPE",
	"kubeapi-ca":  valueFile,
	"kubeapi-url": valueURL,
	"kubeconfig":  valueFile, "kubernetes-version": "VERSION", "listen": valueAddress, "max-paths": valueNumber,
	"metrics-address": valueAddress, "namespace": valueNamespace, "node": valueNode, "node-name": valueName, "node-naming": "RULE",
	"node-url": valueURL, "old-object": valueFile, "output": "FORMAT",
	"pod": "NAMESPACE/NAME", "token-node": valueNode,
	"part": "INDEX/COUNT", "partial": valueFile, "password": valueText, "profile": valueName, "proxy-url": valueURL,
	"reason": valueText, "region": "REGION", "request-timeout": valueDuration, "role": "ARN", "server": valueURL,
	"session-name": valueName, "subresource": valueName, "techniques": valueFile, "timeout": valueDuration, "tls-cert": valueFile,
	"tls-client-ca": valueFile, "tls-private-key": valueFile, "tls-server-name": valueName, "to": valueFile, "token": "TOKEN",
	"token-ttl": valueDuration, "user": valueName, "username": valueName, "verbosity": valueNumber, "with": valueFile,
	"without": "KIND/NAME",
}

// namedValue is the value of a flag with a name for people instead of a type of Go.
type namedValue struct {
	pflag.Value
	name string
}

// Type implements pflag.Value.
func (v namedValue) Type() string { return v.name }

// flagValue is the name of a flag's value; empty for a flag without one.
func flagValue(command string, f *pflag.Flag) string {
	if f.Value.Type() == "bool" {
		return ""
	}
	for _, key := range []string{command + " " + f.Name, f.Name} {
		if name, ok := flagValues[key]; ok {
			return name
		}
	}
	return f.Value.Type()
}

// forHelp is a copy of a flag, as help shows it.
func forHelp(command string, f *pflag.Flag) *pflag.Flag {
	shown := *f
	if name := flagValue(command, f); name != "" {
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
	flagVariable  = "variable"
	helpVariables = "variables"
	helpFiles     = "files"
)

// noteVariables notes the environment variables of flags, for the reference.
func noteVariables(cmd *cobra.Command, names map[string]string) {
	for flag, variable := range names {
		must(cmd.Flags().SetAnnotation(flag, flagVariable, []string{variable}))
	}
}
