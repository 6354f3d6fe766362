package nodeauthz

import "strings"

// verbSet is a set of the verbs that rules know.
type verbSet uint8

const (
	get verbSet = 1 << iota
	list
	watch
	create
	update
	patch
	remove
	removeCollection
)

var verbNames = [...]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// verb returns the set of one verb, empty for verbs that no rule knows.
func verb(name string) verbSet {
	switch name {
	case "get":
		return get
	case "list":
		return list
	case "watch":
		return watch
	case "create":
		return create
	case "update":
		return update
	case "patch":
		return patch
	case "delete":
		return remove
	case "deletecollection":
		return removeCollection
	}
	return 0
}

// names returns the verbs in the order that Kubernetes lists them.
func (s verbSet) names() []string {
	var names []string
	for i, name := range verbNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (s verbSet) String() string { return strings.Join(s.names(), ", ") }
