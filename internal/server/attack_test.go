package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/webhook"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// attackedEnv makes the test's program the server that benchmarks attack, so that its
// memory is that of nothing else.
const attackedEnv = "NODE_AUTHORIZER_ATTACKED"

// attackedServer is where the server is, and how it is called.
type attackedServer struct {
	Address                     string
	Authority, Certificate, Key []byte
}

// TestServeAttacked is no test: it serves until its input ends.
func TestServeAttacked(t *testing.T) {
	if os.Getenv(attackedEnv) == "" {
		t.Skip("for BenchmarkAttacks")
	}
	limitMemory("/", (&logLines{}).logger())
	s := newTestShell(t, func(c *v1alpha1.ServerConfiguration) { c.Shutdown.Delay.Duration = 0 })
	s.reload = reloadInterval // as in production: reading files each millisecond is work
	queue := webhook.NewQueue()
	restriction := noderestriction.New(emptyState{}, nil, kubeversion.For(kubeversion.Latest))
	options := webhook.Options{Queue: queue}
	s.serve(parts{webhooks: map[string]http.Handler{
		"/authorize": webhook.Authorize(func(context.Context, *nodeauthz.Request) (review.Opinion, error) { return review.Opinion{}, nil }, options),
		"/admit":     webhook.Admit(restriction.Decide, restriction.Reads, options),
		"/mutate":    webhook.Mutate(options),
	}})
	certificate, key := s.callers.leaf("kube-apiserver", x509.ExtKeyUsageClientAuth, time.Now().Add(time.Hour))
	if err := json.NewEncoder(os.Stdout).Encode(attackedServer{s.shell.webhook.address().String(), s.server.pem, certificate, key}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type emptyState struct{}

func (emptyState) Pod(string, string) (*corev1.Pod, bool) { return nil, false }

func (emptyState) Node(string) (*corev1.Node, bool) { return nil, false }

func (emptyState) ServiceAccount(string, string) (*corev1.ServiceAccount, bool) { return nil, false }

func (emptyState) PersistentVolume(string) (*corev1.PersistentVolume, bool) { return nil, false }

func (emptyState) CSIDriver(string) (*storagev1.CSIDriver, bool) { return nil, false }

func (emptyState) PersistentVolumeClaim(string, string) (*corev1.PersistentVolumeClaim, bool) {
	return nil, false
}

// BenchmarkAttacks prints how long questions of an API server take, the median and the
// 99th percentile, while nothing else happens and under each attack, in one run, and
// the most memory that the server took.
//
//	go test -run '^$' -bench Attacks -benchtime 1x ./internal/server
func BenchmarkAttacks(b *testing.B) {
	for range b.N {
		for _, attack := range []struct {
			name  string
			start func(*attacked, context.Context)
		}{
			{"bodies of 6 MB", (*attacked).sendHostileBodies},
			{"rapid resets", (*attacked).resetRapidly},
			{"idle connections", (*attacked).connectAndWait},
		} {
			a := attackServer(b)
			quiet := a.measure()
			ctx, stop := context.WithCancel(b.Context())
			var running sync.WaitGroup
			running.Go(func() { attack.start(a, ctx) })
			under := a.measure()
			stop()
			running.Wait()
			fmt.Printf("%s: median %v, p99 %v; without %v, %v; ratio of medians %.1f; %d questions, %d errors; memory %s; %s\n", attack.name,
				under.at(50), under.at(99), quiet.at(50), quiet.at(99), float64(under.at(50))/float64(quiet.at(50)), len(under.took), under.errors,
				a.memory(), a.outcomes())
			a.end()
		}
	}
}

// attacked is a server under attack.
type attacked struct {
	b       testing.TB
	server  attackedServer
	process *exec.Cmd
	input   io.Closer
	// client is the API server's: all its requests share a connection.
	client *http.Client

	mu       sync.Mutex
	statuses map[string]int
}

func attackServer(b testing.TB) *attacked {
	a := &attacked{b: b, statuses: map[string]int{}}
	a.process = exec.Command(os.Args[0], "-test.run=^TestServeAttacked$")
	a.process.Env = append(os.Environ(), attackedEnv+"=1")
	a.process.Stderr = os.Stderr
	in, err := a.process.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	a.input = in
	out, err := a.process.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := a.process.Start(); err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a.server)
	}
	if err != nil {
		b.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(a.server.Certificate, a.server.Key)
	if err != nil {
		b.Fatal(err)
	}
	a.client = callerWith(a.config(), &certificate)
	return a
}

func (a *attacked) config() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.server.Authority)
	return &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}}
}

func (a *attacked) end() {
	a.client.CloseIdleConnections()
	a.input.Close()
	_ = a.process.Wait()
}

// memory is the most that the server has had resident.
func (a *attacked) memory() string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.process.Process.Pid))
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(peak)
		}
	}
	return "unknown"
}

func (a *attacked) outcome(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.statuses[what]++
}

func (a *attacked) outcomes() string { return fmt.Sprint("attacks: ", a.statuses) }

// durations of questions.
type durations struct {
	took   []time.Duration
	errors int
}

func (d *durations) at(percent int) time.Duration {
	if len(d.took) == 0 {
		return 0
	}
	slices.Sort(d.took)
	return d.took[len(d.took)*percent/100].Round(10 * time.Microsecond)
}

// measure asks small questions, each some time after the last.
func (a *attacked) measure() durations {
	const questions, pause = 400, 5 * time.Millisecond
	const question = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"system:node:a","groups":["system:nodes"],` +
		`"resourceAttributes":{"verb":"get","resource":"secrets","namespace":"shop","name":"a","version":"v1"}}}`
	var d durations
	for range questions {
		time.Sleep(pause)
		start := time.Now()
		got, err := read(a.client.Post("https://"+a.server.Address+"/authorize", "application/json", strings.NewReader(question)))
		if err != nil || got.status != http.StatusOK {
			d.errors++
			continue
		}
		d.took = append(d.took, time.Since(start))
	}
	return d
}

// hostileBodies take a multiple of their size when they are decoded whole.
func hostileBodies() [][]byte {
	const size = 6 << 20
	pod := func(fields string) []byte {
		return []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","kind":{"version":"v1","kind":"Pod"},` +
			`"resource":{"version":"v1","resource":"pods"},"name":"web","namespace":"shop","operation":"CREATE",` +
			`"userInfo":{"username":"system:node:a","groups":["system:nodes"]},"object":{"kind":"Pod","apiVersion":"v1",` + fields + `}}}`)
	}
	filled := func(entry string) string { return strings.Repeat(entry+",", size/(len(entry)+1)) + entry }
	bodies := [][]byte{
		pod(`"spec":{"containers":[` + filled(`{}`) + `]}`),
		pod(`"spec":{"containers":[` + filled(`{"name":"","resources":{}}`) + `]}`),
		pod(`"spec":{"volumes":[` + filled(`{"name":"a","emptyDir":{}}`) + `]}`),
		pod(`"metadata":{"managedFields":[` + filled(`{}`) + `]}`),
		pod(`"spec":{"priority":` + strings.Repeat("9", size) + `}`),
		pod(`"spec":{"tolerations":[` + filled(`{}`) + `]}`),
	}
	return append(bodies, bytes.Replace(bytes.Replace(pod(`"status":{"nodeAllocatableResourceClaimStatuses":[`+filled(`{}`)+`]}`),
		[]byte(`"CREATE"`), []byte(`"UPDATE"`), 1), []byte(`"name":"web"`), []byte(`"name":"web","subResource":"status","oldObject":{"kind":"Pod","apiVersion":"v1","spec":{"nodeName":"a"}}`), 1))
}

// bodiesUnderWay is how many hostile bodies are sent at once.
const bodiesUnderWay = 20

// sendHostileBodies keeps bodies under way, on the connection of the small ones.
func (a *attacked) sendHostileBodies(ctx context.Context) {
	bodies := hostileBodies()
	var running sync.WaitGroup
	for i := range bodiesUnderWay {
		running.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				status := a.send(ctx, bodies, n)
				if status != http.StatusTooManyRequests {
					continue
				}
				select { // as an API server
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
		})
	}
	running.Wait()
}

// send returns the status of the answer, 0 if there is none.
func (a *attacked) send(ctx context.Context, bodies [][]byte, n int) int {
	path := []string{"/admit", "/mutate"}[n%2]
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+a.server.Address+path, bytes.NewReader(bodies[n%len(bodies)]))
	if err != nil {
		a.b.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := read(a.client.Do(r))
	if err != nil {
		a.outcome("error")
		return 0
	}
	a.outcome(fmt.Sprint(got.status))
	return got.status
}

// TestHostileBodiesTakeLittleMemory: with 20 bodies of 6 MB under way, the server has
// less than 600 MB resident.
func TestHostileBodiesTakeLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 120 MB")
	}
	const limit = 600_000 // kB
	a := attackServer(t)
	defer a.end()
	bodies := hostileBodies()
	var running sync.WaitGroup
	for i := range bodiesUnderWay {
		running.Go(func() { a.send(t.Context(), bodies, i) })
	}
	running.Wait()
	var peak int
	if _, err := fmt.Sscanf(a.memory(), "%d kB", &peak); err != nil {
		t.Skip("the memory of processes is not known here:", err)
	}
	t.Logf("the most that was resident: %d kB; %s", peak, a.outcomes())
	if peak > limit {
		t.Errorf("%d kB were resident, want at most %d", peak, limit)
	}
	if a.statuses["error"] > 0 {
		t.Error("bodies got no answer")
	}
}

// resetRapidly sends requests without a certificate and takes them back.
func (a *attacked) resetRapidly(ctx context.Context) {
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for ctx.Err() == nil {
				conn, err := tls.Dial("tcp", a.server.Address, a.config())
				if err != nil {
					a.outcome("no connection")
					continue
				}
				a.outcome("connections")
				for n := 0; err == nil && ctx.Err() == nil; n++ {
					err = rapidReset(conn, n)
				}
				conn.Close()
			}
		})
	}
	running.Wait()
}

// connectAndWait opens connections without a certificate and keeps them.
func (a *attacked) connectAndWait(ctx context.Context) {
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			var held []*tls.Conn
			for ctx.Err() == nil {
				conn, err := tls.Dial("tcp", a.server.Address, a.config())
				if err != nil {
					a.outcome("no connection")
					continue
				}
				a.outcome("connections")
				if held = append(held, conn); len(held) > 500 {
					held[0].Close()
					held = held[1:]
				}
			}
			for _, conn := range held {
				conn.Close()
			}
		})
	}
	running.Wait()
}
