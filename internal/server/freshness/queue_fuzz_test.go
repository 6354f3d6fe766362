package freshness

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// FuzzQueues adds requests, changes their answers and removes them in any order. Requests
// whose answer has changed are woken, the limits hold, the oldest requests give way, and the
// queues are empty when all requests are gone.
func FuzzQueues(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x01\x02\x40\x41\x80\x81\xc0"))
	f.Add([]byte("\x00\x10\x20\x30\x70\xb0\x70\x31\x71\xb1\xf0\x01\x41\x81"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 200 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			m := &queuesModel{t: t, queues: newQueues(fuzzedPerNode, fuzzedTotal)}
			for _, step := range steps {
				m.step(step)
				if waiting := m.queues.waiting.Load(); int(waiting) != len(m.waiting) || waiting > fuzzedTotal {
					t.Fatalf("%d requests wait, want %d, at most %d", waiting, len(m.waiting), fuzzedTotal)
				}
				m.checkGaveWay()
			}
			synctest.Wait()
			m.checkWoken()
			for len(m.waiting) > 0 {
				m.leave(0)
			}
			synctest.Wait()
			m.checkEmpty()
		})
	})
}

const fuzzedPerNode, fuzzedTotal = 3, 5

// queuesModel is the expected state of queues.
type queuesModel struct {
	t      *testing.T
	queues *queues
	// waiting are in the order in which they came, and gone have given way.
	waiting, gone []waitingRequest
	// related holds the questions, by node and number, whose answer has changed.
	related sync.Map
}

type waitingRequest struct {
	waiter   *waiter
	question [2]int
	probed   bool
}

// step reads the action from the highest bits of a byte, and the node and the question
// from the lowest bits.
func (m *queuesModel) step(b byte) {
	about := [2]int{int(b) & 3, int(b) >> 2 & 3}
	switch b >> 6 {
	case 0:
		m.enter(about, b>>4&1 == 0)
	case 1:
		m.related.Store(about, true)
		m.queues.changed(nodeNamed(about[0]))
	case 2:
		if len(m.waiting) > 0 {
			m.leave(int(b&63) % len(m.waiting))
		}
	case 3:
		m.queues.changed([]string{"", nodeNamed(about[0])}[b>>4&1])
		if b>>5&1 == 0 {
			synctest.Wait()
		}
	}
}

func nodeNamed(n int) string { return fmt.Sprintf("node-%d", n) }

// accountNamed returns nothing for the node itself.
func accountNamed(n int) string { return []string{"", "a", "", "b"}[n] }

func (m *queuesModel) enter(about [2]int, probed bool) {
	q := &question{asked: m.queues.changes.Load()}
	if probed {
		q.key, q.probe = about, func() bool { return m.isRelated(about) }
	}
	if m.isRelated(about) {
		return // the evaluator would have allowed it
	}
	m.makePlace(fuzzedPerNode, about, func(w waitingRequest) bool { return w.question[0] == about[0] })
	m.makePlace(fuzzedTotal, about, func(waitingRequest) bool { return true })
	t := m.queues.enter(nodeNamed(about[0]), accountNamed(about[1]), q)
	m.waiting = append(m.waiting, waitingRequest{t, about, probed})
}

// makePlace removes the oldest request within the narrowest bound that a new one would exceed.
func (m *queuesModel) makePlace(most int, about [2]int, concerns func(waitingRequest) bool) {
	account := accountNamed(about[1])
	within := []func(waitingRequest) bool{concerns}
	bounds := []int{most}
	if account != "" {
		of := func(w waitingRequest) string { return accountNamed(w.question[1]) }
		within = []func(waitingRequest) bool{
			func(w waitingRequest) bool { return concerns(w) && of(w) == account },
			func(w waitingRequest) bool { return concerns(w) && of(w) != "" },
			concerns,
		}
		bounds = []int{max(1, most/4), max(1, most/2), most}
	}
	for i, in := range within {
		var found []int
		for j, w := range m.waiting {
			if in(w) {
				found = append(found, j)
			}
		}
		if len(found) >= bounds[i] {
			m.gone = append(m.gone, m.waiting[found[0]])
			m.waiting = slices.Delete(m.waiting, found[0], found[0]+1)
			return
		}
	}
}

func (m *queuesModel) checkGaveWay() {
	gaveWay := func(w waitingRequest) bool {
		select {
		case <-w.waiter.gaveWay:
			return true
		default:
			return false
		}
	}
	if slices.ContainsFunc(m.waiting, gaveWay) {
		m.t.Fatal("a request gave way that is not the oldest")
	}
	for _, w := range m.gone {
		if !gaveWay(w) {
			m.t.Fatalf("the request about %v did not give way", w.question)
		}
		m.queues.leave(w.waiter) // as its wait does
	}
	m.gone = nil
}

func (m *queuesModel) isRelated(about [2]int) bool {
	_, related := m.related.Load(about)
	return related
}

func (m *queuesModel) leave(i int) {
	m.queues.leave(m.waiting[i].waiter)
	m.waiting = slices.Delete(m.waiting, i, i+1)
}

func (m *queuesModel) checkWoken() {
	for _, w := range m.waiting {
		if m.isRelated(w.question) && len(w.waiter.wake) == 0 {
			m.t.Errorf("the request about %v was not woken", w.question)
		}
	}
}

func (m *queuesModel) checkEmpty() {
	m.queues.mu.Lock()
	defer m.queues.mu.Unlock()
	qs := m.queues
	if t := qs.taken; t.all.Len()+t.accounts.Len()+len(t.byAccount) != 0 {
		m.t.Errorf("places that are taken: %d of all, %d of accounts, %v", t.all.Len(), t.accounts.Len(), t.byAccount)
	}
	if n := qs.waiting.Load(); n != 0 || len(qs.byNode) > 0 || len(qs.dirty) > 0 || qs.checking {
		m.t.Errorf("left: %d requests, %d queues, %d dirty, checking %v", n, len(qs.byNode), len(qs.dirty), qs.checking)
	}
}
