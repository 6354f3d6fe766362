package doctor

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Codes of findings about attack paths.
const (
	NodesReachClusterAdmin     finding.Code = "NodesReachClusterAdmin"
	DaemonSetGivesClusterAdmin finding.Code = "DaemonSetGivesClusterAdmin"
)

// Paths is the input of the check about attack paths.
type Paths struct {
	// Graph is the graph of the cluster; nil if it could not be made, as Missing says.
	Graph *attackpaths.Graph
	// Nodes is the number of nodes.
	Nodes int
	// Missing is the state that could not be read, or that the files lack.
	Missing []Missing
}

// attackPaths finds nodes and DaemonSets that certainly lead to cluster-admin. What is only
// possible is left to the command attack-paths.
func attackPaths(e *examination) {
	p := e.options.Paths
	if p == nil || p.Graph == nil {
		return
	}
	for _, class := range p.Graph.AllNodes() {
		if class.ClusterAdmin == attackpaths.Certain && !class.ControlPlane {
			e.found(nodesReachClusterAdmin(class, p.Nodes))
		}
	}
	for _, d := range p.Graph.DaemonSets() {
		if d.ClusterAdmin == attackpaths.Certain {
			e.found(daemonSetGivesClusterAdmin(d, p.Nodes))
		}
	}
}

func (e *examination) pathsLack() []Missing {
	if p := e.options.Paths; p != nil {
		return p.Missing
	}
	return []Missing{{
		"pods", "no pods and nodes were given",
		"node-authorizer snapshot -o cluster.snapshot, and " + e.cluster.flag() + " cluster.snapshot",
	}}
}

func nodesReachClusterAdmin(class attackpaths.Class, nodes int) finding.Finding {
	first := class.Nodes[0]
	return finding.Finding{
		Code: NodesReachClusterAdmin, Severity: finding.Error, Place: finding.Place{Object: "Node " + first},
		Message: fmt.Sprintf("%d of %s %s to cluster-admin: who takes over such a machine owns the cluster; the path from %s: %s",
			len(class.Nodes), render.Count(nodes, "node"), render.Plural(len(class.Nodes), "leads", "lead"), first, pathText(class.Path)),
		Remedy: fmt.Sprintf("remove one step of each path: node-authorizer attack-paths node/%s shows this one, "+
			"and node-authorizer explain-code TECHNIQUE says how to take each step away", first),
	}
}

func daemonSetGivesClusterAdmin(d attackpaths.DaemonSet, nodes int) finding.Finding {
	name := d.Namespace + "/" + d.Name
	remedy := "give the DaemonSet a service account without these rights"
	for _, step := range d.Path {
		if step.GrantedBy != nil {
			remedy = fmt.Sprintf("remove the rights that %s gives, or bind a role that has only what the DaemonSet needs on its own node",
				step.GrantedBy)
			break
		}
	}
	return finding.Finding{
		Code: DaemonSetGivesClusterAdmin, Severity: finding.Error, Place: finding.Place{Object: "DaemonSet " + name},
		Subject: d.Through.String(),
		Message: fmt.Sprintf("it has pods on %d of %s and brings %s to them, which leads to cluster-admin: %s",
			len(d.Nodes), render.Count(nodes, "node"), d.Through, pathText(d.Path)),
		Remedy: remedy,
	}
}

// pathText renders a path in one line: "node web-1, serviceaccount kube-system/agent
// (PodTokenOnNode), cluster-admin (Masters, ClusterRoleBinding "agent")".
func pathText(path []attackpaths.Step) string {
	parts := []string{path[0].From.String()}
	for _, step := range path {
		to := step.To.String()
		if step.To.Kind == attackpaths.ClusterAdmin {
			to = "cluster-admin"
		}
		how := string(step.Technique)
		if step.GrantedBy != nil {
			how += ", " + step.GrantedBy.String()
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", to, how))
	}
	return strings.Join(parts, " → ")
}
