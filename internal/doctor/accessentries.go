package doctor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// AccessEntry is an EKS access entry. It maps an AWS principal like an entry of aws-auth. EKS
// stores it outside of the cluster, and it takes precedence over aws-auth.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html
type AccessEntry struct {
	Place finding.Place `json:"-"`
	// The case of the fields differs between the EKS API, CloudFormation and custom resources.
	ARN string `json:"principalArn,case:ignore"`
	// Type is a type such as EC2_LINUX, EC2_WINDOWS, FARGATE_LINUX, HYBRID_LINUX, EC2 or
	// STANDARD; empty if only the principal is known.
	Type     string   `json:"type,case:ignore"`
	Username string   `json:"username,case:ignore"`
	Groups   []string `json:"kubernetesGroups,case:ignore"`
}

// accessEntrySourceName is the name of the source in messages.
const accessEntrySourceName = "EKS access entries"

func (r *reader) addAccessEntry(a AccessEntry, at finding.Place) {
	if a.Place = at; a.ARN != "" {
		r.cluster.AccessEntries = append(r.cluster.AccessEntries, a)
	}
}

// accessEntryResource reads a custom resource. The default type is STANDARD. A reference in place of a principal can
// only be resolved by the controller.
func (r *reader) accessEntryResource(d *manifest.Document) error {
	var resource struct {
		Spec struct {
			AccessEntry
			ForProvider *AccessEntry `json:"forProvider"`
		} `json:"spec"`
		Status struct {
			AtProvider AccessEntry `json:"atProvider"`
		} `json:"status"`
	}
	if err := d.Decode(&resource); err != nil {
		return err
	}
	a, made := resource.Spec.AccessEntry, resource.Status.AtProvider
	if resource.Spec.ForProvider != nil {
		a = *resource.Spec.ForProvider
	}
	a.ARN, a.Type = cmp.Or(a.ARN, made.ARN), cmp.Or(a.Type, made.Type, "STANDARD")
	r.addAccessEntry(a, place(d, "spec"))
	return nil
}

// accessEntryAnswer reads output of the AWS command line: one entry, or a list of principals.
// It returns false for other documents.
func (r *reader) accessEntryAnswer(d *manifest.Document) (bool, error) {
	if !bytes.Contains(d.JSON(), []byte(`"accessEntr`)) {
		return false, nil
	}
	var answer struct {
		Entry   *AccessEntry      `json:"accessEntry"`
		Entries []json.RawMessage `json:"accessEntries"`
	}
	if err := d.Decode(&answer); err != nil {
		return true, err
	}
	if answer.Entry == nil && answer.Entries == nil {
		return false, nil
	}
	r.cluster.AccessEntriesGiven = true
	at := func(path ...string) finding.Place {
		at := place(d, path...)
		at.Object = "EKS access entry"
		return at
	}
	if answer.Entry != nil {
		r.addAccessEntry(*answer.Entry, at())
	}
	for i, text := range answer.Entries {
		path := []string{"accessEntries", fmt.Sprint(i)}
		var a AccessEntry
		if json.Unmarshal(text, &a.ARN) != nil && json.Unmarshal(text, &a) != nil {
			return true, d.Fail(errors.New("want the ARN of a principal, as aws eks list-access-entries prints them"), path...)
		}
		r.addAccessEntry(a, at(path...))
	}
	return true, nil
}

func (a *AccessEntry) purpose() Purpose {
	switch a.Type {
	case "EC2_LINUX", "EC2_WINDOWS", "EC2":
		return ForNodes
	case "FARGATE_LINUX":
		return ForFargate
	case "HYBRID_LINUX":
		return ForHybrid
	case "":
		return ""
	}
	return ForOthers
}

// mapping returns the mapping of the entry in EKS. Missing fields have the documented defaults.
func (a *AccessEntry) mapping() iam.Mapping {
	m := iam.Mapping{
		Kind: iam.RoleMapping, ARN: a.ARN, Username: a.Username, Groups: a.Groups, Source: accessEntrySourceName, Place: a.Place,
	}
	switch a.purpose() {
	case ForNodes:
		m.Username = cmp.Or(m.Username, nodeUsername)
	case ForFargate, ForHybrid:
		m.Username = cmp.Or(m.Username, sessionUsername)
	default:
		m.Username = cmp.Or(m.Username, a.ARN)
		return m
	}
	always := []string{nodeidentity.Group}
	switch a.Type {
	case "EC2_WINDOWS":
		always = append(always, groupWindowsProxy)
	case "FARGATE_LINUX":
		always = append(always, groupNodeProxier)
	}
	for _, group := range always {
		if !slices.Contains(m.Groups, group) {
			m.Groups = append(slices.Clip(m.Groups), group)
		}
	}
	return m
}

func accessEntrySource(list []AccessEntry) *mappingSource {
	s := &mappingSource{
		name: accessEntrySourceName, purposes: map[string]Purpose{}, locate: func(at finding.Place) finding.Place { return at },
	}
	var mappings []iam.Mapping
	for i := range list {
		purpose := list[i].purpose()
		if purpose == "" || !strings.Contains(list[i].ARN, ":role/") {
			continue
		}
		m := list[i].mapping()
		m.ARN = withoutPath(m.ARN) // EKS compares roles as they are, and their sessions have no path
		s.purposes[m.ARN] = purpose
		mappings = append(mappings, m)
	}
	s.mappings, _ = iam.Collect(mappings) // one given twice, from two places, says the same
	return s
}

// accessEntry returns the access entry of a role; nil if none is known. It prefers an entry
// with a type.
func (c *Cluster) accessEntry(arn string) *AccessEntry {
	var found *AccessEntry
	for i := range c.AccessEntries {
		a := &c.AccessEntries[i]
		if strings.EqualFold(withoutPath(a.ARN), withoutPath(arn)) && (found == nil || found.Type == "") {
			found = a
		}
	}
	return found
}

func (e *examination) accessEntriesFirst(sources []*mappingSource) {
	for _, s := range sources {
		for _, m := range s.mappings.Roles {
			a := e.cluster.accessEntry(m.ARN)
			if a == nil {
				continue
			}
			f := finding.Finding{
				Code: AccessEntryFirst, Severity: finding.Info, Place: s.locate(m.Place), Subject: m.ARN,
				Message:     fmt.Sprintf("the role has an EKS access entry too (%s), which counts", a.Place),
				Consequence: "this entry has no effect",
				Remedy:      "delete this entry, if nodes and people do what they should with the access entry",
			}
			if a.Type != "" && a.mapping().Username != m.Username {
				f.Severity = finding.Warning
				f.Consequence = fmt.Sprintf("this entry has no effect: the role is %s and not %s", a.mapping().Username, m.Username)
			}
			e.found(f)
		}
	}
}

// templateEntry is the type of an access entry in CloudFormation.
// Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-accessentry.html
const templateEntry = "AWS::EKS::AccessEntry"

func (r *reader) missingAccessEntries(why string) {
	r.cluster.Missing = append(r.cluster.Missing, Missing{
		accessEntrySourceName, why, "give what aws eks list-access-entries and describe-access-entry print",
	})
}

// cloudFormation reads the access entries of a template. It is false for other documents.
func (r *reader) cloudFormation(d *manifest.Document) (bool, error) {
	if !bytes.Contains(d.JSON(), []byte(templateEntry)) {
		return false, nil
	}
	var template struct {
		Resources map[string]json.RawMessage `json:"Resources"`
	}
	if json.Unmarshal(d.JSON(), &template) != nil || template.Resources == nil {
		return true, d.Fail(errors.New("not a template of CloudFormation: want a mapping in Resources"))
	}
	for _, name := range slices.Sorted(maps.Keys(template.Resources)) {
		var resource struct {
			Type       string                     `json:"Type"`
			Condition  string                     `json:"Condition"`
			Properties map[string]json.RawMessage `json:"Properties"`
		}
		if json.Unmarshal(template.Resources[name], &resource) != nil || resource.Type != templateEntry {
			continue
		}
		r.templateEntry(d, name, resource.Properties, resource.Condition)
	}
	return true, nil
}

// templateEntry takes an access entry, or notes what only CloudFormation can resolve.
func (r *reader) templateEntry(d *manifest.Document, name string, properties map[string]json.RawMessage, condition string) {
	at := place(d, "Resources", name)
	at.Object = accessEntrySourceName
	if condition != "" {
		r.missingAccessEntries(fmt.Sprintf("%s is made on the condition %s, which only CloudFormation knows", at, condition))
		return
	}
	var a AccessEntry
	for property, into := range map[string]any{
		"PrincipalArn": &a.ARN, "Type": &a.Type, "Username": &a.Username, "KubernetesGroups": &a.Groups,
	} {
		if text := properties[property]; text != nil &&
			(json.Unmarshal(text, into) != nil || hasFunction(d, text, "Resources", name, "Properties", property)) {
			r.missingAccessEntries(fmt.Sprintf("the %s of %s is what only CloudFormation knows (%s)", property, name, at))
			return
		}
	}
	a.Place, a.Type = at, cmp.Or(a.Type, "STANDARD")
	r.cluster.AccessEntries = append(r.cluster.AccessEntries, a)
}

// hasFunction reports whether a property that is a text, or a list of them, is made by a
// function in its short form (!Ref), whose name is lost where YAML is read.
func hasFunction(d *manifest.Document, value json.RawMessage, property ...string) bool {
	paths := [][]string{property}
	var items []json.RawMessage
	_ = json.Unmarshal(value, &items) // a text has none
	for i := range items {
		paths = append(paths, append(slices.Clone(property), fmt.Sprint(i)))
	}
	text, first := d.Source()
	lines := bytes.Split(text, []byte("\n"))
	return slices.ContainsFunc(paths, func(path []string) bool {
		at := d.Line(path...) - first
		return at >= 0 && at < len(lines) && bytes.Contains(lines[at], []byte(" !"))
	})
}

// eksctl reads the access entries of a ClusterConfig.
// Source: https://docs.aws.amazon.com/eks/latest/eksctl/access-entries.html
func (r *reader) eksctl(d *manifest.Document) error {
	var c struct {
		AccessConfig struct {
			Entries []struct {
				AccessEntry
				KubernetesUsername string `json:"kubernetesUsername"`
			} `json:"accessEntries"`
		} `json:"accessConfig"`
		Mappings []json.RawMessage `json:"iamIdentityMappings"`
	}
	if err := d.Decode(&c); err != nil {
		return err
	}
	for i, e := range c.AccessConfig.Entries {
		at := place(d, "accessConfig", "accessEntries", fmt.Sprint(i))
		if e.ARN == "" {
			r.missingAccessEntries(fmt.Sprintf("the principalARN at %s is missing", at))
		}
		e.Username, e.Type = e.KubernetesUsername, cmp.Or(e.Type, "STANDARD")
		r.addAccessEntry(e.AccessEntry, at)
	}
	if len(c.Mappings) > 0 {
		r.missingAccessEntries(fmt.Sprintf(
			"iamIdentityMappings at %s are not read: eksctl writes them into aws-auth, whose content counts",
			place(d, "iamIdentityMappings"),
		))
	}
	return nil
}
