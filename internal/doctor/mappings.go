package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
)

// mappingSource is the mappings of one place, with what was found while they were
// read.
type mappingSource struct {
	name     string
	mappings *iam.Mappings
	findings []finding.Finding
	// written are the entries of mapRoles as they are written, used or not; nil if they
	// cannot be read at all.
	written []writtenRole
	// purposes are those of roles, by their ARNs, where the source says what they are for.
	purposes map[string]Purpose
	// locate completes a place within the source with the line of its file.
	locate func(finding.Place) finding.Place
}

// writtenRole is an entry of mapRoles, read as far as possible.
type writtenRole struct {
	// object is set where each entry is one of its own; key is the entry's in its
	// source.
	object, key   string
	arn, username string
	groups        []string
}

// broken reports whether the roles of the source could not be read.
func (s *mappingSource) broken() bool { return slices.Contains(s.mappings.Broken, iam.MapRoles) }

// sources are those of the cluster that hold mappings, with all findings about how
// they are written.
func (c *Cluster) sources() []*mappingSource {
	var all []*mappingSource
	if c.AWSAuth != nil {
		all = append(all, awsAuthSource(c.AWSAuth))
	}
	for _, f := range c.MappingFiles {
		all = append(all, fileSource(f))
	}
	if len(c.IdentityMappings) > 0 {
		all = append(all, identitySource(c.IdentityMappings))
	}
	for _, s := range all {
		for i, f := range s.findings {
			if f.Code == iam.MappingInvalid && strings.Contains(f.Message, ":fargateprofile/") {
				s.findings[i] = fargateProfile(f)
			}
		}
	}
	return all
}

// fargateProfile says of an ARN that cannot be mapped what should stand there.
func fargateProfile(f finding.Finding) finding.Finding {
	f.Code = FargateProfileARN
	f.Message = "the ARN is that of a Fargate profile, which signs nothing"
	f.Consequence = "the entry maps nobody: pods of the profile stay Pending, because their nodes do not join"
	f.Remedy = "write the ARN of the profile's pod execution role: " +
		"aws eks describe-fargate-profile --query fargateProfile.podExecutionRoleArn"
	return f
}

// awsAuthSource reads the ConfigMap. Its places get the file's lines afterwards, so
// that messages which name a place have its line in the key.
func awsAuthSource(m *ConfigMap) *mappingSource {
	s := &mappingSource{name: m.Place.Object, locate: m.locate}
	s.mappings, s.findings = iam.ParseConfigMap(m.Data, m.Place.Object, finding.Place{Object: m.Place.Object})
	s.written = writtenRoles(m.Data[iam.MapRoles], "data."+iam.MapRoles)
	return s
}

// locate finds the line of the file for a place in the ConfigMap.
func (m *ConfigMap) locate(at finding.Place) finding.Place {
	if m.Place.File == "" {
		return at
	}
	at.File, at.Line = m.Place.File, m.Place.Line
	key, _, _ := strings.Cut(strings.TrimPrefix(at.Key, "data."), "[")
	if line := m.KeyLines[key]; line > 0 {
		at.Line = line
	}
	if first := m.Lines[key]; first > 0 && at.KeyLine > 0 {
		at.Line = first + at.KeyLine - 1
	}
	return at
}

func fileSource(f MappingFile) *mappingSource {
	s := &mappingSource{name: f.Name}
	s.mappings, s.findings = iam.ParseFile(f.Text, f.Name)
	s.locate = func(at finding.Place) finding.Place {
		at.File, at.Object = f.Place.File, f.Place.Object
		switch {
		case f.Line > 0:
			at.Line = f.Line + max(at.Line, 1) - 1
		default:
			at.KeyLine, at.Line = at.Line, f.Place.Line
		}
		return at
	}
	return s
}

func identitySource(list []IdentityMapping) *mappingSource {
	s := &mappingSource{name: resourceMappings}
	places := map[string]finding.Place{}
	var mappings []iam.Mapping
	for _, m := range list {
		object := "IAMIdentityMapping " + m.Name
		places[object] = m.Place
		mapping, findings, ok := iam.ParseIdentityMapping(m.Name, m.ARN, m.Username, m.Groups)
		s.findings = append(s.findings, findings...)
		if ok || mapping.Unusable {
			mappings = append(mappings, mapping)
		}
		if !ok {
			s.written = append(s.written, writtenRole{object: object, key: "spec", arn: m.ARN, username: m.Username, groups: m.Groups})
		}
	}
	collected, findings := iam.Collect(mappings)
	s.mappings, s.findings = collected, append(s.findings, findings...)
	s.locate = func(at finding.Place) finding.Place {
		at.File, at.Line = places[at.Object].File, places[at.Object].Line
		return at
	}
	return s
}

// writtenRoles reads the entries of a list of roles as far as they have the fields of
// one.
func writtenRoles(text, key string) []writtenRole {
	var entries []map[string]any
	if err := yaml.Unmarshal([]byte(text), &entries); err != nil {
		return nil
	}
	var written []writtenRole
	for i, e := range entries {
		role := writtenRole{key: fmt.Sprintf("%s[%d]", key, i)}
		for name, value := range e {
			switch strings.ToLower(name) {
			case "rolearn":
				role.arn, _ = value.(string)
			case "username":
				role.username, _ = value.(string)
			case "groups":
				list, _ := value.([]any)
				for _, group := range list {
					if text, ok := group.(string); ok {
						role.groups = append(role.groups, text)
					}
				}
			}
		}
		written = append(written, role)
	}
	return written
}

// unusable returns the finding for which an entry is not used: nothing if it is used,
// or if another entry about the same role takes its place.
func (s *mappingSource) unusable(w writtenRole) (finding.Finding, bool) {
	within := func(at finding.Place) bool {
		return (w.object == "" || at.Object == w.object) && (at.Key == w.key || strings.HasPrefix(at.Key, w.key+"."))
	}
	for _, m := range s.mappings.Roles {
		if within(m.Place) {
			return finding.Finding{}, false
		}
	}
	for _, f := range s.findings {
		if within(f.Place) && f.Severity == finding.Error {
			return f, true
		}
	}
	return finding.Finding{}, false
}

// rules returns how the cluster's authenticator uses mappings: the one that was found, or
// aws-iam-authenticator, as on EKS.
func (e *examination) rules() iam.Rules {
	// The region of a credential is what its owner wrote; it says nothing about the roles.
	rules := iam.Rules{RolePaths: iam.Exact, Partition: partitionOfRegion(e.nodeRegion())}
	for _, a := range e.cluster.Authenticators {
		rules.Partition = cmp.Or(a.Partition, rules.Partition)
		if a.Kind == NodeAuthorizer {
			rules.Reserved = iam.Reserved{
				Prefixes:         a.Reserved.Prefixes,
				GrantedUsernames: a.Reserved.GrantedUsernames,
				GrantedGroups:    a.Reserved.GrantedGroups,
			}
			rules.RolePaths = cmp.Or(iam.PathPolicy(a.RolePaths), iam.MatchName)
		}
	}
	return rules
}

// partitionOfRoles is that of all mapped roles of nodes; empty if they differ, or there
// are none.
func (e *examination) partitionOfRoles() string {
	partition := ""
	for i := range e.report.Roles {
		r := &e.report.Roles[i]
		arn, err := iam.ParseARN(r.ARN)
		switch {
		case err != nil || !r.Purpose.makesNodes():
		case partition != "" && arn.Partition != partition:
			return ""
		default:
			partition = arn.Partition
		}
	}
	return partition
}

// region is where the nodes are, or a credential is made for; empty if that does not
// show.
func (e *examination) region() string {
	if region := e.nodeRegion(); region != "" {
		return region
	}
	for _, c := range e.cluster.Credentials {
		if c.Region != "" {
			return c.Region
		}
	}
	return ""
}

// nodeRegion is where the nodes are; empty if that does not show.
func (e *examination) nodeRegion() string {
	if e.options.Region != "" {
		return e.options.Region
	}
	for i := range e.cluster.Nodes {
		if _, ok := awsNode(&e.cluster.Nodes[i]); ok {
			if region := regionOf(&e.cluster.Nodes[i]); region != "" {
				return region
			}
		}
	}
	return ""
}

// partitionOfRegion is the partition in which a region is; empty without a region.
// Source: https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html
func partitionOfRegion(region string) string {
	if region == "" {
		return ""
	}
	for _, p := range []struct{ prefix, partition string }{
		{"cn-", "aws-cn"},
		{"us-gov-", "aws-us-gov"},
		{"us-isob-", "aws-iso-b"},
		{"us-isof-", "aws-iso-f"},
		{"us-iso-", "aws-iso"},
		{"eu-isoe-", "aws-iso-e"},
		{"eusc-", "aws-eusc"},
	} {
		if strings.HasPrefix(region, p.prefix) {
			return p.partition
		}
	}
	return "aws"
}
