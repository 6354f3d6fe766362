package noderestriction_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestEveryCodeAndItsText has, for each code of the package, a request and its
// message.
func TestEveryCodeAndItsText(t *testing.T) {
	c := shop().withStorage()
	delete(c.accounts, "shop/db")
	c.pods["shop/orphan"] = pod("shop", "orphan", "worker-1")
	c.pods["shop/stuck"] = pod("shop", "stuck", "worker-1", claimVolume("gone"))
	r := noderestriction.New(c, failing{err: errors.New("no answer from 10.0.0.1")}, latest(t, "CSIVolumeHealth=true"))
	gated := noderestriction.New(c, grants{}, latest(t, "PodCertificateRequest=false"))
	certificate := func(change func(*certificatesv1.PodCertificateRequestSpec)) *noderestriction.Request {
		return podCertificate("shop", &certificatesv1.PodCertificateRequest{Spec: *certificateSpec(change)})
	}
	csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	person := podOperation(noderestriction.Delete, "", "web")
	person.User = "ada"
	unnamed := podOperation(noderestriction.Delete, "", "web")
	unnamed.User = "system:node:"
	nodeless := createPod(func(p *corev1.Pod) { p.Spec.NodeName, p.OwnerReferences[0].Name = "worker-9", "worker-9" })
	nodeless.User = "system:node:worker-9"
	write9 := updateNode("", func(*corev1.Node) {})
	write9.Name = "worker-9"
	yes, no := true, false

	requests := []*noderestriction.Request{
		person, podOperation(noderestriction.Connect, "exec", "web"), podOperation(noderestriction.Delete, "", "web"),
		unnamed, podOperation(noderestriction.Update, "", "web"), podOperation(noderestriction.Create, "binding", "web"), evict("web", nil),
		createPod(func(p *corev1.Pod) { p.Annotations = nil }),
		createPod(func(p *corev1.Pod) { p.OwnerReferences = nil }),
		createOwned(func(o *metav1.OwnerReference) { o.Controller = &no }),
		createOwned(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = &yes }),
		createOwned(func(o *metav1.OwnerReference) { o.UID = "x" }),
		nodeless,
		createPod(func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{csiVolume("d")} }),
		evict("", &policyv1.Eviction{}), podOperation(noderestriction.Delete, "", "gone"), podOperation(noderestriction.Delete, "", "db"),
		updateStatus(pod("shop", "web", "worker-1"), func(p *corev1.Pod) { p.Labels = nil }),
		updateStatus(pod("shop", "web", "worker-1"), func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{}}
		}),
		write9,
		updateNode("", withConfigSource(&corev1.NodeConfigSource{})),
		updateNode("", func(n *corev1.Node) { n.Spec.Taints = nil }),
		updateNode("", owned),
		updateNode("", func(n *corev1.Node) { n.Labels["k8s.io/x"] = "" }),
		updateClaim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }),
		requestBoundToken(nil),
		requestBoundToken(&authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "x"}),
		requestToken("web", "a", "b"), requestToken("web", "a"), requestToken("stuck", "a"),
		certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeName = "worker-2" }),
		podCertificate("kube-system", &certificatesv1.PodCertificateRequest{Spec: *certificateSpec(staticPod)}),
		certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountName = "db" }),
		certificate(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountUID = "x" }),
		certificate(func(s *certificatesv1.PodCertificateRequestSpec) {
			s.PodName, s.PodUID, s.ServiceAccountName = "orphan", "uid-of-orphan", "orphan"
		}),
		requestCertificate("kubernetes.io/kubelet-serving", nil),
		requestCertificate("kubernetes.io/kubelet-serving", signingRequest(t, "system:node:worker-2")),
		lease(noderestriction.Update, "shop", "worker-1", nil), lease(noderestriction.Update, "kube-node-lease", "worker-2", nil),
		csiNode(noderestriction.Update, "", "worker-2", nil, nil),
		csiNode(noderestriction.Update, "status", "worker-1",
			changed(csi, func(n *storagev1.CSINode) { n.Spec.Drivers = []storagev1.CSINodeDriver{{}} }), csi),
		slice(noderestriction.Create, sliceVersions()["v1"]("worker-2"), nil),
	}
	texts := map[verdict.Code]string{}
	add := func(a noderestriction.Answer) {
		checkAnswer(t, a)
		text := fmt.Sprintf("%s\n  %s %d %s\n  %s\n", a.Code, a.Decision, a.Status, a.Rule, a.Reason.Message)
		if a.Reason.Hint != "" {
			text += "  hint: " + a.Reason.Hint + "\n"
		}
		if strings.Contains(text, "10.0.0.1") {
			t.Errorf("%s shows the node what the authorizer said: %s", a.Code, text)
		}
		if _, twice := texts[a.Code]; twice {
			t.Errorf("%s is answered twice", a.Code)
		}
		texts[a.Code] = text
	}
	for _, req := range requests {
		add(r.Decide(t.Context(), req))
	}
	add(gated.Decide(t.Context(), certificate(func(*certificatesv1.PodCertificateRequestSpec) {})))
	ungranted := noderestriction.New(c, grants{}, latest(t, ""))
	add(ungranted.Decide(t.Context(), requestToken("web", "a")))
	add(ungranted.Decide(t.Context(), certificate(func(*certificatesv1.PodCertificateRequestSpec) {})))

	var all strings.Builder
	for _, code := range declaredCodes(t) {
		if texts[code] == "" {
			t.Errorf("nothing is answered with %s", code)
		}
		all.WriteString(texts[code])
	}
	compareGolden(t, "answers.golden", all.String())
}

// declaredCodes returns the constants of codes.go, in their order.
func declaredCodes(t *testing.T) []verdict.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []verdict.Code
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil || code != spec.Names[0].Name {
				t.Errorf("constant %s has the value %q", spec.Names[0].Name, code)
			}
			codes = append(codes, verdict.Code(code))
		}
		return true
	})
	if len(codes) == 0 || len(slices.Compact(slices.Sorted(slices.Values(codes)))) != len(codes) {
		t.Fatalf("codes.go declares %q", codes)
	}
	return codes
}
