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
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/ledger"
)

// play runs several actors against one API server, one call at a time: a
// schedule says whose call is next, and whether it is cut.
type play struct {
	*world
	replicas []*Service
	policy   Policy
	// granted are the tokens that machines were given, in order.
	granted []granted
	// certificates are those that were approved, and revoked the machines that
	// somebody finished revoking.
	certificates []certificate
	revoked      map[string]bool
}

type granted struct {
	machine string
	token   *ledger.Token
}

type certificate struct{ machine, node, token, key string }

// actor is something that calls the API server.
type actor struct {
	name string
	run  func(ctx context.Context) error
}

type actorKey struct{}

// turn is one call that waits for its turn.
type turn struct{ proceed chan cut }

// running is an actor on its way.
type running struct {
	calls chan turn  // its next call
	ended chan error // what it came to
}

// machineAsks is a machine that asks a replica for its token.
func (p *play) machineAsks(replica int, id *attest.Identity) actor {
	return actor{"redeem " + id.InstanceID, func(ctx context.Context) error {
		gone := p.revoked[id.InstanceID]
		s, done := p.replicas[replica].alone()
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

// alone is the replica with the key that it has, in which no request waits for what
// another one reads: a schedule knows of calls only.
func (s *Service) alone() (copied *Service, done func()) {
	own := *s
	own.keys = newKeyring(s.keys.read, s.keys.now)
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	own.keys.begun, own.keys.last = s.keys.begun, s.keys.last
	return &own, func() {
		s.keys.mu.Lock()
		defer s.keys.mu.Unlock()
		if own.keys.begun > s.keys.begun {
			s.keys.begun, s.keys.last = own.keys.begun, own.keys.last
		}
	}
}

var (
	errBroken = errors.New("broken")
	errIdle   = errors.New("nothing to do")
	errDenied = errors.New("denied")
)

// kubeletAsks is somebody who has a token of the machine make a certificate for a
// key, and the approver's rules for that.
func (p *play) kubeletAsks(id, key string) actor {
	return actor{"approve " + id + " " + key, func(ctx context.Context) error {
		i := slices.IndexFunc(p.granted, func(g granted) bool { return g.machine == id })
		if i < 0 {
			return errIdle
		}
		if key == "thief" { // who saw the last token, while the kubelet has the first
			for j, g := range p.granted {
				if g.machine == id {
					i = j
				}
			}
		}
		return p.approve(ctx, p.granted[i].token.ID, key)
	}}
}

func (p *play) approve(ctx context.Context, id, key string) error {
	if !slices.ContainsFunc(p.tokens(), func(t held) bool { return t.id == id && p.now().Before(t.expiration) }) {
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
		if rival := &list.Items[i]; rival.Spec.NodeName == entry.Spec.NodeName && rival.Phase() != v1alpha1.Revoked && v1alpha1.Older(rival, entry) < 0 {
			return errDenied
		}
	}
	if entry.Phase() == v1alpha1.Revoked || !p.now().Before(entry.Spec.TokenExpiration.Time) || entry.BoundKey() != "" && entry.BoundKey() != key {
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

// somebodyRevokes marks the entry of a machine, and then deletes its token.
func (p *play) somebodyRevokes(id string) actor {
	return actor{"revoke " + id, func(ctx context.Context) error {
		entry, err := p.ledger.Get(ctx, v1alpha1.EntryName("test", id))
		if err != nil {
			return err
		}
		entry.Status.Phase = v1alpha1.Revoked
		if entry, err = p.ledger.UpdateStatus(ctx, entry); err != nil {
			return err
		}
		err = p.client.CoreV1().Secrets(ledger.TokenNamespace).Delete(ctx, ledger.TokenSecretName(entry.Spec.TokenID), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		p.revoked[id] = true
		return nil
	}}
}

// somebodyReplacesTheKey deletes it: the next replica that reads it makes another.
func (p *play) somebodyReplacesTheKey() actor {
	return actor{"replace the key", func(ctx context.Context) error {
		return p.client.CoreV1().Secrets(ledger.KeyNamespace).Delete(ctx, ledger.KeySecretName, metav1.DeleteOptions{})
	}}
}

func (p *play) timePasses(d time.Duration) actor {
	return actor{"time", func(context.Context) error { p.pass(d); return nil }}
}

// perform has actors come on and go on as the schedule says: each byte is one
// step.
func (p *play) perform(cast []actor, schedule []byte) error {
	var on []*running
	p.server.Intercept(func(ctx context.Context, _ fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
		self, ok := ctx.Value(actorKey{}).(*running)
		if !ok {
			return do(), nil // the test itself
		}
		mine := turn{make(chan cut)}
		self.calls <- mine
		how := <-mine.proceed
		if how.done || how.rule == "" {
			answer := do()
			if how.rule == "" {
				return answer, nil
			}
		}
		return nil, errCut
	})
	defer p.server.Intercept(nil)
	waiting := map[*running]turn{}
	// step lets an actor run until its next call or its end.
	step := func(r *running) error {
		select {
		case waiting[r] = <-r.calls:
			return nil
		case err := <-r.ended:
			delete(waiting, r)
			on = slices.DeleteFunc(on, func(other *running) bool { return other == r })
			if errors.Is(err, errBroken) {
				return err
			}
			p.caughtUp(p.known)
			return nil
		}
	}
	advance := func(r *running, how cut) error {
		waiting[r].proceed <- how
		return step(r)
	}
	var broken error
	for _, b := range schedule {
		choice := int(b) % (len(cast) + 3*len(on))
		if choice < len(cast) {
			if len(on) == 4 {
				continue
			}
			r := &running{make(chan turn), make(chan error, 1)}
			on = append(on, r)
			go func(run func(context.Context) error) {
				r.ended <- run(context.WithValue(context.Background(), actorKey{}, r))
			}(cast[choice].run)
			broken = errors.Join(broken, step(r))
		} else {
			choice -= len(cast)
			how := cut{}
			if choice/len(on) == 2 { // of three steps one is cut
				how = cuts[int(b>>6)%2]
			}
			broken = errors.Join(broken, advance(on[choice%len(on)], how))
		}
		broken = errors.Join(broken, p.invariants())
	}
	for len(on) > 0 {
		broken = errors.Join(broken, advance(on[0], cut{}))
	}
	return errors.Join(broken, p.invariants(), p.aftermath())
}

// invariants hold at any time.
func (p *play) invariants() error {
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
		if !p.usable(token) || !slices.ContainsFunc(p.granted, func(g granted) bool { return g.token.Value() == token.value }) {
			continue
		}
		if other, ok := usable[token.owner.Name]; ok {
			return fmt.Errorf("%w: %s was given %s and %s, which are both usable", errBroken, token.owner.Name, other, token.id)
		}
		usable[token.owner.Name] = token.id
	}
	return nil
}

// aftermath holds when all is quiet: a machine that was revoked has no token that
// it was given, and one that was not gets one, or is refused for good reason.
func (p *play) aftermath() error {
	for _, token := range p.tokens() {
		for _, g := range p.granted {
			if p.revoked[g.machine] && g.token.Value() == token.value && p.usable(token) {
				return fmt.Errorf("%w: %s is revoked, and %s is usable", errBroken, g.machine, token.id)
			}
		}
	}
	p.server.Intercept(nil)
	p.caughtUp(p.known)
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

// interleave plays one schedule. Its first byte chooses the policy.
func interleave(t testing.TB, schedule []byte) {
	t.Helper()
	if len(schedule) == 0 || len(schedule) > 200 {
		return
	}
	p := &play{world: newWorld(t), revoked: map[string]bool{}}
	p.policy = []Policy{Never, Always}[int(schedule[0])%2]
	p.replicas = []*Service{p.service(with(p.policy)), p.service(with(p.policy))}
	one, two := machine("i-1", "worker-1"), machine("i-2", "worker-1")
	err := p.perform([]actor{
		p.machineAsks(0, one), p.machineAsks(1, one), p.machineAsks(0, two), p.machineAsks(1, two),
		p.kubeletAsks("i-1", "kubelet"), p.kubeletAsks("i-1", "thief"), p.kubeletAsks("i-2", "kubelet"),
		p.somebodyRevokes("i-1"), p.timePasses(5 * time.Minute), p.somebodyReplacesTheKey(), p.timePasses(keyLife),
	}, schedule[1:])
	if err != nil {
		t.Errorf("schedule %v: %v", schedule, err)
	}
}

// TestInterleavings plays many schedules, the same in each run.
func TestInterleavings(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 100 {
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

// FuzzInterleavings looks for a schedule of two machines with one name, a thief,
// a revocation, expiry and lost calls that gives away more than one machine may
// have.
func FuzzInterleavings(f *testing.F) {
	f.Add([]byte{0, 0, 9, 9, 9, 9, 4, 9, 9, 9, 9})
	f.Add([]byte{1, 0, 0, 10, 11, 9, 9, 7, 9, 10, 8, 0, 9, 9})
	// A retry creates the Secret anew that a revocation has just deleted: the
	// approver denies what is asked for with it.
	f.Add([]byte("07!9\tz2x08097\r77770"))
	f.Fuzz(func(t *testing.T, schedule []byte) { interleave(t, schedule) })
}
