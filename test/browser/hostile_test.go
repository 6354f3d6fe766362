package browser

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// hostile are names that would do harm in a page that parses them.
var hostile = []string{
	`</script><script>window.harmed = 1</script>`,
	`<img src=x onerror="window.harmed = 1">`,
	`"><svg onload=window.harmed=1>`,
	`' onfocus='window.harmed=1' autofocus='`,
	"${window.harmed = 1}",
	"{{data}}",
	"__proto__",
	"constructor",
	"a\u2028b\u2029c",
	"\u202egnp.exe\u2066",
	"\x1b[31mred\x00",
	"<!--",
	"javascript:window.harmed=1",
}

func hostilePage(t *testing.T) []byte {
	t.Helper()
	result := report.AttackPaths{
		AllNodes: true, State: report.State{Origin: hostile[0], KubernetesVersion: hostile[1]},
		Summaries: map[attackpaths.Code]string{},
	}
	for i, name := range hostile {
		node := attackpaths.Holding{Kind: attackpaths.Node, Name: name}
		secret := attackpaths.Holding{Kind: attackpaths.Secret, Namespace: name, Name: name}
		step := attackpaths.Step{
			Technique: attackpaths.Code(name), From: node, To: secret, Impersonates: &secret, Because: name, DependsOn: name,
			GrantedBy: &rbac.Ref{Kind: name, Namespace: name, Name: name}, Certainty: attackpaths.Possible,
		}
		result.Summaries[step.Technique] = name
		result.Cells = append(result.Cells, attackpaths.Cell{
			Namespace: name, Kind: attackpaths.Secret, Certain: 1, From: node,
			Listed: []attackpaths.Reached{{Holding: secret, Certainty: attackpaths.Certain, Path: []attackpaths.Step{step}}},
		})
		row := attackpaths.OverviewRow{Nodes: []string{name}, ClusterAdmin: attackpaths.Possible, Path: []attackpaths.Step{step}}
		for j := range result.Cells {
			row.Cells = append(row.Cells, int32(j))
		}
		result.Rows = append(result.Rows, row)
		result.Missing = append(result.Missing, report.Missing{Resource: name, Reason: hostile[(i+1)%len(hostile)]})
	}
	result.Advice = &attackpaths.Advice{
		Nodes: attackpaths.NodesThatReach{Possible: len(hostile)},
		Alone: []attackpaths.Change{{
			Kind: attackpaths.RemoveBinding, Object: attackpaths.Holding{Kind: hostile[0], Name: hostile[1]}, Entirely: 1,
		}},
	}
	var page bytes.Buffer
	if err := report.Write(&page, result.Page()); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}

func TestHostileNames(t *testing.T) {
	page := hostilePage(t)
	for _, name := range hostile {
		t.Run(name, func(t *testing.T) {
			p := open(t, page, "", light)
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			// As a link that somebody sends, and as typed text.
			eval[bool](p, "(location.hash = '#' + new URLSearchParams({ row: "+string(quoted)+", in: "+string(quoted)+" }), true)")
			p.wait(`!document.querySelector('#details').hidden`)
			p.wait(`document.querySelector('#details .namespace[open] .holdings')`)
			eval[bool](p, "(document.querySelectorAll('#details summary').forEach((s) => s.click()), true)")
			p.wait(`document.querySelector('#details .holding[open] .steps')`)
			p.search(string(quoted))
			p.wait(`document.querySelector('.found').innerText !== ''`)
			p.is("harmed", eval[string](p, "String(window.harmed)"), "undefined")
			p.is("elements from names", p.count(`img, svg:not(.drawn), main script, aside script, [onerror], [onfocus], [onload]`), "0")
			unseen := `String(/[\u0000-\u0008\u001b\u2028\u2029\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText))`
			p.is("unseen characters", eval[string](p, unseen), "false")
		})
	}
}
