package attackpaths_test

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

const naiveLimit = 32767

// solve repeats all derivations until no fact becomes cheaper. Unreached facts have no entry.
func (n *naive) solve(start fact, possible bool) map[int]int {
	unreached := naiveLimit + 1
	cost := make([]int, len(n.facts))
	for i := range cost {
		cost[i] = unreached
	}
	cost[n.id(start)] = 0
	for changed := true; changed; {
		changed = false
		for _, d := range n.derivations {
			if d.possible && !possible {
				continue
			}
			sum := d.cost
			for _, f := range d.from {
				if cost[f] == unreached {
					sum = -1
					break
				}
				sum += cost[f]
			}
			if sum >= 0 && min(sum, naiveLimit) < cost[d.to] {
				cost[d.to], changed = min(sum, naiveLimit), true
			}
		}
	}
	reached := map[int]int{}
	for f, c := range cost {
		if c != unreached {
			reached[f] = c
		}
	}
	return reached
}

// found is the result of the exhaustive search for a holding.
type found struct {
	certainty attackpaths.Certainty
	cost      int
}

// from computes what a start reaches. Ties are credentials of nodes that are reached too:
// which way is shorter depends on the steps that others share.
func (n *naive) from(start attackpaths.Holding) (all map[attackpaths.Holding]found, ties map[attackpaths.Holding]bool) {
	f := n.startFact(start)
	all, ties = map[attackpaths.Holding]found{}, map[attackpaths.Holding]bool{}
	certain, possible := n.solve(f, false), n.solve(f, true)
	for f, id := range n.facts {
		run, certainty := certain, attackpaths.Certain
		cost, ok := run[id]
		if !ok {
			run, certainty = possible, attackpaths.Possible
			cost, ok = run[id]
		}
		if !ok {
			continue
		}
		h, ok := n.holdingOf(f)
		if !ok {
			continue
		}
		if strings.TrimPrefix(f.kind, acting) == credential {
			if _, ok := run[n.id(nodeHolding(f.name))]; ok {
				ties[h] = true // it may be reported or not
				continue
			}
		}
		before, ok := all[h]
		better := !ok || certainty > before.certainty || certainty == before.certainty && cost < before.cost
		if h != start && better {
			all[h] = found{certainty, cost}
		}
	}
	return all, ties
}

// startFact is what the attacker has at a start.
func (n *naive) startFact(start attackpaths.Holding) fact {
	if name, ok := strings.CutPrefix(start.Name, "system:node:"); ok && start.Kind == attackpaths.User {
		return cred(name)
	}
	if start.Kind == attackpaths.ServiceAccount {
		return n.startOf(inventory.Name{Namespace: start.Namespace, Name: start.Name})
	}
	return factOf(start)
}

func factOf(h attackpaths.Holding) fact { return fact{h.Kind, h.Namespace, h.Name} }

// holdingOf is the holding that a fact stands for.
func (n *naive) holdingOf(f fact) (attackpaths.Holding, bool) {
	h := attackpaths.Holding{Kind: strings.TrimPrefix(f.kind, acting), Namespace: f.namespace, Name: f.name}
	switch h.Kind {
	case credential:
		h.Kind, h.Name = attackpaths.User, "system:node:"+f.name
	case attackpaths.ClusterAdmin, attackpaths.Node, attackpaths.ServiceAccount, attackpaths.User, attackpaths.Group,
		attackpaths.Namespace, attackpaths.Secret, attackpaths.Pod:
	default:
		return h, false
	}
	return h, true
}
