package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/e2e/attack"
)

// attackLoad sends a control plane, until it is stopped, every request of the matrix
// that is refused, as dry runs, and watches whether its nodes stay ready.
type attackLoad struct {
	stop  func()
	admin kubernetes.Interface

	mu       sync.Mutex
	began    time.Time // the phase
	sent     int
	answers  map[int]int
	breaches []string
	notReady []string
}

// startAttackLoad starts a load that ends with the test, at the latest.
func startAttackLoad(t *testing.T) *attackLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	l := &attackLoad{admin: client(t, ours.Plane), answers: map[int]int{}, began: time.Now(), stop: func() { cancel(); running.Wait() }}
	t.Cleanup(l.stop)
	refused := refusedRequests(t)
	sender := ours.sender(t)
	for worker := range attackers {
		running.Go(func() { l.attack(ctx, sender, refused, worker) })
	}
	running.Go(func() { l.watchNodes(ctx) })
	return l
}

// refusedRequests returns the requests that the in-tree plane forbids.
func refusedRequests(t *testing.T) []attack.Request {
	t.Helper()
	sender := shop.sender(t)
	var refused []attack.Request
	for _, section := range attack.Sections() {
		for _, request := range section.Requests {
			answer, err := sender.Rehearse(t.Context(), request, "")
			if err != nil {
				t.Fatal(err)
			}
			if answer.Refused() {
				refused = append(refused, request)
			}
		}
	}
	return refused
}

const (
	// attackers is the number of concurrent senders, so that one that waits for an answer
	// does not stop the others.
	attackers = 4
	// pause is the time between two requests of one attacker, so that other requests are
	// answered too.
	pause = 20 * time.Millisecond
	// timeout is how long an attacker waits for an answer.
	timeout = 5 * time.Second
)

func (l *attackLoad) attack(ctx context.Context, sender *attack.Sender, requests []attack.Request, first int) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for i := first; ; i += attackers {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		request := requests[i%len(requests)]
		attempt, cancel := context.WithTimeout(ctx, timeout)
		answer, err := sender.Rehearse(attempt, request, "")
		cancel()
		l.note(request, answer, err)
	}
}

// note counts a request without an answer as status 0.
func (l *attackLoad) note(request attack.Request, answer attack.Answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	l.answers[answer.Status]++
	if err == nil && answer.Status < http.StatusBadRequest {
		l.breaches = append(l.breaches,
			fmt.Sprintf("%s %s (%s) was answered %d", request.Method, request.Path, request.Attack, answer.Status))
	}
}

// watchNodes notes each node that the API server says is not ready.
func (l *attackLoad) watchNodes(ctx context.Context) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// While kube-apiserver is down, the state of nodes is unknown.
		nodes, err := l.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		l.mu.Lock()
		for _, node := range nodes.Items {
			if !isReady(&node) {
				l.notReady = append(l.notReady, node.Name)
			}
		}
		l.mu.Unlock()
	}
}

// attacksGoOn waits until more attacks have been answered since the call.
func (l *attackLoad) attacksGoOn(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.sent
	}
	began := count()
	eventually(t, "attacks go on", func(context.Context) error {
		if n := count() - began; n < more {
			return fmt.Errorf("%d were sent", n)
		}
		return nil
	})
}

// check ends a phase: nothing was allowed, and no node was lost.
func (l *attackLoad) check(t *testing.T) {
	t.Helper()
	renewLeasesSince(t, l.admin, l.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d attacks, by status: %v", l.sent, l.answers)
	for _, breach := range l.breaches {
		t.Errorf("allowed: %s", breach)
	}
	if len(l.notReady) > 0 {
		t.Errorf("nodes were not ready: %v", l.notReady)
	}
	l.sent, l.answers, l.breaches, l.notReady, l.began = 0, map[int]int{}, nil, nil, time.Now()
}
