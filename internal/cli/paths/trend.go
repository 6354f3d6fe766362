package paths

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// pathsDocument is what a comparison reads of the JSON of attack-paths, of all its kinds.
type pathsDocument struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   *render.Metadata `json:"metadata"`
	// Target is the holding of --to.
	Target  attackpaths.Holding `json:"target"`
	Missing []command.Missing   `json:"missing"`
	// Classes are in AttackPathsOfNodes.
	Classes []struct {
		Nodes        []string `json:"nodes"`
		ClusterAdmin string   `json:"clusterAdmin"`
		Target       string   `json:"target"`
	} `json:"classes"`
	// Start and Reached are in AttackPaths, and in each of the Results of AttackPathsList.
	Start   attackpaths.Holding `json:"start"`
	Reached []struct {
		attackpaths.Holding
		Certainty string `json:"certainty"`
	} `json:"reached"`
	Results []pathsDocument `json:"results"`
}

// reaches is a start and what it reaches.
type reaches struct{ start, reached attackpaths.Holding }

// trend compares what is reached with an earlier document.
type trend struct {
	file    string
	earlier *pathsDocument
	// gained and lost are reached, or certain, in one of the two only. The others are unchanged.
	gained, lost, unchanged []trendRow
	// unsure is true if something could not be read, now or then.
	unsure bool
}

type trendRow struct {
	reaches
	before, after string
}

// readEarlier reads the document of --compare-with.
func readEarlier(file string) (*pathsDocument, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--compare-with: %w", err)
	}
	d := &pathsDocument{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("--compare-with: %s is not a document of attack-paths -o json: %w", file, strictjson.Explain(err))
	}
	kinds := []string{AttackPathsResult{}.DocumentKind(), AttackPathsResults{}.DocumentKind(), AttackPathsClasses{}.DocumentKind()}
	switch {
	case d.APIVersion != render.DocumentVersion:
		return nil, fmt.Errorf("--compare-with: %s has the apiVersion %q, want %s: write it again with this version of the program",
			file, d.APIVersion, render.DocumentVersion)
	case !slices.Contains(kinds, d.Kind):
		return nil, fmt.Errorf("--compare-with: %s is a document of the kind %q, want one of attack-paths -o json: %s",
			file, d.Kind, strings.Join(kinds, ", "))
	case d.Metadata == nil || d.Metadata.Cluster == nil:
		return nil, fmt.Errorf("--compare-with: %s does not say of which cluster it is: write it again with this version of the program",
			file)
	}
	return d, nil
}

// compare compares a result with an earlier document, and sets the exit status: 1 if something is new, else 2 if not
// everything could be read.
func (f *AttackPathsFlags) compare(a *command.App, result render.Document) (*trend, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	now := &pathsDocument{Kind: result.DocumentKind(), Metadata: a.Metadata}
	if err := json.Unmarshal(text, now); err != nil {
		return nil, err
	}
	if err := f.earlier.comparable(f.compareWith, now); err != nil {
		return nil, err
	}
	if uid := f.earlier.Metadata.Cluster.UID; uid == "" || now.Metadata.Cluster.UID == "" {
		a.Warn("it is not known whether %s is of the same cluster: it is of %s", f.compareWith, f.earlier.Metadata.Cluster.Origin)
	}
	before, after := f.earlier.facts(), now.facts()
	t := &trend{file: f.compareWith, earlier: f.earlier, unsure: f.earlier.unsure() || now.unsure()}
	for key, was := range before {
		switch is := after[key]; {
		case is == was:
			t.unchanged = append(t.unchanged, trendRow{key, was, is})
		case is != attackpaths.Certain.String():
			t.lost = append(t.lost, trendRow{key, was, cmp.Or(is, now.absent())})
		}
	}
	for key, is := range after {
		if was := before[key]; was == "" || was != is && is == attackpaths.Certain.String() {
			t.gained = append(t.gained, trendRow{key, cmp.Or(was, f.earlier.absent()), is})
		}
	}
	for _, rows := range [][]trendRow{t.gained, t.lost, t.unchanged} {
		slices.SortFunc(rows, func(a, b trendRow) int {
			return cmp.Or(strings.Compare(a.start.String(), b.start.String()), strings.Compare(a.reached.String(), b.reached.String()))
		})
	}
	a.Status = command.StatusAllowed
	switch {
	case len(t.gained) > 0:
		a.Status = command.StatusDenied
	case t.unsure:
		a.Status = command.StatusUndecided
	}
	return t, nil
}

// comparable refuses a document that answers another question than the result now.
func (d *pathsDocument) comparable(file string, now *pathsDocument) error {
	was, is := d.Metadata.Cluster, now.Metadata.Cluster
	certainOnly := func(d *pathsDocument) bool { return strings.Contains(d.Metadata.CommandLine, "--certain-only") }
	switch {
	case d.Kind != now.Kind:
		return command.Usagef("--compare-with: %s is a document of the kind %s, and this command makes %s: give the same starts",
			file, d.Kind, now.Kind)
	case was.UID != "" && is.UID != "" && was.UID != is.UID, was.Context != "" && is.Context != "" && was.Origin != is.Origin:
		return command.Usagef("--compare-with: %s is of another cluster: %s, not %s", file, was.Origin, is.Origin)
	case d.Target != now.Target:
		return command.Usagef("--compare-with: %s has %s, and this command %s: give the same --to", file, d.targetText(), now.targetText())
	case d.Start != now.Start:
		return command.Usagef("--compare-with: %s is about %s, and this command about %s: give the same start", file, d.Start, now.Start)
	case certainOnly(d) != certainOnly(now):
		return command.Usagef("--compare-with: only one of %s and this command has --certain-only: give both the same", file)
	}
	return nil
}

func (d *pathsDocument) targetText() string {
	if d.Target == (attackpaths.Holding{}) {
		return "no target"
	}
	return "the target " + holdingText(d.Target)
}

// unsure reports whether something could not be read.
func (d *pathsDocument) unsure() bool {
	return len(d.Missing) > 0 || slices.ContainsFunc(d.Results, func(r pathsDocument) bool { return r.unsure() })
}

// absent says what holds of what a document does not have: unknown is not no.
func (d *pathsDocument) absent() string {
	if d.unsure() {
		return "Unknown"
	}
	return attackpaths.No.String()
}

// facts are the starts with what they reach, and how certainly.
func (d *pathsDocument) facts() map[reaches]string {
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

// Text writes what is new and gone; -o wide also what is unchanged.
func (t *trend) Text(p *render.Page) {
	p.Line("%s new, %s gone, %s unchanged since %s (%s)", countStyle(attackpaths.Certain, len(t.gained)),
		render.Thousands(len(t.lost)), render.Thousands(len(t.unchanged)), t.earlier.Metadata.Date, t.file)
	if t.unsure {
		const unsure = "Not everything could be read, now or then: more may be reached, and what is gone may be reached still."
		p.Line("%s", render.Unsure.In(unsure))
	}
	groups := []struct {
		title string
		rows  []trendRow
	}{{"New", t.gained}, {"Gone", t.lost}, {"Unchanged", t.unchanged}}
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
			rows = append(rows, []string{holdingText(r.start), holdingText(r.reached), r.before, r.after})
		}
		p.Table(2, []string{"START", "REACHES", "BEFORE", "NOW"}, rows)
	}
}
