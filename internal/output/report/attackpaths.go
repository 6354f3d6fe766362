package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// State is the state from which a result was computed.
type State struct {
	Origin            string `json:"origin"`
	KubernetesVersion string `json:"kubernetesVersion"`
}

// Missing is the state that could not be read.
type Missing struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// NotFollowed is a right, or a folder of nodes, that is reached and may give more than the paths.
type NotFollowed struct {
	What      string `json:"what"`
	Where     string `json:"where"`
	GrantedBy string `json:"grantedBy"`
	Why       string `json:"why"`
}

// AttackPaths is the result of the command attack-paths.
type AttackPaths struct {
	// AllNodes is true if the rows are all nodes, false if they are starts that were named.
	AllNodes bool `json:"allNodes"`
	// Target names what the paths lead to; empty for cluster-admin. With another, what rows say about cluster-admin is about
	// the target, and there are no cells.
	Target      string `json:"target,omitempty"`
	CertainOnly bool   `json:"certainOnly,omitempty"`
	// CertainCells is true if cells leave out what is only possible.
	CertainCells bool      `json:"certainCells,omitempty"`
	State        State     `json:"state"`
	Missing      []Missing `json:"missing"`
	// LeftOut is how much is only possible, and left out by CertainOnly.
	LeftOut int `json:"leftOut,omitempty"`
	// NotFollowed are the reached rights that may give more than the paths, each once.
	NotFollowed []NotFollowed `json:"notFollowed,omitempty"`
	// NotFollowedCount counts them in words, as the page's headline has it: "3 rights".
	NotFollowedCount string `json:"notFollowedCount,omitempty"`

	Rows  []attackpaths.OverviewRow `json:"-"`
	Cells []attackpaths.Cell        `json:"-"`
	// Advice is nil if it was not asked for.
	Advice *attackpaths.Advice `json:"-"`
	// Commands are a script that makes the changes of Advice.
	Commands string `json:"-"`
	// Summaries say what each technique does.
	Summaries map[attackpaths.Code]string `json:"-"`
}

// Page is the result as a page.
func (a AttackPaths) Page() Page {
	title := "Attack paths"
	if a.AllNodes {
		title = "Attack paths of all nodes"
	}
	if a.Target != "" {
		title += " to " + a.Target
	}
	return Page{Kind: KindAttackPaths, Title: title + ": " + a.State.Origin, Data: a.encode()}
}

// pathsData is the result for the page's scripts. Everything that repeats is in a list once, and
// is referred to by its place. The first string is empty.
type pathsData struct {
	AttackPaths
	// Strings are all others' texts.
	Strings []string `json:"strings"`
	// Holdings are kind, namespace and name.
	Holdings [][3]int `json:"holdings"`
	// Steps are technique, from, to, impersonated identity or -1, reason, binding, what it depends
	// on, 1 if the step is only possible, and remedy or -1.
	Steps [][9]int `json:"steps"`
	// Remedies say what to change so that a step is no longer there.
	Remedies []*verdict.Remedy `json:"remedies"`
	// Paths are lists of steps. The first one is empty.
	Paths [][]int `json:"paths"`
	// Cells are namespace, kind, how many are certain, how many are possible, and start, then three
	// for each that is listed: holding, path, and 1 if it is only possible.
	Cells [][]int   `json:"cells"`
	Rows  []rowData `json:"rows"`
	// Techniques are the summaries of the techniques that steps use.
	Techniques map[string]string `json:"techniques"`
	// Links are the addresses of the sections about them; techniques of a file have none.
	Links map[string]string `json:"links"`
	// Attack are the ids in MITRE ATT&CK of the built-in techniques.
	Attack map[string]string `json:"attack"`
	Advice *adviceData       `json:"advice,omitempty"`
}

type rowData struct {
	Names        []string `json:"names"`
	ClusterAdmin string   `json:"clusterAdmin"`
	ControlPlane bool     `json:"controlPlane,omitempty"`
	Path         int      `json:"path,omitempty"`
	// Cells are places, each less the one before it. They ascend: cells are in the order of
	// namespaces and kinds.
	Cells []int32 `json:"cells,omitempty"`
}

// changeData is a change in one sentence, and how many nodes it helps alone.
type changeData struct {
	Text     string `json:"text"`
	Certain  int    `json:"certain"`
	Entirely int    `json:"entirely"`
}

type adviceData struct {
	Nodes        attackpaths.NodesThatReach `json:"nodes"`
	Alone        []changeData               `json:"alone"`
	NotEvaluated int                        `json:"notEvaluated,omitempty"`
	Set          []changeData               `json:"set"`
	Left         attackpaths.NodesThatReach `json:"left"`
	// Remaining is the place of a path that is left.
	Remaining int `json:"remaining,omitempty"`
	// Placing says where to run the pods that give the target.
	Placing  *attackpaths.Placing `json:"placing,omitempty"`
	Commands string               `json:"commands,omitempty"`
}

type encoder struct {
	data     *pathsData
	strings  map[string]int
	holdings map[attackpaths.Holding]int
	steps    map[[9]int]int
	remedies map[string]int
	paths    map[string]int
}

func (a AttackPaths) encode() *pathsData {
	e := &encoder{
		data: &pathsData{
			AttackPaths: a,
			Strings:     []string{}, Holdings: [][3]int{}, Steps: [][9]int{}, Remedies: []*verdict.Remedy{},
			Paths: [][]int{}, Cells: [][]int{}, Rows: []rowData{},
			Techniques: map[string]string{}, Links: map[string]string{}, Attack: map[string]string{},
		},
		strings: map[string]int{}, holdings: map[attackpaths.Holding]int{}, steps: map[[9]int]int{},
		remedies: map[string]int{}, paths: map[string]int{},
	}
	e.data.Missing = append([]Missing{}, a.Missing...)
	e.string("")
	e.path(nil)
	order, places := cellOrder(a.Cells)
	for _, at := range order {
		e.data.Cells = append(e.data.Cells, e.cell(a.Cells[at]))
	}
	for _, r := range a.Rows {
		e.data.Rows = append(e.data.Rows, e.row(r, places))
	}
	if a.Advice != nil {
		e.data.Advice = e.advice(a.Advice)
		e.data.Advice.Commands = a.Commands
	}
	for _, t := range attackpaths.Techniques() {
		if _, used := e.strings[string(t.Code)]; used {
			e.data.Attack[string(t.Code)] = t.ATTACK
		}
	}
	for _, s := range e.data.Steps {
		code := e.data.Strings[s[0]]
		e.data.Techniques[code], e.data.Links[code] = a.Summaries[attackpaths.Code(code)], reference.Link(reference.Technique, code)
	}
	return e.data
}

// cellOrder orders cells by namespace and kind, and says for each at which place it is then.
func cellOrder(cells []attackpaths.Cell) (order, places []int32) {
	order, places = make([]int32, len(cells)), make([]int32, len(cells))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cells[a].Compare(cells[b]) })
	for i, at := range order {
		places[at] = int32(i)
	}
	return order, places
}

func place[K comparable, V any](index map[K]int, k K, list *[]V, v V) int {
	at, ok := index[k]
	if !ok {
		at = len(*list)
		index[k] = at
		*list = append(*list, v)
	}
	return at
}

func (e *encoder) string(text string) int { return place(e.strings, text, &e.data.Strings, text) }

func (e *encoder) holding(h attackpaths.Holding) int {
	if at, ok := e.holdings[h]; ok {
		return at
	}
	return place(e.holdings, h, &e.data.Holdings, [3]int{e.string(h.Kind), e.string(h.Namespace), e.string(h.Name)})
}

func (e *encoder) step(s attackpaths.Step) int {
	impersonates, possible, grantedBy := -1, 0, ""
	if s.Impersonates != nil {
		impersonates = e.holding(*s.Impersonates)
	}
	if s.Certainty != attackpaths.Certain {
		possible = 1
	}
	if s.GrantedBy != nil {
		grantedBy = s.GrantedBy.String()
	}
	row := [9]int{
		e.string(string(s.Technique)), e.holding(s.From), e.holding(s.To), impersonates, e.string(s.Because),
		e.string(grantedBy), e.string(s.DependsOn), possible, e.remedy(s.Remedy),
	}
	return place(e.steps, row, &e.data.Steps, row)
}

func (e *encoder) remedy(r *verdict.Remedy) int {
	if r == nil {
		return -1
	}
	text, err := json.Marshal(r)
	if err != nil {
		return -1 // its values are JSON
	}
	return place(e.remedies, string(text), &e.data.Remedies, r)
}

func (e *encoder) path(steps []attackpaths.Step) int {
	list := make([]int, len(steps))
	for i, s := range steps {
		list[i] = e.step(s)
	}
	return place(e.paths, fmt.Sprint(list), &e.data.Paths, list)
}

func (e *encoder) cell(c attackpaths.Cell) []int {
	list := []int{e.string(c.Namespace), e.string(c.Kind), c.Certain, c.Possible, e.holding(c.From)}
	for _, x := range c.Listed {
		possible := 0
		if x.Certainty != attackpaths.Certain {
			possible = 1
		}
		list = append(list, e.holding(x.Holding), e.path(x.Path), possible)
	}
	return list
}

func (e *encoder) row(r attackpaths.OverviewRow, places []int32) rowData {
	d := rowData{Names: r.Nodes, ClusterAdmin: r.ClusterAdmin.String(), ControlPlane: r.ControlPlane, Path: e.path(r.Path)}
	for _, c := range r.Cells {
		d.Cells = append(d.Cells, places[c])
	}
	slices.Sort(d.Cells)
	for i := len(d.Cells) - 1; i > 0; i-- {
		d.Cells[i] -= d.Cells[i-1]
	}
	return d
}

func (e *encoder) advice(a *attackpaths.Advice) *adviceData {
	return &adviceData{
		Nodes: a.Nodes, Alone: changesData(a.Alone), NotEvaluated: a.NotEvaluated, Set: changesData(a.Set),
		Left: a.Left, Remaining: e.path(a.Remaining), Placing: a.Placing,
	}
}

func changesData(all []attackpaths.Change) []changeData {
	list := []changeData{}
	for _, c := range all {
		list = append(list, changeData{c.String(), c.Certain, c.Entirely})
	}
	return list
}
