package paths

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// AttackPathsTrend is how the answer of attack-paths differs from an earlier one to the same question.
type AttackPathsTrend struct {
	// File is the file of the earlier document.
	File string `json:"file"`
	// Earlier is the metadata of the earlier document.
	Earlier *render.Metadata `json:"earlier"`
	// SameCluster is false if it is not known that both documents are of one cluster: nothing is decided then.
	SameCluster bool `json:"sameCluster"`
	// Complete is false if something could not be read, earlier or now: more may be reached, and what is gone may be reached still.
	Complete bool `json:"complete"`
	// New is reached now, or certain now, and was not in the earlier document; never null.
	New []trendRow `json:"new"`
	// Gone was reached in the earlier document, or certain, and is not now; never null.
	Gone []trendRow `json:"gone"`
	// Unchanged is reached as in the earlier document; never null.
	Unchanged []trendRow `json:"unchanged"`

	// ofNodes is true if the starts are all nodes.
	ofNodes bool
}

// trendRow is a start and a holding that it reaches, now or earlier.
type trendRow struct {
	// Start is where the path starts.
	Start attackpaths.Holding `json:"start"`
	// Reaches is the holding.
	Reaches attackpaths.Holding `json:"reaches"`
	// Before is No, Possible, Certain, or Unknown if not everything could be read.
	Before string `json:"before"`
	// Now is one of the same words.
	Now string `json:"now"`
}

// earlierPaths is the part of the JSON of attack-paths that a comparison needs, for all its kinds.
type earlierPaths struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   *render.Metadata `json:"metadata"`
	// Target is the holding of --to.
	Target  attackpaths.Holding `json:"target"`
	Missing []command.Missing   `json:"missing"`
	// Classes are in AttackPathsOfNodes.
	Classes []struct {
		Nodes        []string          `json:"nodes"`
		ClusterAdmin string            `json:"clusterAdmin"`
		Target       string            `json:"target"`
		NotFollowed  []json.RawMessage `json:"notFollowed"`
	} `json:"classes"`
	// Start and Reached are in AttackPaths, and in each of the Results of AttackPathsList.
	Start   attackpaths.Holding `json:"start"`
	Reached []struct {
		attackpaths.Holding
		Certainty string `json:"certainty"`
	} `json:"reached"`
	NotFollowed []json.RawMessage `json:"notFollowed"`
	Results     []earlierPaths    `json:"results"`
}

// sameQuestion are the flags that leave the question as it is: two documents are compared if they differ only in these, and in
// connection flags. The starts, and the target of --to, are compared as they were parsed.
var sameQuestion = []string{
	"from", "namespace", "to", "all-nodes", "all-serviceaccounts", "strict", "what-to-change", "fix", "max-paths", "output",
	"compare-with", "watch", "watch-interval",
}

// options are what was asked, for the metadata of the document: the starts and each flag that changes the answer.
func (f *AttackPathsFlags) options(cmd *cobra.Command) map[string]string {
	options := f.state.Options(cmd, sameQuestion...)
	switch {
	case f.allNodes:
		options["START"] = "all nodes"
	case f.allAccounts:
		options["START"] = "all service accounts"
	default:
		options["START"] = holdingNames(f.starts)
	}
	if f.target != nil {
		options["--to"] = holdingName(*f.target)
	}
	return options
}

func (f *AttackPathsFlags) readEarlier(format render.Format) error {
	if f.compareWith == "" {
		return nil
	}
	if f.fix || slices.Contains([]render.Format{render.Dot, render.SARIF, render.HTML}, format) {
		return command.Usagef("--compare-with has no script, graph, SARIF or page: leave out --fix, and -o %s", format)
	}
	text, err := os.ReadFile(f.compareWith)
	if err != nil {
		return fmt.Errorf("--compare-with: %w", err)
	}
	d := &earlierPaths{}
	if err := json.Unmarshal(text, d); err != nil {
		return fmt.Errorf("--compare-with: %s is not a document of attack-paths -o json: %w", f.compareWith, strictjson.Explain(err))
	}
	kinds := []string{AttackPathsResult{}.DocumentKind(), AttackPathsResults{}.DocumentKind(), AttackPathsClasses{}.DocumentKind()}
	switch {
	case d.APIVersion != render.DocumentVersion:
		return fmt.Errorf("--compare-with: %s has the apiVersion %q, want %s: write it again with this version of the program",
			f.compareWith, d.APIVersion, render.DocumentVersion)
	case !slices.Contains(kinds, d.Kind):
		return fmt.Errorf("--compare-with: %s is a document of the kind %q, want one of attack-paths -o json: %s",
			f.compareWith, d.Kind, strings.Join(kinds, ", "))
	case d.Metadata == nil || d.Metadata.Cluster == nil || d.Metadata.Options == nil:
		return fmt.Errorf("--compare-with: %s does not say what it is about: write it again with this version of the program",
			f.compareWith)
	}
	f.earlier = d
	return nil
}

func (f *AttackPathsFlags) compare(a *command.App, result render.Document) (*AttackPathsTrend, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	now := &earlierPaths{Metadata: a.Metadata}
	if err := json.Unmarshal(text, now); err != nil {
		return nil, err
	}
	t := &AttackPathsTrend{
		File: f.compareWith, Earlier: f.earlier.Metadata, Complete: f.earlier.complete(f.strict) && now.complete(f.strict),
		New: []trendRow{}, Gone: []trendRow{}, Unchanged: []trendRow{}, ofNodes: f.allNodes,
	}
	// Clusters are told apart by UID; the same address may lead to another cluster.
	was, is := t.Earlier.Cluster, a.Metadata.Cluster
	t.SameCluster = was.UID != "" && is.UID != ""
	if t.SameCluster && was.UID != is.UID || !t.SameCluster && was.Context != "" && is.Context != "" && was.Origin != is.Origin {
		return nil, command.Usagef("--compare-with: %s is of another cluster: %s, not %s", t.File, was.Origin, is.Origin)
	}
	if differ := differingOptions(f.compareWith, f.earlier.Metadata.Options, a.Metadata.Options); differ != "" {
		return nil, command.Usagef("--compare-with: %s answers another question: %s; ask the same", f.compareWith, differ)
	}
	t.compareFacts(f.earlier, now)
	return t, nil
}

// differingOptions lists what was asked in only one of two documents: first in the earlier one.
func differingOptions(file string, was, is map[string]string) string {
	var differ []string
	list := func(of, other map[string]string, document string) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if of[name] != other[name] {
				differ = append(differ, fmt.Sprintf("%s has %s %s", document, name, of[name]))
			}
		}
	}
	list(was, is, file)
	list(is, was, "this command")
	return strings.Join(differ, ", ")
}

func (t *AttackPathsTrend) compareFacts(earlier, now *earlierPaths) {
	certain := attackpaths.Certain.String()
	before, after := earlier.facts(), now.facts()
	for key, was := range before {
		switch is := after[key]; {
		case is == was:
			t.Unchanged = append(t.Unchanged, trendRow{key.start, key.reached, was, is})
		case is != certain:
			t.Gone = append(t.Gone, trendRow{key.start, key.reached, was, cmp.Or(is, now.absent())})
		}
	}
	for key, is := range after {
		if was := before[key]; was == "" || was != is && is == certain {
			t.New = append(t.New, trendRow{key.start, key.reached, cmp.Or(was, earlier.absent()), is})
		}
	}
	for _, rows := range [][]trendRow{t.New, t.Gone, t.Unchanged} {
		slices.SortFunc(rows, func(a, b trendRow) int {
			return cmp.Or(strings.Compare(a.Start.String(), b.Start.String()), strings.Compare(a.Reaches.String(), b.Reaches.String()))
		})
	}
}

// complete reports whether everything could be read, and, if strict, all rights are followed.
func (d *earlierPaths) complete(strict bool) bool {
	for _, c := range d.Classes {
		if strict && len(c.NotFollowed) > 0 {
			return false
		}
	}
	incomplete := func(r earlierPaths) bool { return !r.complete(strict) }
	return len(d.Missing) == 0 && (!strict || len(d.NotFollowed) == 0) && !slices.ContainsFunc(d.Results, incomplete)
}

// absent is the certainty of what a document does not list: unknown is not no.
func (d *earlierPaths) absent() string {
	if d.complete(false) {
		return attackpaths.No.String()
	}
	return unknown
}

type reaches struct{ start, reached attackpaths.Holding }

func (d *earlierPaths) facts() map[reaches]string {
	all := map[reaches]string{}
	for _, c := range d.Classes {
		target := d.Target
		if target.Kind == "" {
			target.Kind = attackpaths.ClusterAdmin
		}
		certainty := cmp.Or(c.Target, c.ClusterAdmin)
		for _, node := range c.Nodes {
			if certainty != attackpaths.No.String() {
				all[reaches{attackpaths.Holding{Kind: attackpaths.Node, Name: node}, target}] = certainty
			}
		}
	}
	for _, r := range append(d.Results, *d) {
		for _, x := range r.Reached {
			all[reaches{r.Start, x.Holding}] = x.Certainty
		}
	}
	return all
}

func (t *AttackPathsTrend) status() int {
	switch {
	case !t.SameCluster:
		return command.StatusUndecided
	case len(t.New) > 0:
		return command.StatusDenied
	case !t.Complete:
		return command.StatusUndecided
	}
	return command.StatusAllowed
}

func (*AttackPathsTrend) DocumentKind() string { return "AttackPathsTrend" }

type trendGroup struct {
	title string
	rows  []trendRow
}

func (t *AttackPathsTrend) groups() []trendGroup {
	return []trendGroup{{"New", t.New}, {"Gone", t.Gone}, {"Unchanged", t.Unchanged}}
}

// unknown is why the answer may not be known.
func (t *AttackPathsTrend) unknown() (lines []string) {
	if !t.SameCluster {
		lines = append(lines, "It is not known whether both are of one cluster: the UID of service account kube-system/default, "+
			"which tells clusters apart, was not read, earlier or now. The earlier document is of "+t.Earlier.Cluster.Origin+".")
	}
	if !t.Complete {
		lines = append(lines, "Not everything could be read, earlier or now: more may be reached, and what is gone may be reached still.")
	}
	return lines
}

// Text writes what is new and gone; -o wide also what is unchanged.
func (t *AttackPathsTrend) Text(p *render.Page) {
	p.Line("%s new, %s gone, %s unchanged since %s (%s)", countStyle(attackpaths.Certain, len(t.New)),
		render.Thousands(len(t.Gone)), render.Thousands(len(t.Unchanged)), t.Earlier.Date, t.File)
	for _, line := range t.unknown() {
		p.Line("%s", render.Unsure.In(line))
	}
	groups := t.groups()
	if !p.Wide() {
		groups = groups[:2]
	}
	for _, g := range groups {
		if len(g.rows) == 0 {
			continue
		}
		p.Section("%s", g.title)
		var rows [][]string
		for _, r := range g.rows {
			rows = append(rows, []string{holdingText(r.Start), holdingText(r.Reaches), r.Before, r.Now})
		}
		p.Table(2, []string{"START", "REACHES", "BEFORE", "NOW"}, rows)
	}
}

// Listing has a row for each change, and for each reason why there may be more. Starts or holdings that are new have a name.
func (t *AttackPathsTrend) Listing() render.Rows {
	all := render.Rows{Field: "new", Columns: []string{"CHANGE", "START", "REACHES", "BEFORE", "NOW"}}
	for i, g := range t.groups() {
		for _, r := range g.rows {
			row := render.Row{Cells: []string{g.title, holdingName(r.Start), holdingName(r.Reaches), r.Before, r.Now}}
			switch {
			case i == 0 && t.ofNodes:
				row.Name = holdingName(r.Start)
			case i == 0:
				row.Name = holdingName(r.Reaches)
			}
			all.Rows = append(all.Rows, row)
		}
	}
	for _, line := range t.unknown() {
		all.Rows = append(all.Rows, render.Row{Cells: []string{unknown, "", "", "", line}})
	}
	return all
}
