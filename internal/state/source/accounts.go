package source

import (
	"cmp"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// ServiceAccountNames lists the service accounts that the state holds, by namespace and name.
func (s *State) ServiceAccountNames() []inventory.Name {
	keys := s.keys(kindServiceAccount)
	names := make([]inventory.Name, len(keys))
	for i, k := range keys {
		names[i] = inventory.Name{Namespace: k.namespace.Value(), Name: k.name}
	}
	slices.SortFunc(names, func(a, b inventory.Name) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return names
}
