package browser

import (
	"strings"
	"testing"
)

// The worst path is drawn without a click, as the steps of its row are: each with its technique and its binding.
func TestTheWorstPathIsDrawn(t *testing.T) {
	for _, v := range []view{light, phone} {
		p := open(t, careless(t), "", v)
		drawn := eval[[]string](p, `[...document.querySelectorAll('#worst svg text')].map((e) => e.textContent)`)
		want := []string{
			"node build-1", "PodTokenOnNode", "service account build/runner", "TokenRequest", "service account build/deployer",
			"BindRole", "cluster-admin",
		}
		at := 0
		for _, text := range drawn {
			if at < len(want) && text == want[at] {
				at++
			}
		}
		if at < len(want) || !strings.Contains(strings.Join(drawn, " "), "granted by ClusterRoleBinding \"deployer\"") {
			t.Errorf("%s: drawn is %q, which lacks %q", v.name, drawn, want[at:])
		}
	}
}

// The CSV has a row for each node, and no cell that a spreadsheet takes for a formula.
func TestAllRowsAsCSV(t *testing.T) {
	p := open(t, careless(t), "", light)
	csv := eval[string](p, `new Promise((resolve) => {
		const make = URL.createObjectURL;
		URL.createObjectURL = (blob) => (blob.text().then(resolve), make.call(URL, blob));
		addEventListener('click', (e) => e.target.download && e.preventDefault(), true);
		[...document.querySelectorAll('button')].find((b) => b.textContent === 'Save all rows as CSV').click();
	})`)
	rows := strings.Split(strings.TrimSuffix(csv, "\r\n"), "\r\n")
	if len(rows) != 11 {
		t.Fatalf("%d rows, want the heading and 10 nodes:\n%s", len(rows), csv)
	}
	if want := `"rank","node","cluster-admin","controlPlane",`; !strings.HasPrefix(rows[0], want) {
		t.Errorf("the heading is %s", rows[0])
	}
	if want := `"1","build-1","Certain","false","all"`; !strings.HasPrefix(rows[1], want) {
		t.Errorf("the first row is %s, want %s", rows[1], want)
	}
	if want := `BindRole → cluster-admin","file testdata/careless.yaml","`; !strings.Contains(rows[1], want) {
		t.Errorf("the first row is %s, want %s in it", rows[1], want)
	}
}

// What to change has its commands, and where to run the pods.
func TestWhatToChangeHasItsCommands(t *testing.T) {
	p := open(t, careless(t), "", light)
	if script := eval[string](p, `document.querySelector('#advice pre').textContent`); !strings.Contains(script, "kubectl patch") {
		t.Errorf("the commands are %q", script)
	}
	text := eval[string](p, `document.querySelector('#advice').textContent`)
	const title = "Where to run the pods that give cluster-admin"
	if !strings.Contains(text, title) || !strings.Contains(text, "StatefulSet kube-system/backup") {
		t.Errorf("the page does not say where to run pods: %s", text)
	}
}
