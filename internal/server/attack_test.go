package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// attackedEnv makes the test binary run as the server that benchmarks attack, so that its memory
// can be measured.
const attackedEnv = "NODE_AUTHORIZER_ATTACKED"

// attackedServer is the address of the server and the credentials to call it.
type attackedServer struct {
	Address                     string
	Authority, Certificate, Key []byte
}

// TestServeAttacked is not a test: it serves until its input ends.
func TestServeAttacked(t *testing.T) {
	if os.Getenv(attackedEnv) == "" {
		t.Skip("for BenchmarkAttacks")
	}
	limitMemory("/", (&logLines{}).logger())
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) { c.Shutdown.Delay.Duration = 0 })
	s.reload = reloadInterval // as in production: reading files each millisecond takes time
	queue := webhook.NewQueue()
	restriction := noderestriction.New(emptyState{}, nil, kubeversion.For(kubeversion.Latest))
	options := webhook.Options{Queue: queue}
	s.serve(parts{webhooks: map[string]http.Handler{
		"/authorize": webhook.Authorize(func(context.Context, *access.Request) (decision.Opinion, error) {
			return decision.Opinion{}, nil
		}, options),
		"/admit":  webhook.Admit(restriction.Decide, restriction.Reads, options),
		"/mutate": webhook.Mutate(options),
	}})
	certificate, key := s.callers.leaf("kube-apiserver", x509.ExtKeyUsageClientAuth, time.Now().Add(time.Hour))
	attacked := attackedServer{s.listeners.webhook.listener.Addr().String(), s.server.pem, certificate, key}
	if err := json.NewEncoder(os.Stdout).Encode(attacked); err != nil {
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

// BenchmarkAttacks prints the duration of requests of an API server, median and 99th percentile,
// without an attack and during each attack, in one run.
//
// Attackers without a certificate have a process and, if possible, a processor of their own. The
// server shares the other processor with the requests. The control is the same attack on another
// server, on the attacker's processor: it measures the cost that this server does not cause.
//
//	go test -run '^$' -bench Attacks -benchtime 1x ./internal/server
func BenchmarkAttacks(b *testing.B) {
	b.Run("bodies of 6 MB", attackWithBodies)
	for _, name := range slices.Sorted(maps.Keys(unknownCallers())) {
		b.Run(name, func(b *testing.B) { attackUnknown(b, name) })
	}
}

func attackWithBodies(b *testing.B) {
	a := attackServer(b)
	defer a.end()
	fmt.Printf("bodies of 6 MB:\n  quiet    %v\n", a.measure())
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { a.sendHostileBodies(ctx) })
	under := a.measure()
	stop()
	running.Wait()
	fmt.Printf("  attack   %v; memory %s; attacks: %v\n", under, a.memory(), a.statuses)
}

// attackUnknown runs an attack of callers without a certificate.
func attackUnknown(b *testing.B, name string) {
	var near, far []int // processors
	if all := processors(); len(all) > 1 {
		near, far = all[:1], all[1:2]
		pin(b, near)
		defer pin(b, all)
	}
	a, other := attackServer(b, near...), attackServer(b, far...)
	defer a.end()
	defer other.end()
	fmt.Printf("%s, processors of the server %v, of the attacker %v:\n  quiet    %v\n", name, near, far, a.measure())
	for _, row := range []struct {
		name   string
		target *attacked
	}{{"control", other}, {"attack", a}} {
		attack := startChild(b, attackingEnv+"="+name, "TestAttack", far...)
		if err := json.NewEncoder(attack.input).Encode(row.target.server); err != nil {
			b.Fatal(err)
		}
		usedBefore, waitedBefore := row.target.processorTime()
		start := time.Now()
		took := a.measure()
		passed := time.Since(start)
		used, waited := row.target.processorTime()
		attack.input.Close()
		var counts map[string]int
		if err := json.NewDecoder(attack.output).Decode(&counts); err != nil {
			b.Error(err)
		}
		attack.end()
		fmt.Printf("  %-8s %v; %v in %v; the attacked server used %v of a processor and waited %v for it, memory %s\n",
			row.name, took, counts, passed.Round(time.Millisecond), (used - usedBefore).Round(time.Millisecond),
			(waited - waitedBefore).Round(time.Millisecond), row.target.memory())
	}
}

// child is the test binary as another process. It ends when its input does.
type child struct {
	process *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

// startChild runs one test in a child, on the given processors; without any, on all.
func startChild(b testing.TB, env, test string, on ...int) *child {
	c := &child{process: exec.Command(os.Args[0], "-test.run=^"+test+"$")}
	// The collector has the default settings, not the settings of this process.
	c.process.Env = append(os.Environ(), env, "GOGC=100", "GOMEMLIMIT=off")
	c.process.Stderr = os.Stderr
	in, err := c.process.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	c.input, c.output = in, bufio.NewReader(out)
	if err := startOn(c.process, on); err != nil {
		b.Fatal(err)
	}
	return c
}

func (c *child) end() {
	c.input.Close()
	_ = c.process.Wait()
}

// attacked is an attacked server.
type attacked struct {
	*child
	server attackedServer
	// client calls like an API server: all its requests share a connection.
	client      *http.Client
	certificate *tls.Certificate

	mu       sync.Mutex
	statuses map[string]int
}

// attackServer starts a server, on the given processors; without any, on all.
func attackServer(b testing.TB, on ...int) *attacked {
	a := &attacked{statuses: map[string]int{}, child: startChild(b, attackedEnv+"=1", "TestServeAttacked", on...)}
	line, err := a.output.ReadBytes('\n')
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
	a.certificate = &certificate
	a.client = callerWith(a.server.config(), a.certificate)
	return a
}

func (s *attackedServer) config() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.Authority)
	return &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}}
}

func (a *attacked) end() {
	a.client.CloseIdleConnections()
	a.child.end()
}

// memory returns the peak of the resident memory of the server.
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

// processorTime returns how long the server has run on a processor, and how long it has waited
// for one.
func (a *attacked) processorTime() (used, waited time.Duration) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", a.process.Process.Pid))
	if err != nil {
		return 0, 0
	}
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		var ran, queued time.Duration // in nanoseconds
		if _, err := fmt.Sscan(string(text), &ran, &queued); err == nil {
			used, waited = used+ran, waited+queued
		}
	}
	return used, waited
}

// durations are the durations of requests.
type durations struct {
	took   []time.Duration
	errors int
	// fresh are the durations of requests on new connections.
	fresh *durations
}

func (d *durations) at(percent int) time.Duration {
	if len(d.took) == 0 {
		return 0
	}
	slices.Sort(d.took)
	return d.took[len(d.took)*percent/100].Round(10 * time.Microsecond)
}

// String implements fmt.Stringer.
func (d durations) String() string {
	text := fmt.Sprintf("median %v, p99 %v, %d requests, %d errors", d.at(50), d.at(99), len(d.took), d.errors)
	if d.fresh != nil {
		text += fmt.Sprintf("; on new connections %v", d.fresh)
	}
	return text
}

// measure sends small requests at intervals, some of them on a new connection.
func (a *attacked) measure() durations {
	const requests, pause, fresh = 400, 5 * time.Millisecond, 10
	d := durations{fresh: &durations{}}
	for n := range requests {
		time.Sleep(pause)
		d.add(a.question(a.client))
		if n%fresh == 0 {
			client := callerWith(a.server.config(), a.certificate)
			d.fresh.add(a.question(client))
			client.CloseIdleConnections()
		}
	}
	return d
}

func (d *durations) add(took time.Duration, ok bool) {
	if ok {
		d.took = append(d.took, took)
	} else {
		d.errors++
	}
}

func (a *attacked) question(client *http.Client) (took time.Duration, ok bool) {
	const question = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1",` +
		`"spec":{"user":"system:node:a","groups":["system:nodes"],` +
		`"resourceAttributes":{"verb":"get","resource":"secrets","namespace":"shop","name":"a","version":"v1"}}}`
	start := time.Now()
	got, err := read(client.Post("https://"+a.server.Address+"/authorize", "application/json", strings.NewReader(question)))
	return time.Since(start), err == nil && got.status == http.StatusOK
}
