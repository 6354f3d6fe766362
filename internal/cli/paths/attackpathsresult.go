package paths

import (
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// AttackPathsResult has the paths from one start.
type AttackPathsResult struct {
	attackpaths.Result
	// Missing is the state that could not be read, or that files lack: more may be reached.
	Missing []command.Missing `json:"missing,omitempty"`
	// State is the cluster state that was searched.
	State command.StateInfo `json:"state"`
	// LeftOut is how many holdings are possible, and left out because only what is certain was asked for.
	LeftOut int `json:"leftOut,omitempty"`

	maxPaths int
	// nodes is how many nodes a class has of which this is one.
	nodes int
	// custom are the techniques that the user adds.
	custom      []attackpaths.CustomTechnique
	certainOnly bool
	strict      bool
}

// AttackPathsResults are the results of several starts.
type AttackPathsResults struct {
	// Results are in the order of the starts.
	Results []AttackPathsResult `json:"results"`
	// State is the cluster state that was searched.
	State command.StateInfo `json:"state"`

	custom      []attackpaths.CustomTechnique
	certainOnly bool
}

// AttackPathsClasses are the nodes grouped by the objects that they reach.
type AttackPathsClasses struct {
	// Classes are nodes that reach the same; each node is in one.
	Classes []attackpaths.Class `json:"classes"`
	// Nodes is how many nodes there are, without the target.
	Nodes int `json:"nodes"`
	// Target is what --to names: the paths of the classes lead to it, or to cluster-admin, which owns it.
	Target *attackpaths.Holding `json:"target,omitempty"`
	// LeftOut is how many nodes possibly reach the target, which is left out because only what is certain
	// was asked for.
	LeftOut int `json:"leftOut,omitempty"`
	// Missing is the state that could not be read, or that files lack: more may be reached.
	Missing []command.Missing `json:"missing,omitempty"`
	// WhatToChange is set if it was asked for.
	WhatToChange *attackpaths.Advice `json:"whatToChange,omitempty"`
	// State is the cluster state that was searched.
	State command.StateInfo `json:"state"`

	custom      []attackpaths.CustomTechnique
	certainOnly bool
	// certainCells is true if the overview leaves out what is only possible.
	certainCells bool
	// overview counts the objects that the classes reach in each namespace; only a page shows it.
	overview *attackpaths.Overview
}

// maxOverview is for how many nodes times service accounts and secrets an overview lists what is only
// possible: often every node may get every pod.
const maxOverview = 50_000_000

func (r *AttackPathsResult) status() int {
	switch {
	case r.certainty() != attackpaths.No:
		return command.StatusDenied
	case len(r.Missing) > 0, r.strict && len(r.NotFollowed) > 0:
		return command.StatusUndecided
	}
	return command.StatusAllowed
}

func (AttackPathsResult) DocumentKind() string { return "AttackPaths" }

func (AttackPathsResults) DocumentKind() string { return "AttackPathsList" }

func (AttackPathsClasses) DocumentKind() string { return "AttackPathsOfNodes" }
