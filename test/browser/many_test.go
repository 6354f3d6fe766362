package browser

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// many is a cluster with so many nodes, thirty pods on each, and namespaces for ten nodes each, with
// names as long as people make them. A DaemonSet reads the secrets of some namespaces, and two
// deployments own the cluster.
func many(nodes int) *attackpaths.Cluster {
	c := &attackpaths.Cluster{
		Inventory: inventory.New(), Relations: graph.New(), RBAC: rbac.NewPolicy(), Features: kubeversion.For(kubeversion.Latest),
	}
	r := rand.New(rand.NewPCG(1, 2))
	namespaces := max(1, nodes/10)
	team := func(i int) string {
		return fmt.Sprintf("team-%03d-%s", i, []string{"production", "staging", "tools"}[i%3])
	}
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	for i := range namespaces {
		c.Inventory.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: team(i), Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}})
		for j := range 10 {
			c.Inventory.Set(&corev1.ServiceAccount{ObjectMeta: meta(team(i), fmt.Sprint("application-", j))})
		}
		for j := range 30 {
			c.Inventory.Set(&corev1.Secret{ObjectMeta: meta(team(i), fmt.Sprint("credentials-", j))})
		}
		if i%10 == 0 {
			grant(c, team(i), "agent", "kube-system", "agent", []string{"get", "list"}, []string{""}, []string{"secrets"})
		}
		if i%7 == 0 {
			grant(c, team(i), "deployer", team(i), "application-1", []string{"create"}, []string{""}, []string{"pods"})
		}
	}
	c.Inventory.Set(&corev1.ServiceAccount{ObjectMeta: meta("kube-system", "agent")})
	grant(c, "", "owners", team(0), "application-0", []string{"*"}, []string{"*"}, []string{"*"})
	grant(c, "", "binders", team(1), "application-2", []string{"impersonate"}, []string{""}, []string{"groups", "users"})
	for i := range nodes {
		node := fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i/65536, i/256%256, i%256)
		c.Inventory.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		put(c, node, "kube-system", fmt.Sprintf("agent-%05x", r.IntN(1<<20)), "agent", "")
		for range 30 {
			namespace := team(r.IntN(namespaces))
			pod := fmt.Sprintf("application-%08x-%05x", r.Uint32(), r.IntN(1<<20))
			put(c, node, namespace, pod, fmt.Sprint("application-", r.IntN(10)), fmt.Sprint("credentials-", r.IntN(30)))
		}
	}
	return c
}

// grant binds a role with one rule to an account.
func grant(c *attackpaths.Cluster, namespace, name, accountNamespace, account string, verbs, groups, resources []string) {
	rules := []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: groups, Resources: resources}}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: accountNamespace, Name: account}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if namespace == "" {
		c.RBAC.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
		role := rbacv1.RoleRef{Kind: "ClusterRole", Name: name}
		c.RBAC.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects})
		return
	}
	c.RBAC.SetRole(&rbacv1.Role{ObjectMeta: meta, Rules: rules})
	role := rbacv1.RoleRef{Kind: "Role", Name: name}
	c.RBAC.SetRoleBinding(&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: subjects})
}

// put puts a pod of a StatefulSet on a node.
func put(c *attackpaths.Cluster, node, namespace, name, account, secret string) {
	controller := true
	volumes := []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}},
	}}}}
	if secret != "" {
		volumes = append(volumes, corev1.Volume{Name: "secret", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret},
		}})
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "x", Controller: &controller},
		}},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "c"}}, Volumes: volumes},
	}
	c.Inventory.Set(pod)
	c.Relations.SetPod(pod)
}

// manyPage is the page about all nodes of a large cluster.
func manyPage(t *testing.T, nodes int) []byte {
	t.Helper()
	g, err := attackpaths.New(many(nodes))
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	overview := g.Overview(g.AllNodes(), attackpaths.OverviewOptions{CertainCells: true})
	result := report.AttackPaths{
		AllNodes: true, CertainCells: true, Cells: overview.Cells, Rows: overview.Rows, State: report.State{Origin: "a made cluster"},
	}
	var page bytes.Buffer
	if err := report.Write(&page, result.Page()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes: %d rows, %d cells, %.2f MB, made in %v", nodes, len(overview.Rows), len(overview.Cells),
		float64(page.Len())/1e6, time.Since(started).Round(time.Millisecond))
	return page.Bytes()
}

func TestFiveThousandNodes(t *testing.T) {
	const nodes, limit = 5000, 5 << 20
	page := manyPage(t, nodes)
	if len(page) > limit {
		t.Errorf("the page has %d bytes, want at most %d", len(page), limit)
	}
	p := open(t, page, "", light)
	t.Logf("interactive after %.0f ms", eval[float64](p, "performance.getEntriesByName('ready')[0].startTime"))
	elements := eval[int](p, "document.querySelectorAll('*').length")
	if elements > 3000 {
		t.Errorf("the document has %d elements: the tables are not virtual", elements)
	}
	// To the last row and column by keyboard.
	eval[bool](p, "(document.querySelector('#matrix-grid [tabindex=\"0\"]').focus(), true)")
	p.do(chromedp.KeyEvent(kb.End, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.wait(`document.activeElement.closest('.row').ariaRowIndex === document.querySelector('#matrix-grid').ariaRowCount`)
	p.wait(`document.activeElement.ariaColIndex === document.querySelector('#matrix-grid').ariaColCount`)
	p.press(kb.Enter)
	p.wait(`!document.querySelector('#details').hidden`)

	p.press(kb.Escape)
	search := eval[float64](p, `new Promise((resolve) => {
		const field = document.querySelector('#filter-q'), start = performance.now();
		field.value = 'team-123';
		field.dispatchEvent(new Event('input'));
		requestAnimationFrame(() => resolve(performance.now() - start));
	})`)
	t.Logf("a search takes %.0f ms", search)
	p.has(p.text(".found"), "nodes in")
}
