package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// mappingSource holds the mappings of one source, with the findings from reading them.
type mappingSource struct {
	name     string
	mappings *iam.Mappings
	findings []finding.Finding
	// written are all entries of mapRoles, including unusable ones, parsed as far as possible; nil if
	// they cannot be read. Their place has the object if each entry is a separate one.
	written []iam.Mapping
	// purposes are the purposes of roles by ARN, if the source has them.
	purposes map[string]Purpose
	// locate adds the line of the file to a place within the source.
	locate func(finding.Place) finding.Place
}

func (s *mappingSource) broken() bool { return slices.Contains(s.mappings.Broken, iam.MapRoles) }

// sources returns the cluster's sources of mappings, with all findings about their syntax.
func (c *Cluster) sources() []*mappingSource {
	var all []*mappingSource
	if c.AWSAuth != nil {
		// The lines of the file are added to its places later, so that messages with a place have the line within the key.
		m := c.AWSAuth
		s := &mappingSource{name: m.Place.Object, locate: m.locate, written: writtenRoles(m.Data[iam.MapRoles], "data."+iam.MapRoles)}
		s.mappings, s.findings = iam.ParseConfigMap(m.Data, m.Place.Object, finding.Place{Object: m.Place.Object})
		all = append(all, s)
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

func fargateProfile(f finding.Finding) finding.Finding {
	f.Code = FargateProfileARN
	f.Message = "the ARN names a Fargate profile, which signs nothing"
	f.Consequence = "the entry maps nobody: pods of the profile stay Pending, because their nodes do not join"
	f.Remedy = "write the ARN of the profile's pod execution role: " +
		"aws eks describe-fargate-profile --query fargateProfile.podExecutionRoleArn"
	return f
}

// locate adds the line of the file to a place in the ConfigMap.
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
		mapping, findings, ok := iam.ParseIdentityMapping(m.Name, m.Spec.ARN, m.Spec.Username, m.Spec.Groups)
		s.findings = append(s.findings, findings...)
		if ok || mapping.Unusable {
			mappings = append(mappings, mapping)
		}
		if !ok {
			s.written = append(s.written, iam.Mapping{
				Place: finding.Place{Object: object, Key: "spec"}, ARN: m.Spec.ARN, Username: m.Spec.Username, Groups: m.Spec.Groups,
			})
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

// writtenRoles parses the entries of mapRoles, and ignores unknown fields.
func writtenRoles(text, key string) []iam.Mapping {
	var entries []map[string]any
	if err := yaml.Unmarshal([]byte(text), &entries); err != nil {
		return nil
	}
	var written []iam.Mapping
	for i, e := range entries {
		role := iam.Mapping{Place: finding.Place{Key: fmt.Sprintf("%s[%d]", key, i)}}
		for name, value := range e {
			switch strings.ToLower(name) {
			case "rolearn":
				role.ARN, _ = value.(string)
			case "username":
				role.Username, _ = value.(string)
			case "groups":
				list, _ := value.([]any)
				for _, group := range list {
					if text, ok := group.(string); ok {
						role.Groups = append(role.Groups, text)
					}
				}
			}
		}
		written = append(written, role)
	}
	return written
}

// unusable returns the finding because of which an entry is not used. It returns false if the
// entry is used, or if another entry for the same role replaces it.
func (s *mappingSource) unusable(w iam.Mapping) (finding.Finding, bool) {
	within := func(at finding.Place) bool {
		of := w.Place
		return (of.Object == "" || at.Object == of.Object) && (at.Key == of.Key || strings.HasPrefix(at.Key, of.Key+"."))
	}
	used := slices.ContainsFunc(s.mappings.Roles, func(m iam.Mapping) bool { return within(m.Place) })
	i := slices.IndexFunc(s.findings, func(f finding.Finding) bool { return within(f.Place) && f.Severity == finding.Error })
	if used || i < 0 {
		return finding.Finding{}, false
	}
	return s.findings[i], true
}

// rules returns how the cluster's authenticator uses mappings: the one that was found, or
// aws-iam-authenticator, as on EKS.
func (e *examination) rules() iam.Rules {
	// The region of a credential is what its owner wrote; it says nothing about the roles.
	rules := iam.Rules{RolePaths: iam.Exact, Partition: partitionOfRegion(e.nodeRegion())}
	for _, a := range e.cluster.Authenticators {
		rules.Partition = cmp.Or(a.Partition, rules.Partition)
		if a.Kind == NodeAuthorizer {
			rules.Reserved = iam.Reserved(a.Reserved)
			rules.RolePaths = cmp.Or(iam.PathPolicy(a.RolePaths), iam.MatchName)
		}
	}
	return rules
}

func (e *examination) partitionOfRoles() string {
	partition := ""
	for _, r := range e.report.Roles {
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

func (e *examination) region() string {
	region := e.nodeRegion()
	for _, c := range e.cluster.Credentials {
		region = cmp.Or(region, c.Region)
	}
	return region
}

func (e *examination) nodeRegion() string {
	region := e.options.Region
	for i := range e.cluster.Nodes {
		if n := &e.cluster.Nodes[i]; region == "" {
			if _, ok := awsNode(n); ok {
				region = regionOf(n)
			}
		}
	}
	return region
}

// partitionOfRegion returns the partition of a region; empty without a region.
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

func (f *rolePredictor) authenticator(s *mappingSource) string {
	switch {
	case s.purposes != nil:
		return accessEntrySourceName // EKS itself
	case f.ours:
		return NodeAuthorizer
	}
	return IAMAuthenticator
}

// refused returns the outcome with node-authorizer for callers of a role that aws-iam-authenticator
// authenticates, or for which it uses another entry: node-authorizer refuses them if an entry for the
// ARN is unusable. It returns zero without such an entry.
func refused(sources []*mappingSource, own *mappingSource, arn string) Outcome {
	entry, in := unusableEntry([]*mappingSource{own}, arn)
	value, where := No, ""
	if in == nil {
		entry, in = unusableEntry(sources, arn)
		value = Unknown
	}
	if in == nil {
		return Outcome{}
	}
	mistake := "see the findings"
	for _, f := range slices.Backward(in.findings) {
		within := f.Place.Key == entry.Place.Key || strings.HasPrefix(f.Place.Key, entry.Place.Key+".")
		if f.Severity == finding.Error && f.Place.Object == entry.Place.Object && within {
			mistake = f.Message
		}
	}
	if in != own {
		where = " if it asks " + in.name + " before " + own.name
	}
	return Outcome{value, fmt.Sprintf("refuses its nodes%s: the entry at %s cannot be used (%s), and no other entry about this ARN counts",
		where, in.locate(entry.Place), mistake)}
}

func unusableEntry(sources []*mappingSource, arn string) (iam.Mapping, *mappingSource) {
	for _, s := range sources {
		for _, m := range s.mappings.Unusable {
			if arn != "" && (strings.EqualFold(m.ARN, arn) || strings.EqualFold(withoutPath(m.ARN), withoutPath(arn))) {
				return m, s
			}
		}
	}
	return iam.Mapping{}, nil
}

func (f *RolePrediction) takenText() string {
	switch {
	case f.NodeAuthorizer == (Outcome{}):
		return ""
	case f.Authenticator == IAMAuthenticator:
		return f.Authenticator + ", as on EKS"
	}
	return f.Authenticator
}
