package attackpaths

import (
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Holding is something that an attacker can own. Its kind is one of the constants below.
type Holding = verdict.Object

// The kinds of holdings.
const (
	// ClusterAdmin is every right on every object.
	ClusterAdmin = "ClusterAdmin"
	// Node is root on a machine.
	Node = "Node"
	// Pod is control of the processes in a pod's containers.
	Pod = "Pod"
	// ServiceAccount, User and Group are identities with which requests can be made.
	ServiceAccount = "ServiceAccount"
	User           = "User"
	Group          = "Group"
	// Secret is the content of a secret.
	Secret = "Secret"
	// Namespace is the right to have pods created in a namespace.
	Namespace = "Namespace"
)

// Certainty says whether something is reached.
type Certainty uint8

// No is not reached, Possible depends on what the state does not show, Certain is reached.
const (
	No Certainty = iota
	Possible
	Certain
)

// String returns "No", "Possible" or "Certain".
func (c Certainty) String() string { return [...]string{"No", "Possible", "Certain"}[c] }

// MarshalText implements encoding.TextMarshaler.
func (c Certainty) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Step is one use of a technique.
type Step struct {
	// Technique is the code of the technique, as in docs/techniques.md.
	Technique Code `json:"technique"`
	// From is held before the step, and To after it.
	From Holding `json:"from"`
	To   Holding `json:"to"`
	// Impersonates is the identity that From acts as in the step that follows. It is set if From
	// may do so for some requests only; To is From then.
	Impersonates *Holding `json:"impersonates,omitempty"`
	// Because says in one line what makes the step possible.
	Because string `json:"because"`
	// GrantedBy is the binding that gives the right which the step needs; nil if the step
	// needs none.
	GrantedBy *rbac.Ref `json:"grantedBy,omitempty"`
	// Certainty is Possible if something decides that the state does not show.
	Certainty Certainty `json:"certainty"`
	// DependsOn is what else decides; empty for a step that is certain.
	DependsOn string `json:"dependsOn,omitempty"`
	// Remedy is what to change so that the step is no longer there, whichever right gives it; other steps may
	// lead to the same. [Graph.AddRemedies] sets it. Steps share remedies: they must not be changed.
	Remedy *verdict.Remedy `json:"remedy,omitempty"`

	// place is where the graph has the step.
	place *stepPlace
}

// Reached is a holding with the shortest path to it.
type Reached struct {
	Holding
	// Certainty is Possible if something decides that the state does not show.
	Certainty Certainty `json:"certainty"`
	// Path leads from the start to the holding. A step that needs several holdings comes
	// after the steps to each of them.
	Path []Step `json:"path"`
}

// Result is what is reached from one start.
type Result struct {
	// Start is where the paths begin.
	Start Holding `json:"start"`
	// ClusterAdmin says whether the whole cluster is reached.
	ClusterAdmin Certainty `json:"clusterAdmin"`
	// Target is the holding to which a path was asked for; omitted if none was. Reached has at most one path then.
	Target *Target `json:"target,omitempty"`
	// Reached is everything that is reached without cluster-admin, and cluster-admin:
	// by kind, in the order of the constants from ClusterAdmin to Namespace, namespace and name.
	Reached []Reached `json:"reached"`
	// NotFollowed are the rights of identities that are reached which may give more than paths follow, sorted by
	// group and resource. Cluster-admin has none; where it is only possible, they are those that are certain.
	NotFollowed []NotFollowed `json:"notFollowed,omitempty"`
}
