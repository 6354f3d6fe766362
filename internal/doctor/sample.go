package doctor

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/iam"
)

// sample is a node for which is predicted what becomes of it: one of the cluster, or
// one as AWS would make it.
type sample struct {
	// name is that of its Node.
	name string
	// session is the name of its session with STS: the id of its instance, or on
	// Fargate the name of the node.
	session string
	// dns is its private DNS name.
	dns     string
	fargate bool
	// seen is true for a node of the cluster.
	seen bool
}

const (
	sampleInstance = "i-0123456789abcdef0"
	sampleRegion   = "eu-west-1"
	fargatePrefix  = "fargate-"
)

// awsNode returns a node of AWS as a sample; false for others.
func awsNode(n *Node) (sample, bool) {
	path, ok := strings.CutPrefix(n.ProviderID, "aws://")
	if !ok {
		return sample{}, false
	}
	s := sample{name: n.Name, session: path[strings.LastIndexByte(path, '/')+1:], dns: n.Name, seen: true}
	for _, a := range n.Addresses {
		if a.Type == corev1.NodeInternalDNS {
			s.dns = strings.ToLower(a.Address)
			break
		}
	}
	if strings.HasPrefix(s.session, fargatePrefix) {
		s.fargate = true
	}
	return s, true
}

// zoneOf is the zone in the provider id of a node: "aws:///eu-west-1a/i-…".
func zoneOf(n *Node) string {
	path, _ := strings.CutPrefix(n.ProviderID, "aws://")
	zone, _, found := strings.Cut(strings.TrimLeft(path, "/"), "/")
	if !found {
		return ""
	}
	return zone
}

// regionOf is the region of a node; empty if it does not show.
func regionOf(n *Node) string {
	if region := n.Labels[corev1.LabelTopologyRegion]; region != "" {
		return region
	}
	return strings.TrimRight(zoneOf(n), "abcdefghijklmnopqrstuvwxyz")
}

// madeUp is a node as AWS would make it in a region.
func madeUp(region string, fargate bool) sample {
	region = cmp.Or(region, sampleRegion)
	name := "ip-10-0-0-1." + region + ".compute.internal"
	if region == "us-east-1" {
		name = "ip-10-0-0-1.ec2.internal"
	}
	if fargate {
		name = fargatePrefix + name
		return sample{name: name, session: name, dns: name, fargate: true}
	}
	return sample{name: name, session: sampleInstance, dns: name}
}

// expand puts what is known of the node into a template.
func (s sample) expand(t iam.Template, account string) (string, error) {
	return t.Expand(func(placeholder string) (string, error) {
		switch placeholder {
		case iam.PlaceholderPrivateDNSName:
			if s.fargate {
				return "", errNoInstance
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
