package browser

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
)

func reachPage(t *testing.T) []byte {
	t.Helper()
	return html(t, "reach", "web-1", "--from", "../../examples/shop.snapshot")
}

func doctorPage(t *testing.T) []byte {
	t.Helper()
	return html(t, "doctor", "--from", "testdata/aws-auth.yaml")
}

// diffPage is about a change that gives the cluster to a node.
func diffPage(t *testing.T) []byte {
	t.Helper()
	return html(t, "diff", "--from", "../../examples/shop.snapshot", "--with", "testdata/change.yaml")
}

func TestReachPage(t *testing.T) {
	p := open(t, reachPage(t), "", light)
	p.is("headline", p.text("h1"), "Node web-1 reaches 18 objects")
	p.has(p.text(".top"), "it does not own the cluster; it reaches 3 service accounts (2 possible), 9 secrets (2 possible), 4 pods.")
	p.click("#kind-Secret .entry summary")
	p.wait(`document.querySelector('#kind-Secret .entry[open] .paths')`)
	p.has(p.text("#kind-Secret .entry[open]"), "May get", "← pod shop/", "spec.")
	p.has(p.fragment(), "#open=secret shop/")
	p.search(`"session-key"`)
	p.wait(`document.querySelector('[role=status]').innerText === '1 of 18 objects'`)
	p.is("kinds without a hit", eval[string](p, "String(document.querySelector('#kind-Pod').hidden)"), "true")
}

func TestReachOfAPart(t *testing.T) {
	p := open(t, html(t, "reach", "web-1", "--in-total=false", "--from", "../../examples/shop.snapshot"), "", light)
	p.has(p.text(".top"), "What this leads to in the end was not computed")
}

func TestReachOfWhatIsNotKnown(t *testing.T) {
	p := open(t, html(t, "reach", "n1", "--from", "testdata/blind.yaml"), "", light)
	p.has(p.text("h1"), "or more")
	p.has(p.text("#missing"), "It is not known what else it reaches")
	p.has(p.text("main"), "it is not known what RBAC adds")
	p.has(p.text(".top"), "it is not known whether it owns the cluster")
}

func TestDoctorPage(t *testing.T) {
	p := open(t, doctorPage(t), "", light)
	p.has(p.text("h1"), "error")
	p.has(p.text(".top"), "could not be made")
	p.has(p.text("#missing"), "That nothing is found says nothing about them", "no roles and bindings were given")
	p.has(p.text(".finding"), "error", "Fix:")
	p.is("the reference", eval[string](p, `String([...document.querySelectorAll('main > p a')].map((a) => a.href))`),
		"https://github.com/node-authorizer/node-authorizer/blob/main/docs/reference/findings/README.md")
	p.has(p.text("#roles"), "registers", "NotReady", "isolated")
	p.has(p.text("#checks"), "not made")
}

func TestDoctorPageHasProbes(t *testing.T) {
	sent := []probe.Sent{{Method: "POST", Path: "/api/v1/nodes?dryRun=All", As: "system:node:<b>", Status: 201, Answer: "created"}}
	result := doctor.Report{
		Origin: "a cluster", Checks: []doctor.CheckResult{}, Roles: []doctor.RolePrediction{}, Findings: []finding.Finding{},
		Probes: []probe.Probe{
			{ID: "a", Question: "Does it hold?", Outcome: probe.Holds, Why: "the write was refused", Sent: []probe.Sent{}},
			{ID: "b", Question: "Does that?", Outcome: probe.DoesNotHold, Why: "the write passed", Sent: sent},
			{ID: "c", Question: "And this?", Outcome: probe.Undetermined, Why: "no answer", Sent: sent},
		},
	}
	var page bytes.Buffer
	if err := report.Write(&page, report.Page{Kind: report.KindDoctor, Data: result.Shown()}); err != nil {
		t.Fatal(err)
	}
	p := open(t, page.Bytes(), "", light)
	p.has(p.text("#probes"), "holds", "does not hold", "undetermined", "the write passed", "1 request")
	p.click("#probes details:has(li) summary")
	p.has(p.text("#probes li"), "POST /api/v1/nodes?dryRun=All as system:node:<b>: 201 created")
}

func TestDiffPage(t *testing.T) {
	p := open(t, diffPage(t), "", light)
	p.has(p.text("h1"), "the whole cluster")
	p.has(p.text("#changes"), "ClusterRoleBinding", "testdata/change.yaml:")
	p.click("#widened .entry summary")
	p.wait(`document.querySelector('#widened .entry[open] .steps')`)
	p.has(p.text("#widened .entry[open]"), "cluster-admin", "granted by", "Because of the change:", "testdata/change.yaml:")
	fragment := p.fragment()
	p.has(fragment, "#open=")
	p.navigate(fragment)
	p.is("a link opens the entry", p.count("#widened .entry[open] .steps"), "1")
}

// Each change has a reason, codes lead to the reference and to ATT&CK, and nothing on the page names an output format.
func TestDiffPageIsComplete(t *testing.T) {
	p := open(t, html(t, "diff", "--from", "testdata/careless.yaml", "--with", "testdata/change.yaml",
		"--without", "namespace/shop", "--without", "node/web-4", "--without", "clusterrolebinding/deployer"), "", light)
	p.is("changes without a reason", eval[string](p, `[...document.querySelectorAll('#changes tbody tr')]
		.filter((r) => r.cells.length !== 4 || r.cells[3].innerText.trim() === '').map((r) => r.innerText).join('\n')`), "")
	p = open(t, diffPage(t), "", light)
	p.click("#widened .entry summary")
	p.wait(`document.querySelector('#widened .entry[open] .steps')`)
	p.has(eval[string](p, `[...document.querySelectorAll('#widened .technique a')].map((a) => a.href).join('\n')`),
		"docs/reference/techniques/", "https://attack.mitre.org/techniques/T")
	if text := p.text("main"); strings.Contains(text, "-o wide") || strings.Contains(text, "-o json") {
		t.Errorf("the page names an output format:\n%s", text)
	}
}

// New holdings that are not a finding are on the page, with the reason, and so are findings of a baseline.
func TestDiffPageHasWhatIsNoFinding(t *testing.T) {
	p := open(t, diffPage(t), "", light)
	p.has(p.text("#expected"), "What is reached more, and is no finding")
	p.click("#expected .entry summary")
	p.wait(`document.querySelector('#expected .entry[open] .steps')`)
	p.has(p.text("#expected .entry[open]"), "Reason: ")
	p.is("known findings", p.text("#known"), "no such element")

	known := filepath.Join(t.TempDir(), "known.yaml")
	change := []string{"diff", "--from", "../../examples/shop.snapshot", "--with", "testdata/change.yaml"}
	html(t, append(change, "--write-baseline", known)...)
	p = open(t, html(t, append(change, "--baseline", known)...), "", light)
	p.has(p.text("#known"), "Known findings", "cluster-admin")
}
