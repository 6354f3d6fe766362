package doctor

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/iam"
)

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
	// windows is true if it runs Windows, ready if its Node is Ready.
	windows, ready bool
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
	s := sample{
		name: n.Name, session: n.Name, kind: ForHybrid, seen: true,
		windows: n.Labels[corev1.LabelOSStable] == "windows" || n.Labels["beta.kubernetes.io/os"] == "windows",
		ready:   n.Ready == corev1.ConditionTrue,
	}
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

// zoneOf returns the zone in the provider id of a node: "aws:///eu-west-1a/i-…".
func zoneOf(n *Node) string {
	path := strings.TrimPrefix(strings.TrimPrefix(n.ProviderID, "aws://"), hybridPrefix)
	zone, _, found := strings.Cut(strings.TrimLeft(path, "/"), "/")
	if !found {
		return ""
	}
	return zone
}

// regionOf returns the region of a node; empty if unknown.
func regionOf(n *Node) string {
	if region := n.Labels[corev1.LabelTopologyRegion]; region != "" {
		return region
	}
	if strings.HasPrefix(n.ProviderID, hybridPrefix) {
		return zoneOf(n) // the provider id has a region there
	}
	return strings.TrimRight(zoneOf(n), "abcdefghijklmnopqrstuvwxyz")
}

// madeUp returns a typical AWS node in a region.
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
		template, err := iam.ParseTemplate(token)
		if err != nil {
			return "", err
		}
		value, err := s.expand(template, account)
		if err != nil {
			return "", err
		}
		text = strings.ReplaceAll(text, token, value)
	}
	return text, nil
}

// expand expands a template with the data of the node.
func (s sample) expand(t iam.Template, account string) (string, error) {
	return t.Expand(func(placeholder string) (string, error) {
		switch placeholder {
		case iam.PlaceholderPrivateDNSName:
			switch s.kind {
			case ForFargate:
				return "", errNoInstance
			case ForHybrid:
				return "", errNoInstanceOutside
			}
			return s.dns, nil
		case iam.PlaceholderAccountID:
			return account, nil
		case iam.PlaceholderSessionName, iam.PlaceholderSessionNameRaw:
			return s.session, nil
		}
		return "AKIAIOSFODNN7EXAMPLE", nil
	})
}
