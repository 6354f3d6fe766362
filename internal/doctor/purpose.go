package doctor

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Purpose is the purpose of a role, as far as it is known.
type Purpose string

// The purposes.
const (
	// ForNodes is for EC2 instances, ForFargate for Fargate pods, each of which is a node.
	ForNodes   Purpose = "nodes"
	ForFargate Purpose = "fargate"
	// ForHybrid is for machines outside of AWS: EKS Hybrid Nodes.
	ForHybrid Purpose = "hybrid"
	// ForOthers is for people and programs.
	ForOthers Purpose = "others"
	// NotKnown is for roles without an indication, in a cluster without any role for nodes.
	NotKnown Purpose = "unknown"
)

// makesNodes reports whether the role is for nodes of some kind.
func (p Purpose) makesNodes() bool { return p == ForNodes || p == ForFargate || p == ForHybrid }

const groupNodeProxier = "system:node-proxier"

// purposeOf guesses the purpose of a role. If used is true, kubelets are known to use it.
func purposeOf(arn, username string, groups []string, used bool) Purpose {
	name := strings.ToLower(roleName(arn))
	switch {
	case strings.Contains(name, "fargate"):
		return ForFargate
	case slices.Contains(groups, groupNodeProxier) && !strings.Contains(username, iam.PlaceholderPrivateDNSName):
		return ForFargate
	case used, strings.HasPrefix(username, nodeidentity.UserPrefix), strings.Contains(username, iam.PlaceholderPrivateDNSName):
		return ForNodes
	case slices.Contains(groups, nodeidentity.Group), slices.Contains(groups, groupBootstrappers):
		return ForNodes
	case soundsLikeNodes(name), soundsLikeNodes(strings.ToLower(username)):
		return ForNodes
	}
	return ForOthers
}

// soundsLikeNodes reports whether a name has a word that users, kops and eksctl use in roles of
// nodes: "eksctl-shop-nodegroup-a-NodeInstanceRole-1ABC", "nodes.k8s.example.com".
func soundsLikeNodes(name string) bool {
	return strings.Contains(name, "worker") || strings.Contains(name, "nodeinstancerole") || strings.Contains(name, "nodegroup") ||
		slices.ContainsFunc(strings.FieldsFunc(name, isSeparator), func(word string) bool {
			return word == "node" || word == "nodes" || word == "kubelet" || strings.HasSuffix(word, "noderole") ||
				strings.HasPrefix(word, "noderole")
		})
}

func isSeparator(r rune) bool { return strings.ContainsRune("-_./:@{}", r) }

// roleName returns the last part of the ARN of a role.
func roleName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
