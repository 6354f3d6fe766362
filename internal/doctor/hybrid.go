package doctor

import (
	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
)

// hybrid checks a role of EKS Hybrid Nodes, which are machines outside of AWS whose sessions have
// the names of nodes.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/hybrid-nodes-cluster-prep.html
func (r *roleCheck) hybrid() {
	template, err := iam.ParseTemplate(r.predicted.Username)
	if err != nil {
		return // found as it was read
	}
	if template.Uses(iam.PlaceholderPrivateDNSName) {
		severity := finding.Error
		if !r.predicted.Seen {
			severity = finding.Warning // its name alone says what it is for
		}
		r.say(HybridUsername, severity, "username",
			"a role of hybrid nodes has the username of EC2 instances", r.predicted.summary(),
			"if machines outside of EC2 use the role, write username: "+sessionUsername+"; instances need a role and an entry of their own")
		return
	}
	if r.predicted.User == "" {
		return
	}
	r.username()
	r.rights()
	if r.predicted.NodeIdentity && template.UsesSession() {
		r.say(HybridSessionName, finding.Info, "username",
			"the name of a node is that of its session, which whoever may assume the role chooses, as EKS Hybrid Nodes want it",
			"a principal that may assume the role under any name can be any node of the cluster, instances among them",
			"keep the username, and look at the role's trust policy: it has to name ssm.amazonaws.com, "+
				"which calls the session after the machine, "+
				"or rolesanywhere.amazonaws.com with the condition that "+
				"sts:RoleSessionName is ${aws:PrincipalTag/x509Subject/CN}, and nobody else")
	}
}
