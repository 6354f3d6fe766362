package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

const pathsDiffMethod = "`diff`" + ` of small changes to the cluster of the section above: a binding that lets every node read
every secret, one that lets one service account, and one for a user that does not exist. One
evaluation makes the graph and answers all nodes and all service accounts from it; of the latter one in
a hundred is asked, and its time taken a hundred times. A comparison makes the graph, applies the
change, makes the graph of the result, and compares all nodes and service accounts. Both begin when the
state is loaded. They run in turns in one process, in processor time, garbage collection included; the
ratio is the median of the rounds. The last column leaves the service accounts out of the evaluation, but
not out of the comparison.`

const whyPathsDiff = `Two graphs are made from all objects. What a change leaves alone is not taken from the first.`

// pathsDiffs are the changes. The manifests follow each other in the file.
var pathsDiffs = []struct{ name, subject string }{
	{"all nodes", `{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:nodes"}`},
	{"one service account", `{kind: ServiceAccount, namespace: "%s", name: "%s"}`},
	{"nobody", `{kind: User, apiGroup: rbac.authorization.k8s.io, name: nobody}`},
}

const pathsDiffManifest = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: diff-reads-secrets}
rules: [{verbs: [get], apiGroups: [""], resources: [secrets]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: diff-reads-secrets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: diff-reads-secrets}
subjects: [%s]
`

// pathsDiff measures comparisons.
func (b *bench) pathsDiff() (section, error) {
	s := section{title: "Comparing attack paths", method: pathsDiffMethod}
	l := pathsCluster{fileCluster{nodes: b.sizes.pathNodesTarget, podsPerNode: b.sizes.podsPerNode}}
	file, err := l.snapshot(b)
	if err != nil {
		return s, err
	}
	t := table{
		caption: fmt.Sprintf("**%s nodes, %s pods,** processor time.", thousands(float64(l.nodes)), thousands(float64(l.pods()))),
		header:  []string{"a binding for", "rows", "one evaluation", "comparison", "of it comparing", "ratio", "against all nodes alone"},
	}
	for _, change := range pathsDiffs {
		got, err := b.pathsDiffOf(file, change.subject)
		if err != nil {
			return s, err
		}
		t.add(change.name, thousands(float64(got.rows)), nanoseconds(median(got.evaluation)), nanoseconds(median(got.whole)),
			nanoseconds(median(got.compare)), spreadOf(got.ratios).String(), spreadOf(got.nodeRatios).String())
		s.targets = append(s.targets, atMost("`diff` of a binding for "+change.name+", against one evaluation", 2, median(got.ratios),
			times, whyPathsDiff))
	}
	s.tables = []table{t}
	return s, b.ctx.Err()
}

// accountSample is of how many service accounts one is asked about.
const accountSample = 100

// sampleAccounts answers some of the service accounts.
func sampleAccounts(g *attackpaths.Graph, state *source.State) error {
	for i, name := range state.Inventory.ServiceAccounts() {
		if i%accountSample != 0 {
			continue
		}
		start := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: name.Namespace, Name: name.Name}
		if _, err := g.From(start); err != nil {
			return err
		}
	}
	return nil
}

// pathsDiffTimes are the times of each round.
type pathsDiffTimes struct {
	evaluation, whole, compare []float64
	ratios, nodeRatios         []float64
	rows                       int
}

func (b *bench) pathsDiffOf(file, subject string) (pathsDiffTimes, error) {
	var p pathsDiffTimes
	state, err := source.LoadFiles(b.ctx, []string{file}, source.FileOptions{Inventory: true})
	if err != nil {
		return p, err
	}
	if account := state.Inventory.ServiceAccounts()[0]; subject == pathsDiffs[1].subject {
		subject = fmt.Sprintf(subject, account.Namespace, account.Name)
	}
	manifest := filepath.Join(b.cache, "diff.yaml")
	if err := os.WriteFile(manifest, fmt.Appendf(nil, pathsDiffManifest, subject), 0o600); err != nil {
		return p, err
	}
	for i := range b.fillRounds {
		b.log("diff: round %d", i+1)
		if err := b.pathsDiffRound(&p, state, manifest); err != nil {
			return p, err
		}
	}
	return p, b.ctx.Err()
}

// pathsDiffRound measures once, and takes the change back.
func (b *bench) pathsDiffRound(p *pathsDiffTimes, state *source.State, manifest string) error {
	c := &attackpaths.Cluster{
		Inventory: state.Inventory, Relations: state.Graph, RBAC: state.RBAC, Features: kubeversion.For(kubeversion.Latest),
	}
	settle()
	var g *attackpaths.Graph
	nodes, err := spent(func() (err error) {
		if g, err = attackpaths.New(c); err == nil {
			g.AllNodes()
		}
		return err
	})
	if err != nil {
		return err
	}
	accounts, err := spent(func() error { return sampleAccounts(g, state) })
	if err != nil {
		return err
	}
	evaluation := nodes + accounts*accountSample
	settle()
	var compare float64
	whole, err := spent(func() error {
		before, err := attackpaths.New(c)
		if err != nil {
			return err
		}
		changes, err := source.ReadChanges(b.ctx, []string{manifest}, source.ChangeOptions{Namespace: "default"})
		if err != nil {
			return err
		}
		if _, _, err := state.Change(changes, nil); err != nil {
			return err
		}
		after, err := attackpaths.New(c)
		if err != nil {
			return err
		}
		compare, err = spent(func() error {
			found := attackpaths.Compare(before, after, attackpaths.CompareOptions{})
			p.rows = len(found.Widened)
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	p.evaluation, p.whole = append(p.evaluation, evaluation), append(p.whole, whole)
	p.compare, p.ratios = append(p.compare, compare), append(p.ratios, whole/evaluation)
	p.nodeRatios = append(p.nodeRatios, whole/nodes)
	const rbacGroup = "rbac.authorization.k8s.io"
	_, _, err = state.Change(nil, []source.ObjectRef{
		{Kind: "ClusterRole", Group: rbacGroup, Name: "diff-reads-secrets"},
		{Kind: "ClusterRoleBinding", Group: rbacGroup, Name: "diff-reads-secrets"},
	})
	return err
}
