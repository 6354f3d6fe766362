package render

import (
	"encoding/json"
	"fmt"
	"slices"
)

const (
	clusterColumn = "CLUSTER"
	// clusterRows is how many rows of a cluster the table has; wide shows all.
	clusterRows = 20
	// statusUndecided is the exit status of a question that could not be decided.
	statusUndecided = 2
)

// Clusters are the answers of several clusters to one command line. Each row begins with the context.
type Clusters struct {
	// Clusters are the answers, in the order of --context; sorted by context for --all-contexts.
	Clusters []ClusterAnswer `json:"clusters"`
}

// ClusterAnswer is the answer of one cluster.
type ClusterAnswer struct {
	// Context is the context of the kubeconfig by which the cluster was asked.
	Context string `json:"context"`
	// ExitStatus is the exit status that the command has if it asks this cluster alone.
	ExitStatus int `json:"exitStatus"`
	// Error says why there is no result; absent if there is one.
	Error string `json:"error,omitempty"`
	// Result is the document that the command writes if it asks this cluster alone, with its metadata; absent with an error.
	Result json.RawMessage `json:"result,omitempty"`

	listing Rows
}

// DocumentKind implements Document.
func (Clusters) DocumentKind() string { return "ClusterAnswers" }

// Add adds the result of a cluster, a Listing, with its metadata.
func (a *ClusterAnswer) Add(result any, m *Metadata) error {
	l, ok := result.(Listing)
	if !ok {
		return fmt.Errorf("context %s: a %T has no rows", a.Context, result)
	}
	encoded, err := documentJSON(l, m)
	if err != nil {
		return fmt.Errorf("writing the result of context %s: %w", a.Context, err)
	}
	a.Result, a.listing = encoded, l.Listing()
	return nil
}

// Listing has the rows of all clusters. A cluster without an answer has a row with the error.
func (r Clusters) Listing() Rows {
	of := r.listing()
	all := Rows{Columns: slices.Concat([]string{clusterColumn}, of.Columns, []string{"ERROR"})}
	for _, c := range r.Clusters {
		for _, row := range c.listing.Rows {
			if row.Name != "" {
				row.Name = c.Context + " " + row.Name
			}
			row.Cells = slices.Concat([]string{c.Context}, row.Cells, []string{""})
			all.Rows = append(all.Rows, row)
		}
		if c.Error != "" {
			cells := append(make([]string, len(of.Columns)+1), c.Error)
			cells[0] = c.Context
			all.Rows = append(all.Rows, Row{Cells: cells})
		}
	}
	return all
}

// listing has the columns, which all clusters share.
func (r Clusters) listing() (of Rows) {
	for _, c := range r.Clusters {
		if c.Error == "" {
			of = c.listing
		}
	}
	return of
}

// Text writes one table, and below it what the table does not show of a cluster.
func (r Clusters) Text(p *Page) {
	of := r.listing()
	columns := of.Columns
	if of.Short > 0 {
		columns = Shown(p, of.Short, columns)
	}
	var rows [][]string
	var notes []string
	for _, c := range r.Clusters {
		shown := Shown(p, clusterRows, c.listing.Rows)
		for _, row := range shown {
			rows = append(rows, append([]string{c.Context}, row.Cells[:len(columns)]...))
		}
		if more := len(c.listing.Rows) - len(shown); more > 0 {
			notes = append(notes, c.Context+": "+Thousands(more)+" more (use -o wide)")
		}
		switch {
		case c.Error != "":
			notes = append(notes, c.Context+": "+Bad.In("no answer")+": "+c.Error)
		case c.ExitStatus == statusUndecided:
			notes = append(notes, c.Context+": "+Unsure.In("not all is known")+", see the warnings")
		case len(shown) == 0:
			notes = append(notes, c.Context+": nothing found")
		}
	}
	if len(rows) > 0 {
		p.Table(0, append([]string{clusterColumn}, columns...), rows)
		if len(notes) > 0 {
			p.Line("")
		}
	}
	for _, note := range notes {
		p.Line("%s", note)
	}
}

// lines has the cells of -o custom-columns of all clusters, each line with the context first.
func (r Clusters) lines(columns []templateColumn) (all [][]string, err error) {
	for _, c := range r.Clusters {
		if c.Error != "" {
			continue
		}
		lines, err := linesOf(c.Result, c.listing.Field, columns)
		if err != nil {
			return nil, fmt.Errorf("context %s: %w", c.Context, err)
		}
		for _, line := range lines {
			all = append(all, append([]string{c.Context}, line...))
		}
	}
	return all, nil
}
