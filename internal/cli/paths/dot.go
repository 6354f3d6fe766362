package paths

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// holdingColours show what an attacker owns.
var holdingColours = map[string]string{
	attackpaths.ClusterAdmin: "#e06666", attackpaths.Node: "#f6b26b", attackpaths.ServiceAccount: "#9fc5e8", attackpaths.User: "#9fc5e8",
	attackpaths.Group: "#9fc5e8", attackpaths.Namespace: "#d9ead3", attackpaths.Secret: "#ffe599",
}

// Drawing shows the steps to everything that is reached. Secrets and pods from which nothing
// follows are one box for each namespace and way.
func (r AttackPathsResult) Drawing() *render.Graph {
	title := "attack paths from " + r.Start.String()
	if r.Target != nil {
		title += " to " + r.targetText()
	}
	g := render.NewGraph(title)
	r.draw(g)
	return g
}

func (r AttackPathsResult) draw(g *render.Graph) {
	used := map[attackpaths.Holding]bool{r.Start: true}
	for _, x := range r.Reached {
		for _, step := range x.Path {
			used[step.From] = true
		}
	}
	addHolding(g, r.Start)
	ends := map[attackpaths.Step]int{}
	for _, x := range r.Reached {
		for _, step := range x.Path {
			switch {
			case step.From == step.To:
			case !used[step.To] && (step.To.Kind == attackpaths.Secret || step.To.Kind == attackpaths.Pod):
				end := attackpaths.Step{Technique: step.Technique, From: step.From, To: step.To, Certainty: step.Certainty}
				end.To.Name = ""
				ends[end]++
			default:
				addStep(g, step)
			}
		}
	}
	for end, n := range ends {
		end.To.Name = render.Count(n, map[string]string{attackpaths.Secret: "secret", attackpaths.Pod: "pod"}[end.To.Kind])
		addStep(g, end)
	}
}

func addStep(g *render.Graph, step attackpaths.Step) {
	addHolding(g, step.From)
	addHolding(g, step.To)
	g.Edge(step.From, step.To, string(step.Technique), step.Certainty != attackpaths.Certain)
}

func addHolding(g *render.Graph, h attackpaths.Holding) {
	g.Vertex(h)
	g.Colour(h, holdingColours[h.Kind])
	switch {
	case h.Namespace != "":
		g.Group(h, "namespace "+h.Namespace)
	case h.Kind == attackpaths.Namespace:
		g.Group(h, "namespace "+h.Name)
	}
}

func (r AttackPathsResults) Drawing() *render.Graph {
	g := render.NewGraph(fmt.Sprintf("attack paths from %s", render.Count(len(r.Results), "start")))
	for _, result := range r.Results {
		result.draw(g)
	}
	return g
}

// Drawing shows the path to the target of each class of nodes, which is one box.
func (r AttackPathsClasses) Drawing() *render.Graph {
	title := "attack paths from all nodes"
	if r.Target != nil {
		title += " to " + targetText(r.Target)
	}
	g := render.NewGraph(title)
	for _, c := range r.Classes {
		class := attackpaths.Holding{Kind: attackpaths.Node, Name: c.Nodes[0]}
		if len(c.Nodes) > 1 {
			class.Name = fmt.Sprintf("%s and %s more", c.Nodes[0], render.Thousands(len(c.Nodes)-1))
		}
		addHolding(g, class)
		for _, step := range c.Path {
			if step.From.Kind == attackpaths.Node && step.From.Name == c.Nodes[0] {
				step.From = class
			}
			if step.From != step.To {
				addStep(g, step)
			}
		}
	}
	return g
}
