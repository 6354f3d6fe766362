package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// roleCheck is a role whose prediction is known.
type roleCheck struct {
	*examination
	predicted *RolePrediction
}

func (r *roleCheck) say(code finding.Code, severity finding.Severity, field, message, consequence, remedy string) {
	at := r.predicted.Place
	at.Key = strings.TrimPrefix(at.Key+"."+field, ".")
	if m := r.cluster.AWSAuth; m != nil && r.predicted.Source == m.Place.Object {
		at = m.field(at, field)
	}
	r.found(finding.Finding{
		Code: code, Severity: severity, Place: at, Subject: r.predicted.ARN, Message: message, Consequence: consequence, Remedy: remedy,
	})
}

// field moves a place from the first line of an entry to the line of one of its fields.
func (m *ConfigMap) field(at finding.Place, field string) finding.Place {
	key, _, _ := strings.Cut(strings.TrimPrefix(at.Key, "data."), "[")
	lines := strings.Split(m.Data[key], "\n")
	for i := max(at.KeyLine-1, 0); i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if i >= at.KeyLine && strings.HasPrefix(line, "- rolearn") {
			break
		}
		if strings.HasPrefix(strings.ToLower(strings.TrimPrefix(line, "- ")), field+":") {
			at.KeyLine = i + 1
			return m.locate(at)
		}
	}
	return at
}

const (
	nodeUsername    = nodeidentity.UserPrefix + "{{" + iam.PlaceholderPrivateDNSName + "}}"
	sessionUsername = nodeidentity.UserPrefix + "{{" + iam.PlaceholderSessionName + "}}"
	nodeGroups      = groupBootstrappers + " and " + nodeidentity.Group
)

func (r *roleCheck) check() {
	switch r.predicted.Purpose {
	case ForNodes:
		if r.predicted.User != "" {
			r.username()
			r.rights()
		}
	case ForFargate:
		r.fargate()
	case ForHybrid:
		r.hybrid()
	}
}

func (r *roleCheck) username() {
	name := r.predicted.Username
	template, err := iam.ParseTemplate(name)
	if err != nil {
		return // found as it was read
	}
	switch {
	case !strings.HasPrefix(name, nodeidentity.UserPrefix):
		r.say(NodeRoleUsername, finding.Error, "username",
			fmt.Sprintf("the username %q does not name a node", name), r.predicted.summary(),
			fmt.Sprintf("write username: %s, with the groups %s", r.rightUsername(), nodeGroups))
	case !template.UsesSession():
		r.say(NodeRoleUsernameFixed, finding.Error, "username",
			fmt.Sprintf("all nodes of the role are the one user %s", name),
			"at most one of them is the node of that name; "+r.predicted.summary(),
			"write username: "+r.rightUsername())
	case r.predicted.User == nodeidentity.UserPrefix+r.predicted.Node:
	case template.Uses(iam.PlaceholderPrivateDNSName):
		r.say(NodeRoleUsernameOfOtherNode, finding.Error, "username",
			fmt.Sprintf("node %s would be the user %s", r.predicted.Node, r.predicted.User), r.predicted.summary(),
			"have the kubelet register with its instance's private DNS name, without --hostname-override")
	case r.mayBeHybrid():
		r.say(NodeRoleUsernameIsInstanceID, finding.Warning, "username",
			fmt.Sprintf(
				"the username is made of the name of the session, which for an instance is its id: %s would be the user of node %s",
				r.predicted.User, r.predicted.Node,
			),
			"if instances use the role, "+r.predicted.summary(),
			"if EC2 instances use the role, write username: "+nodeUsername+"; nothing is wrong if EKS Hybrid Nodes use it")
	default:
		r.say(NodeRoleUsernameIsInstanceID, finding.Error, "username",
			fmt.Sprintf(
				"the username is made of the instance's id, and the node is called otherwise: %s is the user of node %s", r.predicted.User,
				r.predicted.Node,
			),
			r.predicted.summary(), "write username: "+nodeUsername+", unless none but EKS Hybrid Nodes use the role")
	}
}

func (r *roleCheck) mayBeHybrid() bool {
	if r.usedByInstances() {
		return false
	}
	otherNodeRole := slices.ContainsFunc(r.report.Roles, func(f RolePrediction) bool {
		return f.Purpose == ForNodes && f.ARN != r.predicted.ARN && strings.Contains(f.Username, iam.PlaceholderPrivateDNSName)
	})
	return !r.predicted.Seen || otherNodeRole
}

func (r *roleCheck) rightUsername() string {
	if r.predicted.Purpose == ForHybrid {
		return sessionUsername
	}
	return nodeUsername
}

func (r *roleCheck) rights() {
	inNodes := slices.Contains(r.predicted.Groups, nodeidentity.Group)
	named := strings.HasPrefix(r.predicted.Username, nodeidentity.UserPrefix)
	switch {
	case r.predicted.ClusterAdmin:
		consequence := "whoever takes over one node has the whole cluster: neither the Node authorizer nor NodeRestriction holds " +
			"it to its own objects"
		if !inNodes && named {
			consequence = "its nodes work, but " + consequence
		}
		r.say(NodeRoleIsAdministrator, finding.Error, "groups",
			fmt.Sprintf("every node of the role may do everything: it is in %s", strings.Join(r.predicted.Groups, ", ")), consequence,
			fmt.Sprintf("write the groups %s, and username: %s", nodeGroups, r.rightUsername()))
	case named && !inNodes:
		r.say(NodeRoleWithoutNodesGroup, finding.Error, "groups",
			"the group "+nodeidentity.Group+" is missing", r.predicted.summary(), "write the groups "+nodeGroups)
	case r.predicted.NodeIdentity && r.predicted.Serving.Value == No:
		r.say(NodeRoleWithoutRequests, finding.Warning, "groups",
			"its nodes may not ask for certificates", r.predicted.summary(),
			fmt.Sprintf("write the groups %s, and bind the cluster role system:node-bootstrapper to %s", nodeGroups, groupBootstrappers))
	}
}

// fargate checks a pod execution role, whose sessions have the names of nodes.
func (r *roleCheck) fargate() {
	template, err := iam.ParseTemplate(r.predicted.Username)
	switch {
	case err != nil:
		return
	case template.Uses(iam.PlaceholderPrivateDNSName):
		r.say(FargateUsername, finding.Error, "username",
			"a Fargate role has the username of EC2 instances", r.predicted.summary(),
			"write username: "+sessionUsername+"; instances need a role and an entry of their own")
	case !slices.Contains(r.predicted.Groups, groupNodeProxier):
		r.say(FargateWithoutNodeProxier, finding.Warning, "groups",
			"the group "+groupNodeProxier+" is missing", "kube-proxy on the role's Fargate nodes may not read services",
			fmt.Sprintf("write the groups %s, %s and %s", groupBootstrappers, nodeidentity.Group, groupNodeProxier))
	}
	if !template.Uses(iam.PlaceholderPrivateDNSName) && r.usedByInstances() {
		r.say(FargateUsername, finding.Error, "username",
			"the role is used by EC2 instances and mapped like a Fargate role",
			"instances are known by their ids, which their nodes are not called: they do not become Ready",
			"give Fargate and instances a role each; instances need username: "+nodeUsername)
	}
	if r.predicted.ClusterAdmin {
		r.rights()
	}
}

func (r *roleCheck) usedByInstances() bool {
	return slices.ContainsFunc(r.cluster.Requests, func(c CertificateRequest) bool {
		return strings.EqualFold(c.RoleARN, r.predicted.ARN) && !strings.HasPrefix(c.CommonName, nodeidentity.UserPrefix+fargatePrefix) &&
			!strings.HasPrefix(c.CommonName, nodeidentity.UserPrefix+machinePrefix)
	})
}

func (f *RolePrediction) summary() string {
	outcomes := []Outcome{f.Registers, f.Ready, f.Serving}
	unknown := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Value == Unknown })
	switch {
	case f.Registers.Value == No:
		return "its nodes do not register, and those that are there become NotReady: " + f.Registers.Why
	case f.Ready.Value == No:
		return "its nodes register and become NotReady: " + strings.TrimPrefix(f.Ready.Why, "NotReady: ")
	case f.Serving.Value == No:
		return "its nodes become Ready, but logs, exec and port-forward fail: " + f.Serving.Why
	case unknown >= 0:
		return "its nodes may not work: " + outcomes[unknown].Why
	}
	return "its nodes work"
}

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
			"the name of a node is the name of its session, chosen by any principal that may assume the role, as EKS Hybrid Nodes want it",
			"a principal that may assume the role under any name can be any node of the cluster, instances among them",
			"keep the username, and look at the role's trust policy: it has to name ssm.amazonaws.com, "+
				"which calls the session after the machine, "+
				"or rolesanywhere.amazonaws.com with the condition that "+
				"sts:RoleSessionName is ${aws:PrincipalTag/x509Subject/CN}, and nobody else")
	}
}

// groupWindowsProxy is the EKS group with the rights of kube-proxy on Windows, where kube-proxy uses the
// credential of the node and not a service account.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/windows-support.html
const groupWindowsProxy = "eks:kube-proxy-windows"

func (e *examination) windows(f *rolePredictor) {
	windowsNodes := e.cluster.nodesWhose(func(n *Node) bool {
		s, ok := awsNode(n)
		return ok && s.kind == ForNodes && (n.Labels[corev1.LabelOSStable] == "windows" || n.Labels["beta.kubernetes.io/os"] == "windows")
	})
	var candidates []*roleCheck
	served := false
	for i := range e.report.Roles {
		r := &roleCheck{examination: e, predicted: &e.report.Roles[i]}
		if r.predicted.Purpose != ForNodes || r.predicted.User == "" {
			continue
		}
		enough := slices.Contains(r.predicted.Groups, groupWindowsProxy) || f.readsSlices(r.predicted)
		served = served || enough
		users := f.users[strings.ToLower(r.predicted.ARN)]
		using := selected(windowsNodes, func(node string) bool { return users[node] })
		switch {
		case enough:
		case len(using) > 0:
			r.withoutWindowsProxy(finding.Error, "Windows nodes use the role: "+some(using))
		case strings.Contains(strings.ToLower(roleName(r.predicted.ARN)), "windows"):
			r.withoutWindowsProxy(finding.Warning, "the role is called like one of Windows nodes")
		case len(users) == 0:
			candidates = append(candidates, r)
		}
	}
	if len(windowsNodes) == 0 || served {
		return
	}
	for _, r := range candidates {
		r.withoutWindowsProxy(finding.Warning, "there are Windows nodes, and no role has the group: "+some(windowsNodes))
	}
}

func (r *roleCheck) withoutWindowsProxy(severity finding.Severity, why string) {
	remedy := fmt.Sprintf("if Windows nodes use the role, write the groups %s, and %s", nodeGroups, groupWindowsProxy)
	if r.predicted.Source == accessEntrySourceName {
		remedy = "if Windows nodes use the role, replace its access entry by one of type EC2_WINDOWS"
	}
	r.say(WindowsWithoutKubeProxy, severity, "groups",
		fmt.Sprintf("the group %s is missing, and %s", groupWindowsProxy, why),
		"kube-proxy on Windows nodes has the credential of the node and may not read endpoint slices: "+
			"names of services are not resolved in pods, and services are not reached",
		remedy)
}

func (f *rolePredictor) readsSlices(prediction *RolePrediction) bool {
	if !f.cluster.RBACKnown {
		return prediction.ClusterAdmin
	}
	reads := kubeletRequest{request: "list,watch endpointslices.discovery.k8s.io", phrase: "list endpoint slices"}
	refused, _ := f.all(prediction.kubelet, reads)
	return refused == ""
}
