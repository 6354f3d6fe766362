package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
)

// accounts compares the accounts of the nodes' roles with the given account, or with the most
// frequent one.
func (e *examination) accounts() {
	of := func(r *RolePrediction) string {
		if arn, err := iam.ParseARN(r.ARN); err == nil && r.Purpose.makesNodes() {
			return arn.Account
		}
		return ""
	}
	counts := map[string]int{}
	for i := range e.report.Roles {
		if account := of(&e.report.Roles[i]); account != "" {
			counts[account]++
		}
	}
	expected, severity, known := e.options.Account, finding.Error, "the nodes' account is "
	if expected == "" {
		severity, known = finding.Warning, "most of the nodes' roles are of account "
		for account, n := range counts {
			if 2*n > len(e.report.Roles) || 2*n > sum(counts) {
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

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// accountsLetIn reports what an account in mapAccounts grants.
func (e *examination) accountsLetIn(sources []*mappingSource) {
	for _, s := range sources {
		for _, m := range s.mappings.Accounts {
			e.found(finding.Finding{
				Code: AccountWithoutGroups, Severity: finding.Info, Place: s.locate(m.Place), Subject: m.Account,
				Message:     "every role and user of the account that has no entry is let in, in no group, as a user called by its ARN",
				Consequence: "they may do what every authenticated user may, and what is bound to their ARNs; none of them is a node",
				Remedy:      "map the roles and users that are meant, each with its groups, and delete the account if nobody else is",
			})
		}
	}
}

// tokens compares the cluster ids and partitions of tokens with those that are accepted. The
// partition is that of the cluster; empty if unknown.
func (e *examination) tokens(partition string) {
	hosts := stsHosts{partition: partition}
	if partition == "" {
		hosts = stsHosts{partition: e.partitionOfRoles(), inferred: true}
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
					"%s makes tokens for cluster %q, and those of %q are accepted (%s)", c.Command, c.ClusterID, some(ids),
					accepted[ids[0]],
				),
				Consequence: fmt.Sprintf(
					"every request of %s is Unauthorized: STS refuses the token, whose signature covers the cluster's id", who,
				),
				Remedy: fmt.Sprintf("give %s the cluster id %s", c.Command, ids[0]),
			})
		}
		if of := partitionOfRegion(c.Region); of != "" && hosts.partition != "" && of != hosts.partition {
			e.found(hosts.mismatch(c, of, who))
		}
	}
}

// stsHosts is the partition of the STS hosts that the authenticator accepts. It comes from the
// authenticator's configuration or the nodes' region, or is inferred from the ARNs of the
// nodes' roles, which may be wrong.
type stsHosts struct {
	partition string
	inferred  bool
}

// mismatch returns the finding for a credential that signs for a region of another partition.
func (h stsHosts) mismatch(c Credential, of, who string) finding.Finding {
	f := finding.Finding{
		Code: STSHostMismatch, Severity: finding.Error, Place: c.Place, Subject: c.Region,
		Message: fmt.Sprintf(
			"%s signs for STS in %s, which is in partition %s, and the cluster is in %s", c.Command, c.Region, of, h.partition,
		),
		Consequence: fmt.Sprintf(
			"every request of %s is Unauthorized: a token is taken only for the STS hosts of the cluster's partition", who,
		),
		Remedy: "give it a region of partition " + h.partition + " (--region, or AWS_REGION)",
	}
	if h.inferred {
		f.Severity = finding.Warning
		f.Message = fmt.Sprintf("%s signs for STS in %s, which is in partition %s, "+
			"and the ARNs of the nodes' roles are of partition %s; nothing else shows where the cluster is",
			c.Command, c.Region, of, h.partition)
		f.Consequence = fmt.Sprintf(
			"if the cluster is in %s, %s; if it is in %s, no node can have such a role", h.partition, f.Consequence, of,
		)
		f.Remedy = fmt.Sprintf(
			"examine again with --region and the region of the cluster; if that is of partition %s, %s, and if it is %s, correct the ARNs",
			h.partition, f.Remedy, c.Region,
		)
	}
	return f
}
