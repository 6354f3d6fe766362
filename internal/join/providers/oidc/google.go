package oidc

import (
	"slices"
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// googleIssuer is the issuer of the identity tokens of instances of Google Cloud
// (https://cloud.google.com/compute/docs/instances/verifying-instance-identity#payload).
const googleIssuer = "https://accounts.google.com"

// google sets the options for the instances of projects of Google Cloud, in zones; no zones: in all. The claims are in
// tokens of the format full. An instance's id is never used again.
func (o *Options) google() {
	const instance = "claims.google.compute_engine."
	o.IssuerURL = googleIssuer
	o.NodeName, o.InstanceID = instance+"instance_name", instance+"instance_id"
	o.ProviderID = "'gce://' + " + instance + "project_id + '/' + " + instance + "zone + '/' + " + instance + "instance_name"
	conditions := []v1alpha1.OIDCCondition{{
		Expression: instance + "project_id in " + listOf(o.Google.Projects),
		Message:    "the instance is in a project whose instances may not join",
	}}
	if len(o.Google.Zones) > 0 {
		conditions = append(conditions, v1alpha1.OIDCCondition{
			Expression: instance + "zone in " + listOf(o.Google.Zones), Message: "the instance is in a zone whose instances may not join",
		})
	}
	o.Conditions = slices.Concat(o.Conditions, conditions)
}

// listOf is a list of texts in CEL. The texts have no characters that CEL and Go quote differently.
func listOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.QuoteToASCII(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
