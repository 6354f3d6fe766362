package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// request is a request of the node worker-1 with the status that the in-tree parts answer.
type request struct {
	method, path, body string
	status             int
}

const worker = "worker-1"

// requests are reads and writes of a node: of its own pods, and of other objects.
func requests() []request {
	return []request{
		{http.MethodGet, "/api/v1/nodes/" + worker, "", 200},
		{http.MethodGet, "/api/v1/namespaces/default/secrets/own", "", 200},
		{http.MethodGet, "/api/v1/namespaces/default/secrets/other", "", 403},
		{http.MethodGet, "/api/v1/namespaces/default/secrets", "", 403},
		{http.MethodGet, "/api/v1/pods?fieldSelector=spec.nodeName%3D" + worker, "", 200},
		{http.MethodGet, "/api/v1/pods", "", 403},
		{
			http.MethodPatch, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + worker,
			`{"spec":{"holderIdentity":"worker-1"}}`, 200,
		},
		{http.MethodPatch, "/api/v1/nodes/" + worker, `{"metadata":{"labels":{"a":"b"}}}`, 200},
		{http.MethodPatch, "/api/v1/nodes/" + worker, `{"metadata":{"labels":{"node-restriction.kubernetes.io/a":"b"}}}`, 403},
		{http.MethodPatch, "/api/v1/nodes/cp-1", `{"metadata":{"labels":{"a":"b"}}}`, 403},
		{http.MethodPatch, "/api/v1/namespaces/default/pods/other/status", `{"status":{"message":"a"}}`, 403},
	}
}

// createWorker creates the objects of the requests.
func createWorker(ctx context.Context) error {
	admin := admins()[1]
	for _, name := range []string{"own", "other"} {
		if _, err := admin.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if _, err := admin.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: worker},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: worker},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := admin.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for name, on := range map[string]string{"own": worker, "other": "cp-1"} {
		pods := admin.CoreV1().Pods(metav1.NamespaceDefault)
		created, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{
				Name: "c", Image: "i", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: name},
				}}},
			}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		created.Status.Phase = corev1.PodRunning
		if _, err := pods.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// load sends all requests to the kube-apiservers of all nodes, again and again.
type load struct {
	stop func()

	mu sync.Mutex
	// answered counts the requests whose answer counts, by node.
	answered map[string]int
	wrong    []string
}

// startLoad returns when each request had the right answer once.
func startLoad(t *testing.T) *load {
	t.Helper()
	kubeconfig, err := plane.UserKubeconfig(worker, "system:node:"+worker, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	l := &load{answered: map[string]int{}, stop: func() { cancel(); all.Wait() }}
	for _, n := range nodes {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		client = &http.Client{Transport: client.Transport, Timeout: 20 * time.Second}
		all.Go(func() {
			pause := time.NewTicker(100 * time.Millisecond)
			defer pause.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				l.send(ctx, client, n, requests()[i%len(requests())])
				<-pause.C
			}
		})
	}
	return l
}

// send sends a request. The answer counts if kube-apiserver was ready before and after it, without a restart. A request that
// must be refused never succeeds; it may get another error than 403 while a webhook does not answer.
func (l *load) send(ctx context.Context, client *http.Client, n *node, r request) {
	before, ready := n.serving()
	status, text, err := do(ctx, client, n.apiServer, r)
	after, still := n.serving()
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := ready && still && before == after && ctx.Err() == nil
	if counts {
		l.answered[n.name]++
	}
	if counts && r.status == http.StatusOK && status != r.status || r.status != http.StatusOK && status == http.StatusOK {
		l.wrong = append(l.wrong, fmt.Sprintf("%s: %s %s: %d instead of %d: %s %v", n.name, r.method, r.path, status, r.status, text, err))
	}
}

func do(ctx context.Context, client *http.Client, host string, r request) (int, string, error) {
	sent, err := http.NewRequestWithContext(ctx, r.method, host+r.path, strings.NewReader(r.body))
	if err != nil {
		return 0, "", err
	}
	sent.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := client.Do(sent)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 2048))
	return response.StatusCode, string(text), err
}

// check waits for an answer of each node that counts, and reports the wrong answers since the last check.
func (l *load) check(t *testing.T, step string) {
	t.Helper()
	for _, n := range nodes {
		if err := eventually(t, n.name+" answers", func() error {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.answered[n.name] == 0 {
				return errors.New("no answer counts")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%s: %v answers", step, l.answered)
	clear(l.answered)
	slices.Sort(l.wrong)
	for _, w := range slices.Compact(l.wrong) {
		t.Errorf("%s: %s", step, w)
	}
	l.wrong = nil
}
