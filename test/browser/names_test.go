package browser

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// longNames is the page of a cluster whose nodes and namespaces have long names that differ in their end, their beginning or
// their middle.
func longNames(t *testing.T) []byte {
	t.Helper()
	c := &attackpaths.Cluster{
		Inventory: inventory.New(), Relations: graph.New(), RBAC: rbac.NewPolicy(), Features: kubeversion.For(kubeversion.Latest),
	}
	var nodes []string
	for i := range 6 {
		nodes = append(nodes,
			fmt.Sprintf("gke-production-cluster-europe-west3-pool-4f6a9c1e-web-%d", i+1),
			fmt.Sprintf("gke-production-cluster-europe-west3-pool-77ab01cc-web-%d", i+1),
			fmt.Sprintf("ip-10-0-132-%d.eu-central-1.compute.internal", 57+i),
			fmt.Sprintf("aks-%d-vmss.production.europe.example.com", 1000+i))
	}
	for i, node := range nodes {
		namespace := fmt.Sprintf("team-%02d-production-checkout-backend", i)
		labels := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		c.Inventory.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}})
		c.Inventory.Set(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}})
		c.Inventory.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		put(c, node, namespace, fmt.Sprint("app-", i), "app", "")
	}
	put(c, nodes[0], "kube-system", "kube-apiserver-"+nodes[0], "", "")
	g, err := attackpaths.New(c)
	if err != nil {
		t.Fatal(err)
	}
	overview := g.Overview(g.AllNodes(), attackpaths.OverviewOptions{})
	overview.Rows[0].ControlPlane = true
	result := report.AttackPaths{
		AllNodes: true, Cells: overview.Cells, Rows: overview.Rows, State: report.State{Origin: "a cluster with long names"},
	}
	var page bytes.Buffer
	if err := report.Write(&page, result.Page()); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}

// TestLongNamesAreToldApart: names in rows of fixed height and in heads of columns are in one line, none is cut, and no two look
// the same.
func TestLongNamesAreToldApart(t *testing.T) {
	page := longNames(t)
	for _, v := range []view{light, phone} {
		t.Run(v.name, func(t *testing.T) {
			p := open(t, page, "", v)
			for _, names := range []string{"#ranking-grid .names", "#matrix-grid .names", "#matrix-grid .slanted"} {
				cut := eval[string](p, fmt.Sprintf(`[...document.querySelectorAll(%q)].filter((e) =>
					e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight ||
					e.closest('.cell').scrollWidth > e.closest('.cell').clientWidth).map((e) => e.textContent).join('\n')`, names))
				if cut != "" {
					t.Errorf("%s: cut:\n%s", names, cut)
				}
				shown := eval[string](p, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) =>
					(e.querySelector('[aria-hidden]') ?? e).innerText).join('\n')`, names))
				seen := map[string]bool{}
				for name := range strings.Lines(shown) {
					if seen[name] {
						t.Errorf("%s: %q is shown twice:\n%s", names, name, shown)
					}
					seen[name] = true
				}
				if len(seen) < 5 {
					t.Errorf("%s: only %d names:\n%s", names, len(seen), shown)
				}
			}
			p.has(eval[string](p, `[...document.querySelectorAll('#matrix-grid .names')].map((e) => e.textContent).join()`),
				"gke-production-cluster-europe-west3-pool-4f6a9c1e-web-3")
		})
	}
}

// TestLongNamesKeepTheirForm: a filter leaves one column, whose end no other column has. Without the filter, others have it.
func TestLongNamesKeepTheirForm(t *testing.T) {
	const head = `document.querySelector('#matrix-grid .slanted [aria-hidden]').innerText`
	p := open(t, longNames(t), "#namespace=team-00-production-checkout-backend", light)
	p.is("with the filter", eval[string](p, head), "team-00-…")
	p.click("form.filters button")
	p.wait(`document.querySelectorAll('#matrix-grid .slanted').length > 5`)
	p.is("without the filter", eval[string](p, head), "team-00-…")
}
