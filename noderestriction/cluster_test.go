package noderestriction_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// cluster is a State. Keys are names, with the namespace before a slash.
type cluster struct {
	pods     map[string]*corev1.Pod
	nodes    map[string]*corev1.Node
	accounts map[string]*corev1.ServiceAccount
	claims   map[string]*corev1.PersistentVolumeClaim
	volumes  map[string]*corev1.PersistentVolume
	drivers  map[string]*storagev1.CSIDriver
}

func (c *cluster) Pod(namespace, name string) (*corev1.Pod, bool) {
	o, ok := c.pods[namespace+"/"+name]
	return o, ok
}

func (c *cluster) Node(name string) (*corev1.Node, bool) {
	o, ok := c.nodes[name]
	return o, ok
}

func (c *cluster) ServiceAccount(namespace, name string) (*corev1.ServiceAccount, bool) {
	o, ok := c.accounts[namespace+"/"+name]
	return o, ok
}

func (c *cluster) PersistentVolumeClaim(namespace, name string) (*corev1.PersistentVolumeClaim, bool) {
	o, ok := c.claims[namespace+"/"+name]
	return o, ok
}

func (c *cluster) PersistentVolume(name string) (*corev1.PersistentVolume, bool) {
	o, ok := c.volumes[name]
	return o, ok
}

func (c *cluster) CSIDriver(name string) (*storagev1.CSIDriver, bool) {
	o, ok := c.drivers[name]
	return o, ok
}

// shop is a cluster of the nodes worker-1 and worker-2. Pod shop/web is on
// worker-1, shop/db on worker-2, shop/new on none yet; kube-system/static is a
// mirror pod on worker-1.
func shop() *cluster {
	c := &cluster{
		pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, accounts: map[string]*corev1.ServiceAccount{},
		claims: map[string]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{},
		drivers: map[string]*storagev1.CSIDriver{},
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		c.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	}
	c.addPod(pod("shop", "web", "worker-1"))
	c.addPod(pod("shop", "db", "worker-2"))
	c.addPod(pod("shop", "new", ""))
	static := pod("kube-system", "static", "worker-1")
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "1"}
	c.addPod(static)
	return c
}

// addPod adds a pod and its service account.
func (c *cluster) addPod(p *corev1.Pod) {
	c.pods[p.Namespace+"/"+p.Name] = p
	account := p.Spec.ServiceAccountName
	c.accounts[p.Namespace+"/"+account] = &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: account, UID: types.UID("uid-of-" + account)},
	}
}

// pod has its name as the name of its service account, and uid-of-<name> as uid.
func pod(namespace, name, node string, volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": name},
		},
		Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: name, Volumes: volumes},
	}
}

func volume(name string, source corev1.VolumeSource) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: source}
}

// from makes a request one of the node's.
func from(node string, req noderestriction.Request) *noderestriction.Request {
	req.User, req.Groups = nodeidentity.User(node)
	return &req
}

// changed is a copy of an object with changes.
func changed[T any, P interface {
	*T
	DeepCopy() P
}](o P, change func(P)) P {
	o = o.DeepCopy()
	change(o)
	return o
}

// latest returns the behaviour of the newest minor with gates set as in
// --feature-gates.
func latest(t testing.TB, gates string) kubeversion.Features {
	t.Helper()
	return features(t, kubeversion.Latest, gates)
}

func features(t testing.TB, minor kubeversion.Minor, gates string) kubeversion.Features {
	t.Helper()
	f, err := kubeversion.For(minor).WithOverrides(gates)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// expectation is the expected answer to a request.
type expectation struct {
	rule    string
	request *noderestriction.Request
	code    verdict.Code
	status  int  // 0: 200 or 403, depending on the code
	stale   bool // a lagging state could cause it
}

func (e expectation) check(t *testing.T, r *noderestriction.Restriction) {
	t.Helper()
	t.Run(e.rule, func(t *testing.T) {
		t.Helper()
		got := r.Decide(t.Context(), e.request)
		want, status := verdict.Deny, 403
		switch e.code {
		case noderestriction.NotANode, noderestriction.NotRestricted, noderestriction.RestrictionsMet:
			want, status = verdict.Allow, 200
		}
		if e.status != 0 {
			status = e.status
		}
		if got.Decision != want || got.Code != e.code || got.Status != status || got.Stale != e.stale {
			t.Errorf("got %s %s, status %d, stale %v (%s); want %s %s, status %d, stale %v",
				got.Decision, got.Code, got.Status, got.Stale, got.Reason.Message, want, e.code, status, e.stale)
		}
		checkAnswer(t, got)
		checkConsidered(t, r, e.request, got)
	})
}

// checkAnswer checks the properties of every answer.
func checkAnswer(t *testing.T, a noderestriction.Answer) {
	t.Helper()
	if a.Reason.Code != a.Code || a.Reason.Message == "" {
		t.Errorf("the reason of %s is %+v", a.Code, a.Reason)
	}
	reasons := map[int]metav1.StatusReason{200: "", 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 500: ""}
	if reason, ok := reasons[a.Status]; !ok || a.StatusReason != reason {
		t.Errorf("status %d has the reason %q", a.Status, a.StatusReason)
	}
	if (a.Decision == verdict.Allow) != (a.Status == 200) || a.Decision == verdict.NoOpinion {
		t.Errorf("%s goes with status %d", a.Decision, a.Status)
	}
	if a.Decision == verdict.Allow && (a.Stale || a.Err != nil) {
		t.Errorf("what is allowed is stale (%v) or has an error (%v)", a.Stale, a.Err)
	}
}

// checkAll puts requests to the latest version over a cluster.
func checkAll(t *testing.T, c *cluster, cases []expectation) {
	t.Helper()
	r := noderestriction.New(c, nil, kubeversion.For(kubeversion.Latest))
	for _, e := range cases {
		e.check(t, r)
		e.checkListed(t, c, r)
	}
}

// checkListed checks that the audience of a token that was decided by audience
// is listed for its pod if, and only if, the token is allowed.
func (e expectation) checkListed(t *testing.T, c *cluster, r *noderestriction.Restriction) {
	t.Helper()
	token, ok := e.request.Object.(*authenticationv1.TokenRequest)
	byAudience := e.code == noderestriction.RestrictionsMet || e.code == noderestriction.AudienceNotAllowed ||
		e.code == noderestriction.AudienceLookupFailed
	if !ok || !byAudience {
		return
	}
	audience := strings.Join(token.Spec.Audiences, "") // one, or none
	audiences, restricted := r.Audiences(c.pods["shop/"+token.Spec.BoundObjectRef.Name])
	if got, want := slices.Contains(audiences, audience), e.code == noderestriction.RestrictionsMet; got != want || !restricted ||
		!slices.IsSorted(audiences) {
		t.Errorf("%s: audiences %q (restricted %v), want %q listed: %v", e.rule, audiences, restricted, audience, want)
	}
}

// grants is an Authorizer that allows the listed questions, written as "verb group
// version resource namespace/name", for worker-1.
type grants map[string]bool

func (g grants) Authorize(_ context.Context, a *access.Request) (allowed bool, reason string, err error) {
	question := a.Verb + " " + a.Group + " " + a.Version + " " + a.Resource + " " + a.Namespace + "/" + a.Name
	return a.User == "system:node:worker-1" && g[question], "", nil
}

// failing is an Authorizer that fails.
type failing struct {
	err     error
	allowed bool
}

func (f failing) Authorize(context.Context, *access.Request) (allowed bool, reason string, err error) {
	return f.allowed, "", f.err
}
