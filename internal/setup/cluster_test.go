package setup

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
)

// cluster returns one with control plane nodes a, b and c, whose static pods are ready except for those named.
func cluster(t *testing.T, members map[string]Member, notReady ...string) *Cluster {
	t.Helper()
	objects := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}}
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{controlPlaneLabel: ""}}})
		for _, pod := range []string{"kube-apiserver-" + name, folder + "-" + name} {
			ready := corev1.ConditionTrue
			if strings.Contains(strings.Join(notReady, " "), pod) {
				ready = corev1.ConditionFalse
			}
			objects = append(objects, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: metav1.NamespaceSystem},
				Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
			})
		}
	}
	data := map[string]string{}
	for name, m := range members {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		data[name] = string(text)
	}
	if len(data) > 0 {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: registry, Namespace: metav1.NamespaceSystem, ResourceVersion: "1"}, Data: data,
		})
	}
	return &Cluster{core: fake.NewClientset(objects...)}
}

func TestOneNodeAtATime(t *testing.T) {
	observing, changing := Member{Mode: Observe, Port: 1}, Member{Mode: Observe, Port: 1, Changing: true}
	contained := Member{Mode: Beside, Port: 1, Containment: true}
	for _, tc := range []struct {
		rule     string
		node     string
		mode     Mode
		members  map[string]Member
		notReady string
		refusal  string
	}{
		{"the first node", "a", Observe, nil, "", ""},
		{"a node beside a healthy one", "b", Beside, map[string]Member{"a": observing}, "", ""},
		{"the same node again, after a crash", "a", Observe, map[string]Member{"a": changing}, "", ""},
		{"a node that is no longer there is forgotten", "a", Observe, map[string]Member{"gone": changing}, "", ""},
		{"another node is not finished", "b", Observe, map[string]Member{"a": changing}, "", "setup has not finished on"},
		{"its kube-apiserver is not ready", "b", Observe, map[string]Member{"a": observing}, "kube-apiserver-a", "kube-apiserver-a of"},
		{"its server is not ready", "b", Observe, map[string]Member{"a": observing}, "node-authorizer-a", "node-authorizer-a of"},
		{"this node's pods do not count", "a", Beside, map[string]Member{"a": observing}, "node-authorizer-a", ""},
		{"its port is another one", "b", Observe, map[string]Member{"a": {Mode: Observe, Port: 2}}, "", "use --port=2"},
		{"a node that does no control plane", "worker", Observe, nil, "", "worker is not among the control plane nodes a, b, c"},
		{"replace with a node without a server", "a", Replace, map[string]Member{"a": observing, "b": observing}, "", "and c has none"},
		{"replace without a server here", "a", Replace, map[string]Member{"b": observing, "c": observing}, "", "and a has none"},
		{
			"replace before the server here is finished", "a", Replace,
			map[string]Member{"a": changing, "b": observing, "c": observing},
			"",
			"and a has none that is ready",
		},
		{"replace again, while a new node has no server", "a", Replace, map[string]Member{"a": {Mode: Replace, Port: 1}}, "", ""},
		{"another port", "a", Observe, map[string]Member{"a": {Mode: Observe, Port: 2}}, "", "run setup undo before"},
		{"replace", "a", Replace, map[string]Member{"a": observing, "b": observing, "c": {Mode: Replace, Port: 1}}, "", ""},
		{
			"replace with a server that restarts", "a", Replace,
			map[string]Member{"a": contained, "b": observing, "c": observing},
			"",
			"the server of a has another --containment",
		},
		{
			"replace with a server that restarts later", "a", Replace,
			map[string]Member{"a": observing, "b": observing, "c": contained},
			"",
			"the server of c has another --containment",
		},
		{
			"a server restarts while another node has replace", "b", Beside,
			map[string]Member{"a": {Mode: Replace, Port: 1}, "b": contained},
			"",
			"the server of b has another --containment",
		},
		{"a server restarts while none has replace", "b", Beside, map[string]Member{"a": observing, "b": contained}, "", ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := cluster(t, tc.members, tc.notReady)
			former, err := c.begin(t.Context(), tc.node, Member{Mode: tc.mode, Port: 1})
			if (err != nil) != (tc.refusal != "") || !strings.Contains(fmt.Sprint(err), tc.refusal) {
				t.Fatalf("the error is %v, want %q", err, tc.refusal)
			}
			now, failed := c.Members(t.Context())
			if failed != nil {
				t.Fatal(failed)
			}
			if err != nil {
				if fmt.Sprint(now) != fmt.Sprint(tc.members) && len(now) > 0 {
					t.Errorf("a refused setup has changed the entries to %v", now)
				}
				return
			}
			if m := now[tc.node]; m.Mode != tc.mode || !m.Changing || former != tc.members[tc.node] || now["gone"].Mode != "" {
				t.Errorf("the entries are %v, the former one %v", now, former)
			}
		})
	}
}

func TestAgreement(t *testing.T) {
	const requests, differences = "node_authorizer_observed_requests_total", "node_authorizer_observed_differences_total"
	for _, tc := range []struct {
		rule, metrics    string
		authorize, admit probe.Outcome
	}{
		{"nothing was compared", "", probe.Undetermined, probe.Undetermined},
		{"no difference", requests + "{type=\"authorize\"} 7\n" + requests + "{type=\"admit\"} 2\n", probe.Holds, probe.Holds},
		{"a difference of writes", requests + "{type=\"authorize\"} 7\n" + requests + "{type=\"admit\"} 2\n" +
			differences + "{type=\"admit\",difference=\"stricter\"} 1\n", probe.Holds, probe.DoesNotHold},
		{"what the server could not decide is unknown", requests + "{type=\"authorize\"} 7\n" +
			differences + "{type=\"authorize\",difference=\"undecided\"} 1\n", probe.Undetermined, probe.Undetermined},
		{"a difference counts beside it", requests + "{type=\"authorize\"} 7\n" +
			differences + "{type=\"authorize\",difference=\"undecided\"} 1\n" +
			differences + "{type=\"authorize\",difference=\"broader\"} 1\n", probe.DoesNotHold, probe.Undetermined},
		{"no metrics", "{", probe.Undetermined, probe.Undetermined},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, "# TYPE %s counter\n# TYPE %s counter\n%s", requests, differences, tc.metrics)
			}))
			defer server.Close()
			_, port, err := net.SplitHostPort(server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			number, err := strconv.Atoi(port)
			if err != nil {
				t.Fatal(err)
			}
			p := &Plan{Options: Options{Port: number - 1}}
			got := p.agreement(t.Context())
			if got[0].Answer != tc.authorize || got[1].Answer != tc.admit {
				t.Errorf("the answers are %+v", got)
			}
			if strings.Contains(tc.rule, "could not decide") && !strings.Contains(got[0].Why, "the server's log says why") {
				t.Errorf("it does not say where to look: %s", got[0].Why)
			}
		})
	}
}
