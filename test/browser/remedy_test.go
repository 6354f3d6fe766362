package browser

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// remedied is a page with one step that has a remedy.
func remedied(t *testing.T, r verdict.Remedy) []byte {
	t.Helper()
	object := verdict.Object{Kind: "Node", Name: "n1"}
	step := map[string]any{"technique": "Masters", "from": object, "to": object, "because": "it may", "certainty": "Certain", "remedy": r}
	row := map[string]any{
		"id": "1", "kind": "Node", "before": "No", "after": "Certain", "startKind": "Node", "startCount": 1, "reachedCount": 1,
		"starts": []any{object}, "reached": []any{object}, "path": []any{step},
	}
	var page bytes.Buffer
	if err := report.Write(&page, report.Page{Kind: report.KindDiff, Data: map[string]any{
		"headline": "x", "totalLines": []any{}, "verdict": "Widened", "after": map[string]any{"origin": "x"}, "widened": []any{row},
		"narrowed": []any{}, "techniques": map[string]any{},
	}}); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}

func TestRemedies(t *testing.T) {
	binding := verdict.Object{Kind: "RoleBinding", Namespace: "shop", Name: "</script>"}
	for _, c := range []struct {
		rule   string
		remedy verdict.Remedy
		want   string
	}{
		{
			"a patch has the operations on an object",
			verdict.Remedy{Changes: []verdict.Change{
				{
					Of: verdict.OfObject, Op: verdict.Test, APIVersion: "v1", Object: binding, Path: "/subjects/0",
					Value: json.RawMessage(`{"kind":"User"}`),
				},
				{Of: verdict.OfObject, Op: verdict.Remove, APIVersion: "v1", Object: binding, Path: "/subjects/0"},
			}},
			"Remedy: change RoleBinding shop/</script>\n# RoleBinding shop/</script> (v1)\n" +
				`[{"op":"test","path":"/subjects/0","value":{"kind":"User"}},` + "\n" + ` {"op":"remove","path":"/subjects/0"}]`,
		},
		{
			"an object is deleted whole, and what that breaks is said",
			verdict.Remedy{Changes: []verdict.Change{{Of: verdict.OfObject, Op: verdict.Remove, Object: binding}}, Warning: "It breaks."},
			"Remedy: change RoleBinding shop/</script>\n\nIt breaks.\n\n# RoleBinding shop/</script>\ndelete it",
		},
		{
			"no remedy is said",
			verdict.Remedy{None: "the node runs the control plane"},
			"No change ends this step: the node runs the control plane",
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			p := open(t, remedied(t, c.remedy), "#open=1", light)
			p.wait(`document.querySelector('.entry[open] .steps')`)
			eval[bool](p, "(document.querySelectorAll('.remedy').forEach((d) => { d.open = true; }), true)")
			p.has(p.text(".steps"), c.want)
		})
	}
}
