package query

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ReachResult is everything that a node's credential can read, write and mint.
type ReachResult struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Quarantine refuses the requests of the node, but for those that it excepts; empty if there is none.
	Quarantine string `json:"quarantine,omitempty"`
	// Totals count the objects by namespace and kind. Those without a namespace come
	// first.
	Totals []reachTotal `json:"totals"`
	// Objects are the objects that the node reaches through its pods or attachments,
	// sorted by kind, namespace and name.
	Objects []reachedObject `json:"objects"`
	// Standing are the rights of the node that do not depend on its pods.
	Standing []standingGrant `json:"standing"`
	// RBAC are the rights that roles and bindings grant; null if the state has none.
	RBAC []rbacGrant `json:"rbac"`
	// Missing is the missing state, because of which the node may reach more.
	Missing []command.Missing `json:"missing,omitempty"`
	// AttackPaths counts what the node leads to in the end; omitted if --kind or -n select a
	// part, and if the state has no inventory.
	AttackPaths *reachPaths `json:"attackPaths,omitempty"`
	// State is the cluster state that was asked.
	State command.StateInfo `json:"state"`

	narrowed bool
	// inParts is true if only a part of a cluster was read, isLarge if the files have many pods.
	inParts, isLarge bool
}

// reachTotal counts objects of one kind in one namespace.
type reachTotal struct {
	// Objects is how many objects of Kind in Namespace the node reaches; Namespace is empty for kinds
	// without one.
	Namespace string `json:"namespace,omitempty"`
	Kind      string `json:"kind"`
	Objects   int    `json:"objects"`
}

// reachedObject is one object, what the node may do with it, and why.
type reachedObject struct {
	verdict.Object
	// Group and Resource are the group and resource of requests for the object; an empty Group is the core group.
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// May are the rights of the node to the object.
	May []permission `json:"may"`
	// Audiences are the audiences of tokens that the node may request for a service
	// account, from the volumes of its pods; "" is the API server's own audience. The
	// field is omitted for other kinds, without audiences, and if any audience is
	// allowed. RBAC may grant others (verb request-serviceaccounts-token-audience).
	Audiences []string `json:"audiences,omitempty"`
	// AnyAudience is true for service accounts if audiences are not restricted.
	AnyAudience bool `json:"anyAudience,omitempty"`
	// Paths are all paths from the object to the node, the shortest first.
	Paths []verdict.Path `json:"paths"`
}

// permission is a set of verbs on an object or on one of its subresources.
type permission struct {
	// Verbs are the verbs that the node may use, with Subresource if there is one, else with the object itself.
	Verbs       []string `json:"verbs"`
	Subresource string   `json:"subresource,omitempty"`
	// Conditions are the requirements of NodeRestriction for the written object.
	Conditions []noderestriction.Condition `json:"conditions,omitempty"`
}

func (p permission) String() string {
	text := strings.Join(p.Verbs, ",")
	if p.Subresource != "" {
		text += " " + p.Subresource
	}
	if len(p.Conditions) > 0 {
		text += " if it passes " + nameRestriction
	}
	return text
}

func NewReach(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reach NODE",
		Short: "List everything that a node may read and write, and the tokens that it may request",
		Long: `Lists everything that a node's credential can reach: secrets, config maps,
service account tokens, volumes and claims, each with the path that grants it;
then what the node may do with any pods on it, and what RBAC adds. Writes that
NodeRestriction refuses in any case are left out; where it lets a node write only what
has the node's own name, that name is listed; of others, the JSON form lists the
conditions that the written object has to meet.

The line "in total" says what the node leads to in the end, through everything that it
can read and act as; attack-paths shows the way. Of a cluster, reach reads only what
concerns the node, and of files with more than 20,000 pods it follows no paths:
--in-total reads and follows all, for this line.

The answer names missing objects of files, and marks the list incomplete.

The table shows the first of each kind; -o wide and -o json show all.

Exit status: 0 the list was made, also if it is incomplete, 2 the node is not known, or
the state could not be read.`,
		Example: `  node-authorizer reach worker-1

  # Only the secrets of one namespace
  node-authorizer reach worker-1 --kind secrets -n shop

  # Also what the node leads to in the end; this reads the whole cluster
  node-authorizer reach worker-1 --in-total

  # Everything, for a script or as a drawing
  node-authorizer reach worker-1 -o json
  node-authorizer reach worker-1 -o dot | dot -Tsvg > reach.svg`,
		Args: command.Exactly("NODE"),
	}
	state := command.AddState(a, cmd)
	cmd.ValidArgsFunction = state.NodeArgument
	state.AddBehaviour(cmd)
	state.AddChanges(cmd)
	state.AddNamespace(cmd, "show only what is in this namespace (default: all)")
	kinds := cmd.Flags().StringSlice("kind", nil, "show only objects of this type: secrets, cm, pv …; can be repeated")
	command.Must(cmd.RegisterFlagCompletionFunc("kind", command.Complete(resources.Offline().Names)))
	inTotal := cmd.Flags().Bool("in-total", false,
		"also say what the node leads to in the end; of a cluster, this reads all objects (default: of files with up to 20,000 pods)")
	output := command.AddFormat(cmd, render.ForRows(render.Dot, render.HTML)...)
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		narrowed := len(*kinds) > 0 || state.Namespace != ""
		state.Inventory = *inTotal || len(state.From) > 0 && !cmd.Flags().Changed("in-total") && !narrowed
		if !*inTotal {
			state.PartsAbove = maxSmall
		}
		state.Parts = !state.Inventory || narrowed
		s, err := state.Load(cmd)
		if err != nil {
			return err
		}
		only, err := s.NewFilter(*kinds, state.Namespace)
		if err != nil {
			return err
		}
		node := command.NodeName(args[0])
		if err := s.RequireNode(node, ""); err != nil {
			return err
		}
		result, err := Reach(s, node, only)
		if err != nil {
			return err
		}
		unasked := !cmd.Flags().Changed("in-total")
		result.isLarge = unasked && !isSmall(s)
		if (*inTotal || unasked && isSmall(s)) && !only.Narrows() && s.State.Inventory != nil {
			if result.AttackPaths, err = attackPathsTotal(s, node); err != nil {
				return err
			}
		}
		a.WarnMissing(result.Missing, command.ListIncomplete)
		return a.Write(result, format)
	})
	command.AddClusters(a, cmd, state.Connection)
	command.AddWatch(a, cmd)
	return cmd
}

// maxSmall is the number of pods up to which reach follows attack paths without being asked to: in
// less than half a second.
const maxSmall = 20_000

func isSmall(s *command.Session) bool {
	return !s.State.Partial() && s.State.Graph.Stats().Vertices[graph.Pod] <= maxSmall
}

// Reach lists what the credential of a node may do.
func Reach(s *command.Session, node string, only command.Filter) (ReachResult, error) {
	if err := s.ReadReach(node); err != nil {
		return ReachResult{}, err
	}
	said := s.Node.Reach(node)
	result := ReachResult{
		Node: node, Quarantine: s.QuarantineOf(node), Objects: []reachedObject{}, Standing: []standingGrant{},
		Missing: append(missingForReach(s), s.AsMissing(s.LackingForNode(node))...), State: s.Info(), narrowed: only.Narrows(),
		inParts: s.State.Partial() && !s.State.OfFile(),
	}
	limits := &writeLimits{Session: s, who: command.NewIdentity(nodeidentity.User(node))}
	for _, g := range said.Standing {
		if s.KeepsStanding(only, g) {
			result.Standing = append(result.Standing, limits.standing(g)...)
		}
	}
	for _, g := range said.Related {
		if only.Object(g) {
			result.add(g, limits)
		}
	}
	for i := range result.Objects {
		o := &result.Objects[i]
		for _, g := range said.Standing {
			o.addStanding(g, limits)
		}
		if o.hasAudiences() {
			o.addAudiences(s)
		}
	}
	result.Totals = totals(result.Objects)
	if s.State.RBACLoaded() {
		grants, err := rbacGrants(s, command.NewIdentity(nodeidentity.User(node)), only)
		if err != nil {
			return result, err
		}
		result.RBAC = grants
	}
	return result, s.State.ReadErr()
}

// add joins consecutive grants for the same object.
func (r *ReachResult) add(g nodeauthz.Grant, limits *writeLimits) {
	object := verdict.Object{Kind: g.Kind, Namespace: g.Namespace, Name: g.Name}
	if last := len(r.Objects) - 1; last < 0 || r.Objects[last].Object != object {
		r.Objects = append(r.Objects, reachedObject{Object: object, Group: g.Group, Resource: g.Resource, Paths: g.Paths})
	}
	r.Objects[len(r.Objects)-1].add(limits.permissions(g))
}

func totals(objects []reachedObject) []reachTotal {
	counts := map[reachTotal]int{}
	for _, o := range objects {
		counts[reachTotal{Namespace: o.Namespace, Kind: o.Kind}]++
	}
	all := []reachTotal{}
	for t, n := range counts {
		t.Objects = n
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b reachTotal) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind))
	})
	return all
}

// Drawing shows every path to the node.
func (r ReachResult) Drawing() *render.Graph {
	g := render.NewGraph("reach of node " + r.Node)
	g.Vertex(verdict.Object{Kind: "Node", Name: r.Node})
	for _, o := range r.Objects {
		for _, path := range o.Paths {
			g.Path(path)
		}
	}
	return g
}

func (r ReachResult) Page() report.Page {
	data := struct {
		ReachResult
		// AttackPathsUnknown is true if more may be reached in the end.
		AttackPathsUnknown bool `json:"attackPathsUnknown"`
	}{r, r.AttackPaths != nil && r.AttackPaths.unread}
	return report.Page{Kind: report.KindReach, Title: "Reach of node " + r.Node + ": " + r.State.Origin, Data: data}
}

func (ReachResult) DocumentKind() string { return "Reach" }
