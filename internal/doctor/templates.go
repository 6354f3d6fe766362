package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/manifest"
)

const (
	groupEksctl = "eksctl.io"
	// templateEntry is the type of an access entry in CloudFormation.
	// Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-accessentry.html
	templateEntry = "AWS::EKS::AccessEntry"
	// resourceAccessEntries is how what is not known of access entries is called.
	resourceAccessEntries = "EKS access entries"
	giveAccessEntries     = "give what aws eks list-access-entries and describe-access-entry print"
)

// missingAccessEntries notes entries that are given in a form that is not read.
func (r *reader) missingAccessEntries(why string) {
	r.cluster.Missing = append(r.cluster.Missing, Missing{resourceAccessEntries, why, giveAccessEntries})
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
	at.Object = resourceAccessEntries
	if condition != "" {
		r.missingAccessEntries(fmt.Sprintf("%s is made on the condition %s, which only CloudFormation knows", at, condition))
		return
	}
	var fields accessEntryFields
	for property, into := range map[string]any{
		"PrincipalArn": &fields.PrincipalARN, "Type": &fields.Type, "Username": &fields.Username,
		"KubernetesGroups": &fields.KubernetesGroups,
	} {
		if text := properties[property]; text != nil &&
			(json.Unmarshal(text, into) != nil || hasFunction(d, text, "Resources", name, "Properties", property)) {
			r.missingAccessEntries(fmt.Sprintf("the %s of %s is what only CloudFormation knows (%s)", property, name, at))
			return
		}
	}
	if fields.Type == "" {
		fields.Type = "STANDARD"
	}
	r.cluster.AccessEntries = append(r.cluster.AccessEntries, fields.entry(at))
}

// hasFunction reports whether a property that is a text, or a list of them, is made by a
// function in its short form (!Ref), whose name is lost where YAML is read.
func hasFunction(d *manifest.Document, value json.RawMessage, property ...string) bool {
	text, first := d.Source()
	lines := bytes.Split(text, []byte("\n"))
	short := func(path ...string) bool {
		at := d.Line(path...) - first
		return at >= 0 && at < len(lines) && bytes.Contains(lines[at], []byte(" !"))
	}
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		return short(property...)
	}
	for i := range items {
		if short(append(slices.Clone(property), fmt.Sprint(i))...) {
			return true
		}
	}
	return short(property...)
}

// eksctl reads the access entries of a ClusterConfig.
// Source: https://docs.aws.amazon.com/eks/latest/eksctl/access-entries.html
func (r *reader) eksctl(d *manifest.Document) error {
	var c struct {
		AccessConfig struct {
			Entries []struct {
				accessEntryFields
				KubernetesUsername string `json:"kubernetesUsername"`
			} `json:"accessEntries"`
		} `json:"accessConfig"`
		Mappings []json.RawMessage `json:"iamIdentityMappings"`
	}
	if err := json.Unmarshal(d.JSON(), &c); err != nil {
		return d.Fail(errors.New("not a ClusterConfig of eksctl: " + jsonProblem(err)))
	}
	for i, e := range c.AccessConfig.Entries {
		at := place(d, "accessConfig", "accessEntries", fmt.Sprint(i))
		if e.PrincipalARN == "" {
			r.missingAccessEntries(fmt.Sprintf("the principalARN at %s is missing", at))
			continue
		}
		if e.Username = e.KubernetesUsername; e.Type == "" {
			e.Type = "STANDARD"
		}
		r.cluster.AccessEntries = append(r.cluster.AccessEntries, e.entry(at))
	}
	if len(c.Mappings) > 0 {
		r.missingAccessEntries(fmt.Sprintf(
			"iamIdentityMappings at %s are not read: eksctl writes them into aws-auth, whose content counts",
			place(d, "iamIdentityMappings"),
		))
	}
	return nil
}
