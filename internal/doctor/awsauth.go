package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// awsAuth checks the mappings of AWS roles, and predicts what happens to their nodes.
func awsAuth(e *examination) {
	sources := e.cluster.sources()
	f := newRolePredictor(e)
	e.written(sources, f.rules)
	e.unread()
	e.accessEntriesFirst(sources)
	e.report.Roles = f.predict(append(sources[:len(sources):len(sources)], accessEntrySource(e.cluster.AccessEntries)))
	for i := range e.report.Roles {
		r := &roleCheck{examination: e, predicted: &e.report.Roles[i]}
		if r.predicted.Source != accessEntrySourceName { // EKS validates those
			r.check()
		}
	}
	e.windows(f)
	e.accountsLetIn(sources)
	e.unmapped(sources, f)
	e.accounts()
	e.tokens(f.rules.Partition)
}

// written adds the findings about the syntax of mappings and about how they are used.
func (e *examination) written(sources []*mappingSource, rules iam.Rules) {
	for _, s := range sources {
		for _, f := range append(s.findings, s.mappings.Check(rules)...) {
			f.Place = s.locate(f.Place)
			e.found(f)
		}
	}
}

// unread reports ConfigMaps named aws-auth that authenticators do not read.
func (e *examination) unread() {
	for _, at := range e.cluster.Unread {
		f := finding.Finding{
			Code: AWSAuthNotRead, Severity: finding.Warning, Place: at,
			Message:     "this ConfigMap is not the one that is read",
			Consequence: "what it maps is mapped nowhere: authenticators read " + kubeSystem + "/" + awsAuthName,
			Remedy:      "move its entries there",
		}
		if strings.HasSuffix(at.Object, " "+kubeSystem+"/"+awsAuthName) {
			f.Message = "another ConfigMap of the same name follows, which replaces this one"
			f.Consequence = "the last one that is applied counts"
			f.Remedy = "put all entries into one"
		}
		e.found(f)
	}
}

// roleCheck is a role whose prediction is known.
type roleCheck struct {
	*examination
	predicted *RolePrediction
}

// say adds a finding about a field of the role's entry.
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

// username checks that each node has a unique username, with its own name.
func (r *roleCheck) username() {
	name := r.predicted.Username
	template, err := iam.ParseTemplate(name)
	if err != nil {
		return // found as it was read
	}
	switch {
	case !strings.HasPrefix(name, nodeidentity.UserPrefix):
		r.say(NodeRoleUsername, finding.Error, "username",
			fmt.Sprintf("the username %q is not that of a node", name), r.predicted.summary(),
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

// mayBeHybrid reports whether the role's nodes may be machines outside of AWS: no instance of
// the cluster is known to use it, or must use it.
func (r *roleCheck) mayBeHybrid() bool {
	if r.usedByInstances() {
		return false
	}
	others := slices.ContainsFunc(r.report.Roles, func(f RolePrediction) bool {
		return f.Purpose == ForNodes && f.ARN != r.predicted.ARN && strings.Contains(f.Username, iam.PlaceholderPrivateDNSName)
	})
	return !r.predicted.Seen || others
}

// rightUsername returns the correct username for nodes of the role's kind.
func (r *roleCheck) rightUsername() string {
	if r.predicted.Purpose == ForHybrid {
		return sessionUsername
	}
	return nodeUsername
}

// rights checks the rights of the role's nodes.
func (r *roleCheck) rights() {
	inNodes := slices.Contains(r.predicted.Groups, nodeidentity.Group)
	named := strings.HasPrefix(r.predicted.Username, nodeidentity.UserPrefix)
	switch {
	case r.predicted.ClusterAdmin:
		consequence := "whoever takes over one node has the whole cluster: neither the Node authorizer nor NodeRestriction holds " +
			"it to what is its own"
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

// usedByInstances reports whether the kubelet of an instance is known to use the role.
func (r *roleCheck) usedByInstances() bool {
	return slices.ContainsFunc(r.cluster.Requests, func(c CertificateRequest) bool {
		return strings.EqualFold(c.RoleARN, r.predicted.ARN) && !strings.HasPrefix(c.CommonName, nodeidentity.UserPrefix+fargatePrefix) &&
			!strings.HasPrefix(c.CommonName, nodeidentity.UserPrefix+machinePrefix)
	})
}

// summary describes in one line what happens to a node.
func (f *RolePrediction) summary() string {
	switch {
	case f.Registers.Value == No:
		return "its nodes do not register, and those that are there become NotReady: " + f.Registers.Why
	case f.Ready.Value == No:
		return "its nodes register and become NotReady: " + strings.TrimPrefix(f.Ready.Why, "NotReady: ")
	case f.Serving.Value == No:
		return "its nodes become Ready, but logs, exec and port-forward fail: " + f.Serving.Why
	case f.Registers.Value == Unknown || f.Ready.Value == Unknown || f.Serving.Value == Unknown:
		return "its nodes may not work: " + cmp.Or(f.Registers.doubt(), f.Ready.doubt(), f.Serving.doubt())
	}
	return "its nodes work"
}

// unmapped reports nodes' roles without an entry, and mappings without nodes' roles.
func (e *examination) unmapped(sources []*mappingSource, f *rolePredictor) {
	if len(sources) == 0 || slices.ContainsFunc(sources, (*mappingSource).broken) {
		return
	}
	for _, arn := range slices.Sorted(maps.Keys(f.users)) {
		if e.isMapped(arn) {
			continue
		}
		var there []string
		for i := range e.cluster.Nodes {
			if name := e.cluster.Nodes[i].Name; f.users[arn][name] {
				there = append(there, name)
			}
		}
		if len(there) == 0 {
			continue
		}
		role := e.asWritten(arn)
		e.found(e.unlessMappedElsewhere(there, finding.Finding{
			Code: NodeRoleMissing, Severity: finding.Error, Place: e.sourcePlace(sources), Subject: role,
			Message:     fmt.Sprintf("the role of %s has no entry: %s", some(there), role),
			Consequence: e.unlessAccessEntry("it") + "their kubelets are Unauthorized, and the nodes become NotReady",
			Remedy:      entryFor(role),
		}))
	}
	forNodes := slices.ContainsFunc(e.report.Roles, func(r RolePrediction) bool { return r.Purpose.makesNodes() })
	mayBe := slices.ContainsFunc(e.cluster.AccessEntries, func(a AccessEntry) bool { return a.Type == "" })
	if !forNodes && !mayBe {
		e.found(e.unlessMappedElsewhere(f.names(), finding.Finding{
			Code: NoNodeRole, Severity: finding.Error, Place: e.sourcePlace(sources),
			Message:     "no entry makes anybody a node",
			Consequence: e.unlessAccessEntry("them") + "nodes that have no client certificate are Unauthorized and do not join",
			Remedy:      entryFor("arn:aws:iam::ACCOUNT:role/ROLE-OF-THE-NODES"),
		}))
	}
}

// unlessAccessEntry returns a qualification for the consequence of a missing entry, if access
// entries are unknown: EKS stores them outside of the cluster.
func (e *examination) unlessAccessEntry(whom string) string {
	if e.cluster.AccessEntriesGiven {
		return ""
	}
	return "unless an EKS access entry maps " + whom + " (give the answer of aws eks list-access-entries with --from), "
}

// isMapped reports whether a role has an entry, by its ARN in lower case.
func (e *examination) isMapped(arn string) bool {
	return e.cluster.accessEntry(arn) != nil || slices.ContainsFunc(e.report.Roles, func(r RolePrediction) bool {
		return strings.ToLower(withoutPath(r.ARN)) == arn
	})
}

// asWritten returns a role's ARN in its original case, for an ARN in lower case.
func (e *examination) asWritten(arn string) string {
	for _, r := range e.cluster.Requests {
		if strings.EqualFold(r.RoleARN, arn) {
			return r.RoleARN
		}
	}
	return arn
}

// sourcePlace returns the place for a missing entry.
func (e *examination) sourcePlace(sources []*mappingSource) finding.Place {
	if m := e.cluster.AWSAuth; m != nil {
		return m.locate(finding.Place{Object: m.Place.Object, Key: "data." + iam.MapRoles})
	}
	return sources[0].locate(finding.Place{Key: iam.MapRoles})
}

// entryFor returns an entry of mapRoles for the nodes of a role.
func entryFor(arn string) string {
	return fmt.Sprintf(
		"add to mapRoles:\n- rolearn: %s\n  username: %s\n  groups:\n  - %s\n  - %s", arn, nodeUsername, groupBootstrappers,
		nodeidentity.Group,
	)
}
