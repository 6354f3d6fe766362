package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// simulation runs several actors against one API server, one call at a time: a schedule says
// whose call is next, and whether it fails.
type simulation struct {
	*testCluster
	replicas []*Service
	policy   Policy
	// granted are the tokens that machines were given, in order.
	granted []granted
	// certificates are those that were approved. revoked holds the machines whose
	// revocation is complete.
	certificates []certificate
	revoked      map[string]bool
}

type granted struct {
	machine string
	token   *ledger.Token
}

type certificate struct{ machine, node, token, key string }

// actor calls the API server.
type actor struct {
	name string
	run  func(ctx context.Context) error
}

type actorKey struct{}

// pendingCall is one call of an actor that waits for the schedule.
type pendingCall struct{ proceed chan fault }

// running is an actor that has started.
type running struct {
	calls chan pendingCall // its next call
	ended chan error       // its result
}

// machineRequests is a machine that requests its token from a replica.
func (p *simulation) machineRequests(replica int, id *attest.Identity) actor {
	return actor{"redeem " + id.InstanceID, func(ctx context.Context) error {
		gone := p.revoked[id.InstanceID]
		s, done := p.replicas[replica].withOwnKeyring()
		defer done()
		grant, err := s.Redeem(ctx, request(id), id)
		if err != nil {
			return err
		}
		if gone {
			return fmt.Errorf("%w: %s was revoked before it asked, and got %s", errBroken, id.InstanceID, grant.Token)
		}
		p.granted = append(p.granted, granted{id.InstanceID, grant.Token})
		return nil
	}}
}

// withOwnKeyring returns a copy of the replica with its current key, in which no request
// waits for another one to read the key: a schedule contains only calls.
func (s *Service) withOwnKeyring() (copied *Service, done func()) {
	own := *s
	own.keys = newKeyring(s.keys.read, s.keys.now)
	s.keys.semaphore <- struct{}{}
	defer func() { <-s.keys.semaphore }()
	own.keys.started.Store(s.keys.started.Load())
	own.keys.last = s.keys.last
	return &own, func() {
		s.keys.semaphore <- struct{}{}
		defer func() { <-s.keys.semaphore }()
		if started := own.keys.started.Load(); started > s.keys.started.Load() {
			s.keys.started.Store(started)
			s.keys.last = own.keys.last
		}
	}
}

var (
	errBroken = errors.New("broken")
	errIdle   = errors.New("nothing to do")
	errDenied = errors.New("denied")
)

// tokenUsed is a client that requests a certificate for a key with a token of the machine,
// and the approver that decides about it.
func (p *simulation) tokenUsed(id, key string) actor {
	return actor{"approve " + id + " " + key, func(ctx context.Context) error {
		i := slices.IndexFunc(p.granted, func(g granted) bool { return g.machine == id })
		if i < 0 {
			return errIdle
		}
		if key == "attacker" { // has the last token, while the kubelet has the first
			for j, g := range p.granted {
				if g.machine == id {
					i = j
				}
			}
		}
		return p.approve(ctx, p.granted[i].token.ID, key)
	}}
}

func (p *simulation) approve(ctx context.Context, id, key string) error {
	if !slices.ContainsFunc(p.tokens(), func(t storedToken) bool { return t.id == id && p.now().Before(t.expiration) }) {
		return errDenied // it does not authenticate
	}
	list, err := p.ledger.List(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list.Items, func(e v1alpha1.NodeAttestation) bool { return e.Spec.TokenID == id })
	if i < 0 {
		return errDenied
	}
	entry := &list.Items[i]
	for i := range list.Items {
		rival := &list.Items[i]
		if rival.Spec.NodeName == entry.Spec.NodeName && rival.Phase() != v1alpha1.Revoked && v1alpha1.Older(rival, entry) < 0 {
			return errDenied
		}
	}
	if entry.Phase() == v1alpha1.Revoked || !p.now().Before(entry.Spec.TokenExpiration.Time) ||
		entry.BoundKey() != "" && entry.BoundKey() != key {
		return errDenied
	}
	entry.Status.Binding = &v1alpha1.TokenBinding{TokenID: id, PublicKey: key}
	if entry, err = p.ledger.UpdateStatus(ctx, entry); err != nil {
		return err
	}
	p.certificates = append(p.certificates, certificate{entry.Spec.InstanceID, entry.Spec.NodeName, id, key})
	entry.Status.Phase, entry.Status.TokenID = v1alpha1.Certified, id
	_, err = p.ledger.UpdateStatus(ctx, entry)
	return err
}

// operatorRevokes marks the entry of a machine, and then deletes its token.
func (p *simulation) operatorRevokes(id string) actor {
	return actor{"revoke " + id, func(ctx context.Context) error {
		entry, err := p.ledger.Get(ctx, v1alpha1.EntryName("test", id))
		if err != nil {
			return err
		}
		entry.Status.Phase = v1alpha1.Revoked
		if entry, err = p.ledger.UpdateStatus(ctx, entry); err != nil {
			return err
		}
		secrets := p.client.CoreV1().Secrets(ledger.TokenNamespace)
		err = secrets.Delete(ctx, ledger.TokenSecretName(entry.Spec.TokenID), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		p.revoked[id] = true
		return nil
	}}
}

// operatorDeletesTheKey: the next replica that reads the key creates a new one.
func (p *simulation) operatorDeletesTheKey() actor {
	return actor{"replace the key", func(ctx context.Context) error {
		return p.client.CoreV1().Secrets(ledger.KeyNamespace).Delete(ctx, ledger.KeySecretName, metav1.DeleteOptions{})
	}}
}

func (p *simulation) timePasses(d time.Duration) actor {
	return actor{"time", func(context.Context) error { p.advanceClock(d); return nil }}
}

// run starts and advances actors as the schedule says. Each byte is one step.
func (p *simulation) run(actors []actor, schedule []byte) error {
	var active []*running
	p.server.Intercept(func(ctx context.Context, _ fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
		self, ok := ctx.Value(actorKey{}).(*running)
		if !ok {
			return do(), nil // the test itself
		}
		mine := pendingCall{make(chan fault)}
		self.calls <- mine
		how := <-mine.proceed
		if how.done || how.rule == "" {
			answer := do()
			if how.rule == "" {
				return answer, nil
			}
		}
		return nil, errConnection
	})
	defer p.server.Intercept(nil)
	waiting := map[*running]pendingCall{}
	// step waits for the next call of an actor, or its end.
	step := func(r *running) error {
		select {
		case waiting[r] = <-r.calls:
			return nil
		case err := <-r.ended:
			delete(waiting, r)
			active = slices.DeleteFunc(active, func(other *running) bool { return other == r })
			if errors.Is(err, errBroken) {
				return err
			}
			p.waitForCache(p.known)
			return nil
		}
	}
	advance := func(r *running, how fault) error {
		waiting[r].proceed <- how
		return step(r)
	}
	var broken error
	for _, b := range schedule {
		choice := int(b) % (len(actors) + 3*len(active))
		if choice < len(actors) {
			if len(active) == 4 {
				continue
			}
			r := &running{make(chan pendingCall), make(chan error, 1)}
			active = append(active, r)
			go func(run func(context.Context) error) {
				r.ended <- run(context.WithValue(context.Background(), actorKey{}, r))
			}(actors[choice].run)
			broken = errors.Join(broken, step(r))
		} else {
			choice -= len(actors)
			how := fault{}
			if choice/len(active) == 2 { // one of three steps fails
				how = faults[int(b>>6)%2]
			}
			broken = errors.Join(broken, advance(active[choice%len(active)], how))
		}
		broken = errors.Join(broken, p.invariants())
	}
	for len(active) > 0 {
		broken = errors.Join(broken, advance(active[0], fault{}))
	}
	return errors.Join(broken, p.invariants(), p.finalState())
}

// invariants hold after each step.
func (p *simulation) invariants() error {
	keys, machines, nodes := map[string]string{}, map[string]string{}, map[string]string{}
	for _, c := range p.certificates {
		if other, ok := keys[c.token]; ok && other != c.key {
			return fmt.Errorf("%w: token %s was used for keys %s and %s", errBroken, c.token, other, c.key)
		}
		if other, ok := machines[c.machine]; ok && other != c.token && p.policy == Never {
			return fmt.Errorf("%w: %s used the tokens %s and %s", errBroken, c.machine, other, c.token)
		}
		if other, ok := nodes[c.node]; ok && other != c.machine && !p.revoked[other] && !p.revoked[c.machine] {
			return fmt.Errorf("%w: node %s is %s and %s", errBroken, c.node, other, c.machine)
		}
		keys[c.token], machines[c.machine], nodes[c.node] = c.key, c.token, c.machine
	}
	usable := map[string]string{}
	for _, token := range p.tokens() {
		given := func(g granted) bool { return g.token.Value() == token.value }
		if !p.usable(token) || !slices.ContainsFunc(p.granted, given) {
			continue
		}
		if other, ok := usable[token.owner.Name]; ok {
			return fmt.Errorf("%w: %s was given %s and %s, which are both usable", errBroken, token.owner.Name, other, token.id)
		}
		usable[token.owner.Name] = token.id
	}
	return nil
}

// finalState holds when all actors have ended: a revoked machine has no usable token, and any
// other machine gets a token or a refusal.
func (p *simulation) finalState() error {
	for _, token := range p.tokens() {
		for _, g := range p.granted {
			if p.revoked[g.machine] && g.token.Value() == token.value && p.usable(token) {
				return fmt.Errorf("%w: %s is revoked, and %s is usable", errBroken, g.machine, token.id)
			}
		}
	}
	p.server.Intercept(nil)
	p.waitForCache(p.known)
	for _, id := range []*attest.Identity{machine("i-1", "worker-1"), machine("i-2", "worker-1")} {
		grant, err := p.replicas[0].Redeem(context.Background(), request(id), id)
		var refusal *attest.Refusal
		switch {
		case err == nil && p.revoked[id.InstanceID]:
			return fmt.Errorf("%w: %s is revoked, and got %s", errBroken, id.InstanceID, grant.Token)
		case err == nil:
			if err := p.oneToken(id, grant); err != nil {
				return fmt.Errorf("%w: %w", errBroken, err)
			}
		case !errors.As(err, &refusal):
			return fmt.Errorf("%w: a retry of %s: %w", errBroken, id.InstanceID, err)
		}
	}
	return nil
}

// interleave runs one schedule. Its first byte selects the policy.
func interleave(t testing.TB, schedule []byte) {
	t.Helper()
	if len(schedule) == 0 || len(schedule) > 200 {
		return
	}
	p := &simulation{testCluster: newTestCluster(t), revoked: map[string]bool{}}
	p.policy = []Policy{Never, Always}[int(schedule[0])%2]
	p.replicas = []*Service{p.service(with(p.policy)), p.service(with(p.policy))}
	one, two := machine("i-1", "worker-1"), machine("i-2", "worker-1")
	err := p.run([]actor{
		p.machineRequests(0, one), p.machineRequests(1, one), p.machineRequests(0, two), p.machineRequests(1, two),
		p.tokenUsed("i-1", "kubelet"), p.tokenUsed("i-1", "attacker"), p.tokenUsed("i-2", "kubelet"),
		p.operatorRevokes("i-1"), p.timePasses(5 * time.Minute), p.operatorDeletesTheKey(), p.timePasses(keyTTL),
	}, schedule[1:])
	if err != nil {
		t.Errorf("schedule %v: %v", schedule, err)
	}
}

// TestInterleavings runs many schedules, the same in each test run.
func TestInterleavings(t *testing.T) {
	random, schedules := rand.New(rand.NewPCG(4, 4)), 100
	if testing.Short() {
		schedules = 25
	}
	for range schedules {
		schedule := make([]byte, 1+random.IntN(80))
		for i := range schedule {
			schedule[i] = byte(random.Uint32())
		}
		interleave(t, schedule)
		if t.Failed() {
			return
		}
	}
}

// FuzzInterleavings searches for a schedule of two machines with one name, an attacker, a
// revocation, expiry and failed calls that violates an invariant.
func FuzzInterleavings(f *testing.F) {
	f.Add([]byte{0, 0, 9, 9, 9, 9, 4, 9, 9, 9, 9})
	f.Add([]byte{1, 0, 0, 10, 11, 9, 9, 7, 9, 10, 8, 0, 9, 9})
	// A retry creates the Secret again that a revocation has just deleted. The approver denies
	// requests that use it.
	f.Add([]byte("07!9\tz2x08097\r77770"))
	f.Fuzz(func(t *testing.T, schedule []byte) { interleave(t, schedule) })
}
