package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// whoCanResult is the nodes that can do something.
type whoCanResult struct {
	Request question `json:"request"`
	// Nodes that can, sorted by name.
	Nodes []nodeThatCan `json:"nodes"`
	// NodesAsked is the number of nodes in the state.
	NodesAsked int `json:"nodesAsked"`
	// Missing is what could not be read, so that nodes may be missing.
	Missing []missing `json:"missing,omitempty"`
	State   stateInfo `json:"state"`
}

type nodeThatCan struct {
	Node      string `json:"node"`
	DecidedBy string `json:"decidedBy"`
	// Paths are all relations through which it can; empty when it could
	// without any.
	Paths []verdict.Path `json:"paths,omitempty"`
	// Message says why, for nodes that need no path.
	Message string `json:"message,omitempty"`
}

func newWhoCan(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who-can VERB TYPE/NAME",
		Short: "List the nodes that may do it, and through which pods",
		Long: `Lists the nodes that may do something, with the pods through which they may.

Arguments are those of can-i. Exit status: 0 some node may, 1 none, 2 could not
decide.`,
		Example: `  # Which nodes can read this secret?
  node-authorizer who-can get secrets/db -n shop

  # Which nodes can mint tokens for this service account?
  node-authorizer who-can create serviceaccounts/api --subresource token -n shop`,
		Args:              questionArgs,
		ValidArgsFunction: completeQuestion,
	}
	state, flags := addState(a, cmd), addQuestion(cmd)
	state.addBehaviour(cmd)
	state.addNamespace(cmd, "namespace of the object (default: the kubeconfig's, else \"default\")")
	output := addFormat(cmd, render.Table, render.Wide, render.JSON, render.YAML, render.Dot)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := output.parse()
		if err != nil {
			return err
		}
		if _, err := flags.parseSelector(); err != nil {
			return err
		}
		s, err := state.load(cmd)
		if err != nil {
			return err
		}
		q, err := s.question(a, args, flags, state.namespace != "")
		if err != nil {
			return err
		}
		result, err := s.whoCan(cmd.Context(), q)
		if err != nil {
			return err
		}
		a.warnMissing(result.Missing)
		a.status = result.status()
		return a.write(result, format)
	}
	return cmd
}

// whoCan asks the chain for every node that the state knows.
func (s *session) whoCan(ctx context.Context, q question) (whoCanResult, error) {
	known := s.knownNodes()
	if len(known) == 0 {
		return whoCanResult{}, fmt.Errorf("%s names no nodes: nobody can be asked about", s.state.Origin)
	}
	result := whoCanResult{Request: q, Nodes: []nodeThatCan{}, NodesAsked: len(known), State: s.info()}
	var paths map[string][]verdict.Path
	kind, related := nodeauthz.KindOf(q.Group, q.Resource)
	if related && q.Name != "" {
		paths = s.node.PathsByNode(kind, q.Namespace, q.Name)
	}
	for _, node := range known {
		req := q.request(newIdentity(nodeidentity.User(node)))
		decision, by, err := s.chain.Decide(ctx, req)
		if err != nil {
			return result, fmt.Errorf("deciding about node %s: %w", node, err)
		}
		if decision == verdict.Allow {
			can := nodeThatCan{Node: node, DecidedBy: by}
			if by == chain.NameNode {
				can.Paths = paths[node]
			}
			if len(can.Paths) == 0 {
				if can.Message, err = s.reasonWhy(ctx, req); err != nil {
					return result, fmt.Errorf("explaining the decision about node %s: %w", node, err)
				}
			}
			result.Nodes = append(result.Nodes, can)
		}
	}
	if len(result.Nodes) < len(known) {
		if related {
			result.Missing = s.missing(holders(kind))
		} else {
			result.Missing = s.missing(nil)
		}
	}
	return result, nil
}

// reasonWhy is the message of a decision that rests on no path.
func (s *session) reasonWhy(ctx context.Context, req *nodeauthz.Request) (string, error) {
	said, err := s.chain.Explain(ctx, req)
	if err != nil {
		return "", err
	}
	return mainReason(said, newIdentity(req.User, req.Groups)).Message, nil
}

func (r whoCanResult) status() int {
	switch {
	case len(r.Nodes) > 0:
		return statusAllowed
	case len(r.Missing) > 0:
		return statusUndecided
	}
	return statusDenied
}

// whoCanRows bounds the table; wide shows all.
const whoCanRows = 50

func (r whoCanResult) Text(p *render.Page) {
	count := render.Bad.In("none")
	if len(r.Nodes) > 0 {
		count = render.Good.In(render.Thousands(len(r.Nodes)))
	}
	p.Line("%s of %s can %s", count, render.Count(r.NodesAsked, "node"), r.Request)
	if len(r.Nodes) == 0 {
		return
	}
	p.Line("")
	shown := r.Nodes
	if !p.Wide() {
		shown = shown[:min(whoCanRows, len(shown))]
	}
	var rows [][]string
	for _, n := range shown {
		rows = append(rows, []string{n.Node, n.DecidedBy, n.through(p.Wide())})
	}
	p.Table(0, []string{"NODE", "BY", "THROUGH"}, rows)
	if more := len(r.Nodes) - len(shown); more > 0 {
		p.Line("… and %s more (use -o wide or -o json)", render.Thousands(more))
	}
}

// through names the pods, or other objects on the node, that the paths lead
// through: three of them, or all.
func (n nodeThatCan) through(all bool) string {
	var holders []string
	for _, path := range n.Paths {
		last := path[len(path)-1].From.String()
		if !slices.Contains(holders, last) {
			holders = append(holders, last)
		}
	}
	if len(holders) == 0 {
		return n.Message
	}
	const few = 3
	if all || len(holders) <= few {
		return strings.Join(holders, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(holders[:few], ", "), render.Thousands(len(holders)-few))
}

// Drawing shows all paths to all nodes that can.
func (r whoCanResult) Drawing() *render.Graph {
	g := render.NewGraph("who can " + r.Request.String())
	for _, n := range r.Nodes {
		g.Vertex(verdict.Object{Kind: "Node", Name: n.Node})
		for _, path := range n.Paths {
			g.Path(path)
		}
	}
	return g
}
