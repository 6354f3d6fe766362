package generate

import (
	"math/rand/v2"
	"strconv"
)

// Names that are prefixes of each other, that differ by case or separator
// only, or that read like the names that surround them.
var (
	nodeNames = []string{
		"node-1", "node-10", "node-100", "node", "node-2", "node-1.example", "worker", "worker-1", "worker-11",
		"ip-10-0-0-1.ec2.internal", "ip-10-0-0-10.ec2.internal", "a", "aa", "system", "nodes",
	}
	namespaceNames = []string{
		"default", "kube-system", "kube-node-lease", "shop", "shop-1", "shop-10", "sho", "team", "team-a", "a", "aa",
	}
	objectNames = []string{
		"db", "db-0", "db-01", "d", "api", "api-1", "api-10", "ap", "a", "aa", "node-1", "shop", "web.tls", "web", "token",
	}
	volumeNames = []string{"data", "data-0", "data-01", "d", "tmp", "api", "v", "0"}
)

// pool returns n distinct names: the given ones first, then numbered ones.
func pool(known []string, prefix string, n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		if i < len(known) {
			names = append(names, known[i])
			continue
		}
		names = append(names, prefix+strconv.Itoa(i-len(known)))
	}
	return names
}

// pick returns one of the choices with equal probability.
func pick[T any](r *rand.Rand, choices []T) T { return choices[r.IntN(len(choices))] }

// chance is true with probability percent/100.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// nearly returns a name that is not name but resembles it.
func nearly(r *rand.Rand, name string) string {
	if name == "" {
		return "0"
	}
	switch r.IntN(5) {
	case 0:
		return name[:len(name)-1]
	case 1:
		return name + "0"
	case 2:
		return name + " "
	case 3:
		return "x" + name
	default:
		return string(name[0]^0x20) + name[1:]
	}
}
