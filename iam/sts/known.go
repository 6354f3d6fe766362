package sts

import (
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/node-authorizer/node-authorizer/iam"
)

// key stands for a token. The token itself is not kept.
type key [sha256.Size]byte

// answer is what a verifier says of a token.
type answer struct {
	caller *iam.Caller
	err    error
	// at is when STS answered.
	at time.Time
}

// result is a copy of the answer, which its receiver may change.
func (a answer) result() (*iam.Caller, error) {
	if a.err != nil {
		return nil, a.err
	}
	caller := *a.caller
	return &caller, nil
}

// refusedTTL is how long it is remembered that STS does not take a token. It is
// short: credentials become known to all of AWS only some seconds after they are made
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency).
const refusedTTL = 5 * time.Second

// known has the answers that are remembered, and the questions that are under way.
type known struct {
	ttl time.Duration

	mu                sync.Mutex
	callers, refusals *memory
	asked             map[key]*question
}

// newKnown returns one that remembers no answer longer than ttl. Refusals are
// remembered apart, so that they displace no callers.
func newKnown(ttl time.Duration, size int) *known {
	return &known{ttl: ttl, callers: newMemory(size), refusals: newMemory(size/10 + 1), asked: map[key]*question{}}
}

// question is one about a token, which several callers may wait for.
type question struct {
	key    key
	cancel context.CancelFunc
	// sent is whether a request to STS was made.
	sent atomic.Bool
	// answer is set when answered is closed.
	answered chan struct{}
	answer   answer
	// waiting is how many callers wait.
	waiting int
}

// answer returns what is remembered of a token.
func (k *known) answer(of key, now time.Time) (answer, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.remembered(of, now)
}

func (k *known) remembered(of key, now time.Time) (answer, bool) {
	if answer, ok := k.callers.get(of, now); ok {
		return answer, true
	}
	return k.refusals.get(of, now)
}

// join returns the question about a token. If nobody asks it yet, it is asked, on
// behalf of all who join: it ends when they have all left, not with one of them.
func (k *known) join(about key, now time.Time, ask func(context.Context, *question) answer) *question {
	k.mu.Lock()
	defer k.mu.Unlock()
	if q, ok := k.asked[about]; ok {
		q.waiting++
		return q
	}
	q := &question{key: about, answered: make(chan struct{}), waiting: 1}
	if answer, ok := k.remembered(about, now); ok { // it was answered a moment ago
		q.answer = answer
		close(q.answered)
		return q
	}
	var ctx context.Context
	ctx, q.cancel = context.WithCancel(context.Background())
	k.asked[about] = q
	go func() {
		defer q.cancel()
		k.conclude(q, ask(ctx, q))
	}()
	return q
}

// conclude hands an answer to all who wait for it, and remembers it if it is one for
// some time.
func (k *known) conclude(q *question, answer answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked[q.key] == q {
		delete(k.asked, q.key)
	}
	q.answer = answer
	close(q.answered)
	refusal := new(iam.Refusal)
	switch {
	case answer.err == nil:
		until := answer.at.Add(k.ttl)
		if answer.caller.NotAfter.Before(until) {
			until = answer.caller.NotAfter
		}
		k.callers.put(q.key, answer, until)
	case errors.As(answer.err, &refusal):
		k.refusals.put(q.key, answer, answer.at.Add(min(refusedTTL, k.ttl)))
	}
}

// leave ends the question if nobody else waits for its answer. Who asks then asks
// anew.
func (k *known) leave(q *question) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q.waiting--
	if q.waiting == 0 && k.asked[q.key] == q {
		delete(k.asked, q.key)
		q.cancel()
	}
}

// memory is a bounded number of answers, each until a time. The oldest makes room.
type memory struct {
	size    int
	entries map[key]*list.Element
	order   *list.List // of *remembered, the oldest first
}

type remembered struct {
	key    key
	answer answer
	until  time.Time
}

func newMemory(size int) *memory {
	return &memory{size: size, entries: map[key]*list.Element{}, order: list.New()}
}

func (m *memory) get(of key, now time.Time) (answer, bool) {
	element, ok := m.entries[of]
	if !ok {
		return answer{}, false
	}
	found := element.Value.(*remembered)
	if !now.Before(found.until) {
		m.forget(element)
		return answer{}, false
	}
	return found.answer, true
}

func (m *memory) put(of key, answer answer, until time.Time) {
	if !answer.at.Before(until) {
		return
	}
	if element, ok := m.entries[of]; ok {
		m.forget(element)
	}
	for len(m.entries) >= m.size {
		m.forget(m.order.Front())
	}
	m.entries[of] = m.order.PushBack(&remembered{key: of, answer: answer, until: until})
}

func (m *memory) forget(element *list.Element) {
	delete(m.entries, element.Value.(*remembered).key)
	m.order.Remove(element)
}
