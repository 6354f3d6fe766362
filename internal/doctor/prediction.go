package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Value is whether something will work.
type Value string

// The values of an outcome.
const (
	Yes     Value = "yes"
	No      Value = "no"
	Unknown Value = "unknown"
)

// Outcome is whether something will work for a node, and why.
type Outcome struct {
	// Value says whether it will work.
	Value Value `json:"value"`
	// Why is the reason in one line.
	Why string `json:"why"`
}

// RolePrediction predicts what happens to a node that uses a mapped AWS role.
type RolePrediction struct {
	// Purpose is the purpose of the role, as far as it is known.
	Purpose Purpose `json:"purpose"`
	// ARN is the mapped AWS principal, and Username and Groups are what the mapping gives, with its
	// templates.
	ARN      string   `json:"arn"`
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
	// Source is the name of the mapping's source, and Place its place there.
	Source string        `json:"source"`
	Place  finding.Place `json:"place"`
	// Node is the node of the prediction: a node of the cluster if Seen is true, and otherwise a
	// typical AWS node.
	Node string `json:"node"`
	Seen bool   `json:"seen"`
	// User is the username of that node's kubelet; empty if authentication fails.
	User string `json:"user,omitempty"`
	// Registers is whether its kubelet can create its Node object, Ready whether it can keep
	// the node's status and Lease, and Serving whether its serving certificate will be
	// approved, so that logs, exec and port-forward work.
	Registers Outcome `json:"registers"`
	Ready     Outcome `json:"ready"`
	Serving   Outcome `json:"serving"`
	// NodeIdentity is true if the Node authorizer and NodeRestriction recognize the user as that
	// node.
	NodeIdentity bool `json:"nodeIdentity"`
	// ClusterAdmin is whether the user may do everything.
	ClusterAdmin bool `json:"clusterAdmin"`
	// Authenticator is the program whose interpretation of the entry is predicted.
	Authenticator string `json:"authenticator"`
	// NodeAuthorizer is set if node-authorizer as the authenticator would refuse the role's nodes
	// because of an unusable entry: [No], or [Unknown] if that depends on the order of sources.
	NodeAuthorizer Outcome `json:"nodeAuthorizer,omitzero"`

	// kubelet is the user with all groups.
	kubelet kubelet
}

// Works reports whether everything works for the node, and it authenticates as that node.
func (f *RolePrediction) Works() bool {
	return f.Registers.Value == Yes && f.Ready.Value == Yes && f.Serving.Value == Yes
}

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
	case used, strings.HasPrefix(username, nodeidentity.UserPrefix), strings.Contains(username, iam.PlaceholderPrivateDNSName),
		slices.Contains(groups, nodeidentity.Group), slices.Contains(groups, groupBootstrappers),
		soundsLikeNodes(name), soundsLikeNodes(strings.ToLower(username)):
		return ForNodes
	}
	return ForOthers
}

// soundsLikeNodes reports whether a name has a word that users, kops and eksctl use in roles of
// nodes: "eksctl-shop-nodegroup-a-NodeInstanceRole-1ABC", "nodes.k8s.example.com".
func soundsLikeNodes(name string) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-_./:@{}", r) })
	return strings.Contains(name, "worker") || strings.Contains(name, "nodeinstancerole") || strings.Contains(name, "nodegroup") ||
		slices.ContainsFunc(words, func(word string) bool {
			return word == "node" || word == "nodes" || word == "kubelet" || strings.HasSuffix(word, "noderole") ||
				strings.HasPrefix(word, "noderole")
		})
}

// roleName returns the last part of the ARN of a role.
func roleName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// sample is a node for predictions: a node of the cluster, or a typical AWS node.
type sample struct {
	// name is the name of its Node.
	name string
	// session is the name of its STS session: the instance id, or the name of the node on Fargate
	// and outside of AWS.
	session string
	// dns is its private DNS name; empty outside of AWS.
	dns string
	// kind is the purpose of the roles that it can use.
	kind Purpose
	// seen is true for a node of the cluster.
	seen bool
}

const (
	sampleInstance = "i-0123456789abcdef0"
	sampleRegion   = "eu-west-1"
	// machinePrefix begins the id that Systems Manager gives a machine outside of AWS,
	// which its node is called unless it has a name of its own.
	machinePrefix = "mi-"
	sampleMachine = machinePrefix + "0123456789abcdef0"
	fargatePrefix = "fargate-"
	// hybridPrefix begins the provider id of a hybrid node:
	// "eks-hybrid:///REGION/CLUSTER/NODE". Its session with STS is called like the node.
	//
	// Source: https://docs.aws.amazon.com/eks/latest/userguide/hybrid-nodes-creds.html
	hybridPrefix = "eks-hybrid://"
)

// awsNode returns a node of AWS, or a hybrid one, as a sample; false for others.
func awsNode(n *Node) (sample, bool) {
	s := sample{name: n.Name, session: n.Name, kind: ForHybrid, seen: true}
	if strings.HasPrefix(n.ProviderID, hybridPrefix) {
		return s, true
	}
	path, ok := strings.CutPrefix(n.ProviderID, "aws://")
	if !ok {
		return sample{}, false
	}
	s.session, s.dns, s.kind = path[strings.LastIndexByte(path, '/')+1:], n.Name, ForNodes
	for _, a := range n.Addresses {
		if a.Type == corev1.NodeInternalDNS {
			s.dns = strings.ToLower(a.Address)
			break
		}
	}
	if strings.HasPrefix(s.session, fargatePrefix) {
		s.kind = ForFargate
	}
	return s, true
}

// regionOf returns the region of a node, by its label or its provider id: "aws:///eu-west-1a/i-…"; empty if unknown.
func regionOf(n *Node) string {
	if region := n.Labels[corev1.LabelTopologyRegion]; region != "" {
		return region
	}
	path, hybrid := strings.CutPrefix(n.ProviderID, hybridPrefix)
	zone, _, found := strings.Cut(strings.TrimLeft(strings.TrimPrefix(path, "aws://"), "/"), "/")
	switch {
	case !found:
		return ""
	case hybrid:
		return zone // it is a region there
	}
	return strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz")
}

func madeUp(region string, kind Purpose) sample {
	region = cmp.Or(region, sampleRegion)
	name := "ip-10-0-0-1." + region + ".compute.internal"
	if region == "us-east-1" {
		name = "ip-10-0-0-1.ec2.internal"
	}
	switch kind {
	case ForFargate:
		name = fargatePrefix + name
		return sample{name: name, session: name, dns: name, kind: kind}
	case ForHybrid:
		return sample{name: sampleMachine, session: sampleMachine, kind: kind}
	}
	return sample{name: name, session: sampleInstance, dns: name, kind: ForNodes}
}

// fill replaces the placeholders in a text like aws-iam-authenticator, which keeps unknown
// placeholders.
func (s sample) fill(text, account string) (string, error) {
	for _, placeholder := range iam.Placeholders() {
		token := "{{" + placeholder + "}}"
		if !strings.Contains(text, token) {
			continue
		}
		value, err := s.value(placeholder, account)
		if err != nil {
			return "", err
		}
		text = strings.ReplaceAll(text, token, value)
	}
	return text, nil
}

func (s sample) value(placeholder, account string) (string, error) {
	switch placeholder {
	case iam.PlaceholderPrivateDNSName:
		if s.kind == ForNodes {
			return s.dns, nil
		}
		whose := "Fargate pod"
		if s.kind == ForHybrid {
			whose = "hybrid node"
		}
		return "", fmt.Errorf("the session of a %s is not called after an instance, so that there is no private DNS name to look up", whose)
	case iam.PlaceholderAccountID:
		return account, nil
	case iam.PlaceholderSessionName, iam.PlaceholderSessionNameRaw:
		return s.session, nil
	}
	return "AKIAIOSFODNN7EXAMPLE", nil
}
