package quarantine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
)

// TestServersAgreeWhateverTheySawBefore checks every state of some servers and some Quarantines of one second: every status
// that an object can have, and every status with which each server can know it, which may be older, or of someone who
// forged it. From there on, the servers get the latest versions and write the statuses that follow from what they know, in
// every order. A write demands the latest version. Then
//
//   - where nothing is left to do, all servers refuse the same nodes, as many as the limit allows, and the statuses say so,
//   - and they stop after finitely many steps, unless something is never delivered.
func TestServersAgreeWhateverTheySawBefore(t *testing.T) {
	for _, m := range []*model{
		{objects: 3, servers: 2, limit: 1},
		{objects: 3, servers: 2, limit: 2},
		{objects: 2, servers: 3, limit: 1},
		{objects: 3, servers: 2, limit: 1, nodes: 2},
	} {
		t.Run(fmt.Sprintf("%d objects of %d nodes, %d servers, limit %d", m.objects, m.of(), m.servers, m.limit), func(t *testing.T) {
			t.Parallel()
			m.wanted = map[string]string{}
			m.check(t)
		})
	}
}

// The statuses of an object, and the one of an object that a server does not know.
const (
	none = iota
	accepted
	exceeds
	statuses
	unknown = statuses
)

// model is a number of servers and Quarantines. A state of it is a text: the status of each object, and then for each
// server and object the status that it knows, or latest. So two servers never share an older version.
type model struct {
	objects, servers, limit int
	// nodes is how many nodes the objects name; 0 for as many as objects.
	nodes int
	// wanted are the statuses that follow from known ones.
	wanted map[string]string
}

// latest stands for the status of the latest version.
const latest = unknown + 1

func (m *model) of() int {
	if m.nodes > 0 {
		return m.nodes
	}
	return m.objects
}

// want returns the statuses that a server wants, by those that it knows.
func (m *model) want(known string) string {
	if want, found := m.wanted[known]; found {
		return want
	}
	var all []*v1alpha1.Quarantine
	for i := range m.objects {
		if known[i] == unknown {
			continue
		}
		q := ofNode(fmt.Sprint(i%m.of()), named(fmt.Sprint(i)))
		if known[i] != none {
			condition := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse}
			if known[i] == accepted {
				condition.Status = metav1.ConditionTrue
			}
			q.Status.Conditions = []metav1.Condition{condition}
		}
		all = append(all, q)
	}
	_, excess := quarantine.NewSet(all, quarantine.Limit{Nodes: m.limit}, metav1.Now().Time)
	want := []byte(known)
	for _, q := range all {
		want[q.Name[0]-'0'] = accepted
	}
	for _, q := range excess {
		want[q.Name[0]-'0'] = exceeds
	}
	m.wanted[known] = string(want)
	return string(want)
}

// knows returns the statuses that a server knows.
func (m *model) knows(state string, server int) string {
	known := []byte(state[m.at(server, 0):m.at(server+1, 0)])
	for i := range known {
		if known[i] == latest {
			known[i] = state[i]
		}
	}
	return string(known)
}

// at is the index in a state of a server's status of an object.
func (m *model) at(server, object int) int { return m.objects*(1+server) + object }

// step is a step from a state: a delivery, or a write.
type step struct {
	delivers bool
	at       int // of a delivery
	to       string
}

func (m *model) steps(state string) (all []step) {
	for server := range m.servers {
		want := m.want(m.knows(state, server))
		for i := range m.objects {
			to := []byte(state)
			switch at := m.at(server, i); {
			case state[at] != latest:
				to[at] = latest
				all = append(all, step{true, at, string(to)})
			case want[i] != state[i]:
				to[i] = want[i]
				for other := range m.servers {
					if at := m.at(other, i); state[at] == latest {
						to[at] = state[i]
					}
				}
				all = append(all, step{to: string(to)})
			}
		}
	}
	return all
}

// states calls a function with every state.
func (m *model) states(do func(string)) {
	state := make([]byte, m.at(m.servers, 0))
	for {
		do(string(state))
		i := 0
		for ; i < len(state); i++ {
			last := byte(latest)
			if i < m.objects {
				last = statuses - 1
			}
			if state[i] < last {
				state[i]++
				break
			}
			state[i] = 0
		}
		if i == len(state) {
			return
		}
	}
}

// number returns a number of its own for each state.
func (m *model) number(state string) (n int) {
	for i := range len(state) {
		base := latest + 1
		if i < m.objects {
			base = statuses
		}
		n = n*base + min(int(state[i]), base-1)
	}
	return n
}

func (m *model) check(t *testing.T) {
	all := 0
	m.states(func(state string) {
		all++
		if len(m.steps(state)) == 0 {
			m.checkEnd(t, state)
		}
	})
	for _, group := range m.cycles() {
		if m.isFair(group) {
			t.Errorf("%d states follow one another forever, such as %v", len(group), []byte(group[0]))
		}
	}
	t.Logf("%d states", all)
}

// checkEnd checks a state in which nothing is left to do.
func (m *model) checkEnd(t *testing.T, state string) {
	t.Helper()
	refused := map[int]bool{}
	for i := range m.objects {
		if state[i] == accepted {
			refused[i%m.of()] = true
		}
	}
	if len(refused) != min(m.limit, m.of()) {
		t.Errorf("the statuses %v refuse %d nodes", []byte(state[:m.objects]), len(refused))
	}
	for server := range m.servers {
		if known := m.knows(state, server); known != state[:m.objects] || m.want(known) != known {
			t.Errorf("in the end, a server knows %v of %v", []byte(known), []byte(state[:m.objects]))
		}
	}
}

// cycles returns the strongly connected groups of more than one state, by Tarjan's algorithm.
func (m *model) cycles() (groups [][]string) {
	type frame struct {
		state  string
		number int
		steps  []step
	}
	// index is the order in which states were found, from 1, and low the lowest index that a state leads to.
	count, total := 0, m.number(strings.Repeat("\xff", m.at(m.servers, 0)))+1
	index, low, on := make([]int, total), make([]int, total), make([]bool, total)
	var stack []string
	enter := func(state string) frame {
		count++
		n := m.number(state)
		index[n], low[n], on[n] = count, count, true
		stack = append(stack, state)
		return frame{state, n, m.steps(state)}
	}
	m.states(func(from string) {
		if index[m.number(from)] > 0 {
			return
		}
		for path := []frame{enter(from)}; len(path) > 0; {
			f := &path[len(path)-1]
			if len(f.steps) > 0 {
				to := f.steps[0].to
				f.steps = f.steps[1:]
				if n := m.number(to); index[n] == 0 {
					path = append(path, enter(to))
				} else if on[n] {
					low[f.number] = min(low[f.number], index[n])
				}
				continue
			}
			if low[f.number] == index[f.number] {
				var group []string
				for last := ""; last != f.state; {
					last = stack[len(stack)-1]
					stack, on[m.number(last)] = stack[:len(stack)-1], false
					group = append(group, last)
				}
				if len(group) > 1 {
					groups = append(groups, group)
				}
			}
			if path = path[:len(path)-1]; len(path) > 0 {
				parent := path[len(path)-1].number
				low[parent] = min(low[parent], low[f.number])
			}
		}
	})
	return groups
}

// isFair reports whether servers can stay in a group of states forever, although each delivery that is always possible
// happens at some time.
func (m *model) isFair(group []string) bool {
	in := map[string]bool{}
	for _, state := range group {
		in[state] = true
	}
	for at := m.objects; at < m.at(m.servers, 0); at++ {
		always, within := true, false
		for _, state := range group {
			if state[at] == latest {
				always = false
				break
			}
			for _, s := range m.steps(state) {
				within = within || s.delivers && s.at == at && in[s.to]
			}
		}
		if always && !within {
			return false
		}
	}
	return true
}
