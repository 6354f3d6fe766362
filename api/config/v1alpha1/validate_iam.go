package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Limits of reasonable values for the authentication of callers.
const (
	maxClusterID   = 1024 // characters
	maxSTSTimeout  = 30 * time.Second
	maxTokenCache  = 15 * time.Minute // the life of a token
	maxEC2Cache    = time.Hour
	maxCacheSize   = 1_000_000
	maxSTSInFlight = 10_000
)

// partitions are the partitions with endpoints in the AWS SDK.
func partitions() []string {
	return []string{"aws", "aws-cn", "aws-us-gov", "aws-iso", "aws-iso-b", "aws-iso-e", "aws-iso-f", "aws-eusc"}
}

// serves rejects unknown kinds of reviews, and sections that no kind uses.
func (v *validation) serves(c *ServerConfiguration) {
	if w := &c.Webhook; w.Address != "" {
		const field = "webhook.serves"
		if len(w.Serves) == 0 {
			v.wrong(field, "empty: name one of Authorization, Admission and Authentication, or set webhook.address to \"\"")
		}
		for i, served := range w.Serves {
			path := elementPath(field, i)
			if slices.Contains(w.Serves[:i], served) {
				v.wrong(path, "%s is given twice: remove one", quoted(string(served)))
				continue
			}
			oneOf(v, path, served, ServeAuthorization, ServeAdmission, ServeAuthentication)
		}
		if len(w.Serves) > 0 && c.Authorization.Mode == ChainMode && !w.Answers(ServeAuthorization) {
			v.wrong("authorization.mode",
				"Chain has no effect, because webhook.serves has no Authorization: add it, or set the mode to Node")
		}
	}
	switch {
	case c.Webhook.Answers(ServeAuthentication):
		v.iam(&c.IAM)
	case c.IAM.ClusterID != "":
		v.wrong("iam.clusterID", "has no effect, because webhook.serves has no Authentication: add it, or remove iam.clusterID")
	}
	if b := &c.Bootstrap; b.Address != "" && b.Attestor == AWSAttestor && !c.Webhook.Answers(ServeAuthentication) {
		v.ec2Limits(&c.IAM.EC2)
	}
}

func (v *validation) iam(c *IAM) {
	const id = "iam.clusterID"
	if v.required(id, c.ClusterID,
		"the id of the cluster that tokens are made for, as in node-authorizer token --cluster-id"); c.ClusterID != "" &&
		(len(c.ClusterID) > maxClusterID || !regexp.MustCompile(`^[!-~]+( [!-~]+)*$`).MatchString(c.ClusterID)) {
		v.wrong(id, "want up to %d characters of printable ASCII without leading, trailing or consecutive spaces%s", maxClusterID,
			given(c.ClusterID))
	}
	oneOf(v, "iam.partition", c.Partition, partitions()...)
	if c.Region != "" && !isRegion(c.Region) {
		v.wrong("iam.region", "want a region such as eu-west-1%s", given(c.Region))
	}
	v.list("iam.audiences", c.Audiences, nil, "an audience, such as https://kubernetes.default.svc")
	v.mappingSources(c)
	oneOf(v, "iam.rolePaths", c.RolePaths, MatchRoleName, ExactRolePath)
	oneOf(v, "iam.sessionCheck", c.SessionCheck, InstanceProfileCheck, InstanceCheck, NoSessionCheck)
	v.list("iam.sessionCheckExemptRoles", c.SessionCheckExemptRoles,
		regexp.MustCompile(`^arn:`+regexp.QuoteMeta(c.Partition)+`:iam::[0-9]{12}:role/([!-~]+/)?[\w+=,.@-]+$`).MatchString,
		fmt.Sprintf("the ARN of a role: arn:%s:iam::111122223333:role/NAME", c.Partition))
	if c.SessionCheck == NoSessionCheck && len(c.SessionCheckExemptRoles) > 0 {
		v.wrong("iam.sessionCheckExemptRoles", "has no effect with iam.sessionCheck: None: remove it, or choose another check")
	}
	v.list("iam.reserved.prefixes", c.Reserved.Prefixes, nil, "a prefix of usernames and groups, such as system:")
	v.list("iam.reserved.grantedUsernames", c.Reserved.GrantedUsernames, nil,
		"a username, or a prefix of usernames that ends in a colon, such as system:node:")
	v.list("iam.reserved.grantedGroups", c.Reserved.GrantedGroups, nil,
		"a group, or a prefix of groups that ends in a colon, such as system:nodes")
	v.sts(&c.STS)
	v.ec2(&c.EC2)
}

func (v *validation) mappingSources(c *IAM) {
	const field = "iam.sources"
	if len(c.Sources) == 0 {
		v.wrong(field, "empty: name one of File, ConfigMap and IdentityMapping, or no caller can be authenticated")
	}
	for i, source := range c.Sources {
		path := elementPath(field, i)
		if slices.Contains(c.Sources[:i], source) {
			v.wrong(path, "%s is given twice: remove one", quoted(string(source)))
			continue
		}
		oneOf(v, path, source, FileSource, ConfigMapSource, IdentityMappingSource)
	}
	if slices.Contains(c.Sources, FileSource) {
		v.required("iam.file", c.File, "the path of a file with mapRoles, mapUsers or mapAccounts, or remove File from iam.sources")
	} else if c.File != "" {
		v.wrong("iam.file", "has no effect without File in iam.sources: add it, or remove iam.file")
	}
	if slices.Contains(c.Sources, ConfigMapSource) {
		v.objectName("iam.configMap.namespace", c.ConfigMap.Namespace, `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`,
			"the namespace of the ConfigMap, such as kube-system")
		v.objectName("iam.configMap.name", c.ConfigMap.Name, `^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`,
			"the name of the ConfigMap, such as aws-auth")
	}
}

func (v *validation) objectName(field, value, form, want string) {
	if !regexp.MustCompile(form).MatchString(value) {
		v.wrong(field, "want %s%s", want, given(value))
	}
}

func (v *validation) sts(s *STS) {
	const hosts = "iam.sts.extraHosts"
	for i, h := range s.ExtraHosts {
		path := elementPath(hosts, i)
		if !regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(h.Host) ||
			len(h.Host) > 253 {
			v.wrong(path+".host",
				"want a host name in lower case, without scheme and port, such as "+
					"vpce-0123456789abcdef0-abcdefgh.sts.eu-west-1.vpce.amazonaws.com%s",
				given(h.Host))
		} else if slices.ContainsFunc(s.ExtraHosts[:i], func(other STSHost) bool { return other.Host == h.Host }) {
			v.wrong(path+".host", "%s is given twice: remove one", quoted(h.Host))
		}
		if !isRegion(h.Region) {
			v.wrong(path+".region", "want the region that requests to the host are signed for, such as eu-west-1%s", given(h.Region))
		}
	}
	v.duration("iam.sts.timeout", s.Timeout, 100*time.Millisecond, maxSTSTimeout)
	v.number("iam.sts.maxInFlight", int64(s.MaxInFlight), 1, maxSTSInFlight)
	v.number("iam.sts.perSecond", int64(s.PerSecond), 1, maxPerSecond)
	v.number("iam.sts.burst", int64(s.Burst), 1, maxPerSecond)
	v.duration("iam.sts.cacheTTL", s.CacheTTL, 0, maxTokenCache)
	v.number("iam.sts.cacheSize", int64(s.CacheSize), 1, maxCacheSize)
}

func (v *validation) ec2(e *EC2) {
	v.duration("iam.ec2.cacheTTL", e.CacheTTL, time.Second, maxEC2Cache)
	v.number("iam.ec2.cacheSize", int64(e.CacheSize), 1, maxCacheSize)
	v.ec2Limits(e)
	v.vpcs("iam.ec2.vpcs", e.VPCs)
}

// ec2Limits checks the limits of all requests to EC2, including those about machines that
// join.
func (v *validation) ec2Limits(e *EC2) {
	v.number("iam.ec2.perSecond", int64(e.PerSecond), 1, maxPerSecond)
	v.number("iam.ec2.burst", int64(e.Burst), 1, maxPerSecond)
}

// vpcs checks the form of the ids of VPCs.
func (v *validation) vpcs(field string, ids []string) {
	v.list(field, ids, regexp.MustCompile(`^vpc-([0-9a-f]{8}|[0-9a-f]{17})$`).MatchString, "a VPC such as vpc-0123456789abcdef0")
}

// isRegion reports whether a name has the form of a region.
func isRegion(name string) bool {
	return regexp.MustCompile(`^[a-z]{2,6}(-[a-z]+)+-[0-9]+$`).MatchString(name)
}
