package oidc

import (
	"slices"
	"strconv"
	"strings"
)

// googleIssuer is the issuer of the identity tokens of instances of Google Cloud
// (https://cloud.google.com/compute/docs/instances/verifying-instance-identity#payload).
const googleIssuer = "https://accounts.google.com"

// WithGoogle returns options for the instances of projects of Google Cloud, in zones; no zones: in all. The claims are in
// tokens of the format full. An instance's id is never used again.
func (o Options) WithGoogle(projects, zones []string) Options {
	const instance = "claims.google.compute_engine."
	o.IssuerURL = googleIssuer
	o.NodeName, o.InstanceID = instance+"instance_name", instance+"instance_id"
	o.ProviderID = "'gce://' + " + instance + "project_id + '/' + " + instance + "zone + '/' + " + instance + "instance_name"
	conditions := []Condition{{instance + "project_id in " + listOf(projects), "the instance is in a project whose instances may not join"}}
	if len(zones) > 0 {
		conditions = append(conditions, Condition{
			instance + "zone in " + listOf(zones), "the instance is in a zone whose instances may not join",
		})
	}
	o.Conditions = slices.Concat(o.Conditions, conditions)
	return o
}

// listOf is a list of texts in CEL. The texts have no characters that CEL and Go quote differently.
func listOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.QuoteToASCII(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
