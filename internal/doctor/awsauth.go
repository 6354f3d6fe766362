package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Codes of findings about the mappings of AWS roles. Package iam has the codes for syntax errors
// in entries.
const (
	NodeRoleUsername             finding.Code = "NodeRoleUsername"
	NodeRoleUsernameFixed        finding.Code = "NodeRoleUsernameFixed"
	NodeRoleUsernameIsInstanceID finding.Code = "NodeRoleUsernameIsInstanceID"
	NodeRoleUsernameOfOtherNode  finding.Code = "NodeRoleUsernameOfOtherNode"
	NodeRoleWithoutNodesGroup    finding.Code = "NodeRoleWithoutNodesGroup"
	NodeRoleIsAdministrator      finding.Code = "NodeRoleIsAdministrator"
	NodeRoleWithoutRequests      finding.Code = "NodeRoleWithoutRequests"
	NodeRoleMissing              finding.Code = "NodeRoleMissing"
	NoNodeRole                   finding.Code = "NoNodeRole"
	RoleAccount                  finding.Code = "RoleAccount"
	FargateProfileARN            finding.Code = "FargateProfileARN"
	FargateUsername              finding.Code = "FargateUsername"
	FargateWithoutNodeProxier    finding.Code = "FargateWithoutNodeProxier"
	HybridUsername               finding.Code = "HybridUsername"
	HybridSessionName            finding.Code = "HybridSessionName"
	WindowsWithoutKubeProxy      finding.Code = "WindowsWithoutKubeProxy"
	AccessEntryFirst             finding.Code = "AccessEntryFirst"
	AccountWithoutGroups         finding.Code = "AccountWithoutGroups"
	AWSAuthNotRead               finding.Code = "AWSAuthNotRead"
	ClusterIDMismatch            finding.Code = "ClusterIDMismatch"
	STSHostMismatch              finding.Code = "STSHostMismatch"
)

func awsAuth(e *examination) {
	sources := e.cluster.sources()
	f := newRolePredictor(e)
	for _, s := range sources {
		for _, written := range append(s.findings, s.mappings.Check(f.rules)...) {
			written.Place = s.locate(written.Place)
			e.found(written)
		}
		for _, m := range s.mappings.Accounts {
			e.found(finding.Finding{
				Code: AccountWithoutGroups, Severity: finding.Info, Place: s.locate(m.Place), Subject: m.Account,
				Message:     "every role and user of the account that has no entry is let in, in no group, as a user called by its ARN",
				Consequence: "they may do what every authenticated user may, and what is bound to their ARNs; none of them is a node",
				Remedy:      "map the roles and users that are meant, each with its groups, and delete the account if nobody else is",
			})
		}
	}
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
	e.unmapped(sources, f)
	e.accounts()
	e.tokens(f.rules.Partition)
}

func (e *examination) unread() {
	for _, at := range e.cluster.Unread {
		f := finding.Finding{
			Code: AWSAuthNotRead, Severity: finding.Warning, Place: at,
			Message:     "this ConfigMap is not the one that is read",
			Consequence: "its entries map nobody: authenticators read " + kubeSystem + "/" + awsAuthName,
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

func (e *examination) unmapped(sources []*mappingSource, f *rolePredictor) {
	if len(sources) == 0 || slices.ContainsFunc(sources, (*mappingSource).broken) {
		return
	}
	for _, arn := range slices.Sorted(maps.Keys(f.users)) { // in lower case
		nodes := e.cluster.nodesWhose(func(n *Node) bool { return f.users[arn][n.Name] })
		mapped := slices.ContainsFunc(e.report.Roles, func(r RolePrediction) bool { return strings.EqualFold(withoutPath(r.ARN), arn) })
		if mapped || len(nodes) == 0 || e.cluster.accessEntry(arn) != nil {
			continue
		}
		role := arn
		if i := slices.IndexFunc(e.cluster.Requests, func(r CertificateRequest) bool { return strings.EqualFold(r.RoleARN, arn) }); i >= 0 {
			role = e.cluster.Requests[i].RoleARN
		}
		e.found(e.unlessMappedElsewhere(nodes, finding.Finding{
			Code: NodeRoleMissing, Severity: finding.Error, Place: e.sourcePlace(sources), Subject: role,
			Message:     fmt.Sprintf("the role of %s has no entry: %s", some(nodes), role),
			Consequence: e.unlessAccessEntry("it") + "their kubelets are Unauthorized, and the nodes become NotReady",
			Remedy:      entryFor(role),
		}))
	}
	forNodes := slices.ContainsFunc(e.report.Roles, func(r RolePrediction) bool { return r.Purpose.makesNodes() })
	mayBe := slices.ContainsFunc(e.cluster.AccessEntries, func(a AccessEntry) bool { return a.Type == "" })
	if !forNodes && !mayBe {
		e.found(e.unlessMappedElsewhere(e.cluster.nodesWhose(func(n *Node) bool { _, ok := awsNode(n); return ok }), finding.Finding{
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

func (e *examination) sourcePlace(sources []*mappingSource) finding.Place {
	if m := e.cluster.AWSAuth; m != nil {
		return m.locate(finding.Place{Object: m.Place.Object, Key: "data." + iam.MapRoles})
	}
	return sources[0].locate(finding.Place{Key: iam.MapRoles})
}

func entryFor(arn string) string {
	return fmt.Sprintf(
		"add to mapRoles:\n- rolearn: %s\n  username: %s\n  groups:\n  - %s\n  - %s", arn, nodeUsername, groupBootstrappers,
		nodeidentity.Group,
	)
}

func (e *examination) accounts() {
	of := func(r *RolePrediction) string {
		if arn, err := iam.ParseARN(r.ARN); err == nil && r.Purpose.makesNodes() {
			return arn.Account
		}
		return ""
	}
	counts, sum := map[string]int{}, 0
	for i := range e.report.Roles {
		if account := of(&e.report.Roles[i]); account != "" {
			counts[account]++
			sum++
		}
	}
	expected, severity, known := e.options.Account, finding.Error, "the nodes' account is "
	if expected == "" {
		severity, known = finding.Warning, "most of the nodes' roles are of account "
		for account, n := range counts {
			if 2*n > sum {
				expected = account
			}
		}
	}
	for i := range e.report.Roles {
		account := of(&e.report.Roles[i])
		if expected == "" || account == "" || account == expected {
			continue
		}
		r := &roleCheck{examination: e, predicted: &e.report.Roles[i]}
		r.say(RoleAccount, severity, "rolearn",
			fmt.Sprintf("the role is of account %s, and %s%s", account, known, expected),
			"a node whose role is of another account than the entry is Unauthorized",
			"check the account in the ARN; nothing is wrong if the nodes of this role run in the other account")
	}
}

// tokens compares the cluster ids and partitions of tokens with those that are accepted. The
// partition is the AWS partition of the cluster; empty if unknown.
func (e *examination) tokens(partition string) {
	inferred := partition == ""
	if inferred {
		partition = e.partitionOfRoles()
	}
	accepted := map[string]string{}
	for _, a := range e.cluster.Authenticators {
		if a.ClusterID != "" {
			accepted[a.ClusterID] = a.Place.String()
		}
	}
	if e.options.ClusterID != "" {
		accepted = map[string]string{e.options.ClusterID: "--cluster-id"}
	}
	ids := slices.Sorted(maps.Keys(accepted))
	for _, c := range e.cluster.Credentials {
		who := cmp.Or(c.Name, "the user")
		if c.ClusterID != "" && len(ids) > 0 && accepted[c.ClusterID] == "" {
			e.found(finding.Finding{
				Code: ClusterIDMismatch, Severity: finding.Error, Place: c.Place, Subject: c.ClusterID,
				Message: fmt.Sprintf(
					"%s makes tokens for cluster %q, and tokens for %q are accepted (%s)", c.Command, c.ClusterID, some(ids),
					accepted[ids[0]],
				),
				Consequence: fmt.Sprintf(
					"every request of %s is Unauthorized: STS refuses the token, whose signature covers the cluster's id", who,
				),
				Remedy: fmt.Sprintf("give %s the cluster id %s", c.Command, ids[0]),
			})
		}
		if of := partitionOfRegion(c.Region); of != "" && partition != "" && of != partition {
			e.found(stsHostMismatch(c, who, of, partition, inferred))
		}
	}
}

// stsHostMismatch returns the finding for a credential that signs for a region of another partition than the
// cluster's, which may be inferred from the ARNs of the nodes' roles. These may be wrong.
func stsHostMismatch(c Credential, who, of, partition string, inferred bool) finding.Finding {
	f := finding.Finding{
		Code: STSHostMismatch, Severity: finding.Error, Place: c.Place, Subject: c.Region,
		Message: fmt.Sprintf(
			"%s signs for STS in %s, which is in partition %s, and the cluster is in %s", c.Command, c.Region, of, partition,
		),
		Consequence: fmt.Sprintf(
			"every request of %s is Unauthorized: a token is taken only for the STS hosts of the cluster's partition", who,
		),
		Remedy: "give it a region of partition " + partition + " (--region, or AWS_REGION)",
	}
	if inferred {
		f.Severity = finding.Warning
		f.Message = fmt.Sprintf("%s signs for STS in %s, which is in partition %s, "+
			"and the ARNs of the nodes' roles are of partition %s; nothing else shows where the cluster is",
			c.Command, c.Region, of, partition)
		f.Consequence = fmt.Sprintf(
			"if the cluster is in %s, %s; if it is in %s, no node can have such a role", partition, f.Consequence, of,
		)
		f.Remedy = fmt.Sprintf(
			"examine again with --region and the region of the cluster; if that is of partition %s, %s, and if it is %s, correct the ARNs",
			partition, f.Remedy, c.Region,
		)
	}
	return f
}

// forgotten is the time after an edit of aws-auth when all older tokens and cached answers have
// expired: tokens are valid for a quarter of an hour, answers are cached for less.
const forgotten = time.Hour

// unlessMappedElsewhere lowers the severity of a finding about nodes without an entry if all of
// them are Ready long after aws-auth was written. Something else maps them then, such as EKS
// access entries.
func (e *examination) unlessMappedElsewhere(nodes []string, f finding.Finding) finding.Finding {
	ready := e.cluster.nodesWhose(func(n *Node) bool { return n.Ready == corev1.ConditionTrue && slices.Contains(nodes, n.Name) })
	if !e.settled() || len(ready) == 0 || len(ready) < len(nodes) {
		return f
	}
	f.Severity = finding.Info
	f.Message += "; still " + render.Plural(len(nodes), "the node is", "the nodes are") + " Ready"
	f.Consequence = "none, as something else maps " + render.Plural(len(nodes), "it", "them") +
		": an EKS access entry, or a client certificate"
	f.Remedy = "nothing, if that is meant; otherwise " + f.Remedy
	return f
}

// settled reports whether the state of the nodes is the effect of the current mappings. In files,
// the nodes may be older than the mappings.
func (e *examination) settled() bool {
	m := e.cluster.AWSAuth
	return e.cluster.Live && m != nil && !m.Changed.IsZero() && e.options.Now.Sub(m.Changed) > forgotten &&
		len(e.cluster.IdentityMappings) == 0
}
