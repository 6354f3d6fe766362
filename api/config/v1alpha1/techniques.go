package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TechniquesKind is the kind of a file with techniques.
const TechniquesKind = "Techniques"

// Techniques is a file with techniques for attack paths, which the user adds to those that are
// built in.
type Techniques struct {
	metav1.TypeMeta `json:",inline"`

	Techniques []Technique `json:"techniques"`
}

// Technique says what a right on resources of an operator gives.
type Technique struct {
	// Code is a name in CamelCase that no other technique has.
	Code string `json:"code"`
	// Summary says in one line what the technique does.
	Summary string `json:"summary"`
	// Attack is the id in MITRE ATT&CK, for example T1098.
	Attack string `json:"attack,omitempty"`
	// AllowedBy are requests of which any is enough.
	AllowedBy []TechniqueRequest `json:"allowedBy"`
	// With are requests that are needed besides, each of them. Another identity that the
	// attacker holds may make them.
	With []TechniqueRequest `json:"with,omitempty"`
	// Gives are the objects that the attacker then owns.
	Gives []TechniqueHolding `json:"gives"`
	// DependsOn names a further condition. With one the technique is possible, without it certain.
	DependsOn string `json:"dependsOn,omitempty"`
	// Remedy says how to take the technique away.
	Remedy string `json:"remedy"`
}

// TechniqueRequest is a kind of request.
type TechniqueRequest struct {
	// Verbs has one verb or more. Any of them is enough.
	Verbs []string `json:"verbs"`
	// APIGroup is "" for the core group.
	APIGroup    string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Scope is the scope of the resource: cluster or namespace.
	Scope ResourceScope `json:"scope,omitempty"`
	// Namespace is the namespace of the object; empty for any. In With it may be SameNamespace.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the object; empty for any.
	Name string `json:"name,omitempty"`
}

// ResourceScope says whether objects of a resource are in namespaces, as in a
// CustomResourceDefinition. The default is Namespaced.
type ResourceScope string

// The scopes of resources.
const (
	NamespacedScope ResourceScope = "Namespaced"
	ClusterScope    ResourceScope = "Cluster"
)

// SameNamespace stands for the namespace in which a right of AllowedBy holds.
const SameNamespace = "{namespace}"

// TechniqueHolding is something that an attacker can own.
type TechniqueHolding struct {
	Kind HoldingKind `json:"kind"`
	// Namespace is the namespace of a service account or secret. It may be SameNamespace, or
	// "*" for every namespace.
	Namespace string `json:"namespace,omitempty"`
	// Name may end in "*", for all that begin so. That of a namespace may be SameNamespace.
	Name string `json:"name,omitempty"`
}

// HoldingKind is a kind of holding.
type HoldingKind string

// The kinds of holdings that a technique can give.
const (
	HoldingServiceAccount HoldingKind = "ServiceAccount"
	HoldingNode           HoldingKind = "Node"
	HoldingSecret         HoldingKind = "Secret"
	HoldingNamespace      HoldingKind = "Namespace"
	HoldingUser           HoldingKind = "User"
	HoldingGroup          HoldingKind = "Group"
	HoldingClusterAdmin   HoldingKind = "ClusterAdmin"
)

// MaxTechniquesFile is the maximum size of a file with techniques, in bytes.
const MaxTechniquesFile = 1 << 20

// ParseTechniques reads a file with techniques, YAML or JSON, and validates it. The error is
// Problems. Taken has the codes that techniques may not have, with what has them: "a built-in
// technique". Names are case-sensitive. Anchors and aliases are rejected.
func ParseTechniques(file []byte, taken map[string]string) (*Techniques, error) {
	if len(file) > MaxTechniquesFile {
		return nil, Problems{{Message: "the file is larger than 1 MiB: divide it"}}
	}
	techniques := &Techniques{}
	d, err := decodeFile(file, techniques, &techniques.TypeMeta, TechniquesKind, "docs/reference/techniques/own.md has an example")
	if err != nil {
		return nil, err
	}
	v := techniqueValidation{taken: taken, given: func(field string) bool { return d.lines[field] > 0 }}
	v.techniques(techniques)
	if problems := d.located(v.problems); len(problems) > 0 {
		return nil, problems
	}
	return techniques, nil
}
