package mappings

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// source is one source of mappings.
type source struct {
	name     string
	kind     v1alpha1.MappingSource
	rules    iam.Rules
	observer Observer
	// follow calls apply and unreachable until the context ends.
	follow func(context.Context, *source)

	// writing is held while the state is replaced, and while the observer is called.
	writing sync.Mutex
	age     *staleness.Age
	state   atomic.Pointer[state]
}

// state is the state of a source. It is immutable, and replaced as a whole.
type state struct {
	read     bool
	mappings *iam.Mappings
	findings []finding.Finding
	// stale are broken keys whose last valid content is used, unknown the broken keys without such content.
	stale, unknown []string
	err            error
}

// apply replaces the mappings. Broken lists keep their content.
func (s *source) apply(parsed *iam.Mappings, findings []finding.Finding) (found []finding.Finding) {
	s.writing.Lock()
	defer s.writing.Unlock()
	was := s.state.Load()
	next := &state{read: true, mappings: parsed.Keep(was.mappings)}
	next.findings = slices.Concat(findings, next.mappings.Check(s.rules))
	finding.Sort(next.findings)
	for _, key := range parsed.Broken {
		if was.read && !slices.Contains(was.unknown, key) {
			next.stale = append(next.stale, key)
		} else {
			next.unknown = append(next.unknown, key)
		}
	}
	s.state.Store(next)
	if was.err != nil {
		s.observer.MappingsUnreachable(s.name, nil)
	}
	change := Change{
		Source: s.describe(next), Found: without(next.findings, was.findings), Fixed: without(was.findings, next.findings),
	}
	if !was.read || len(change.Found) > 0 || len(change.Fixed) > 0 || !reflect.DeepEqual(was.mappings.All(), next.mappings.All()) {
		s.observer.MappingsChanged(change)
	}
	return change.Found
}

// unreachable records that the source cannot be read now, or with nil that it can be
// again.
func (s *source) unreachable(err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	was := s.state.Load()
	if was.err == nil && err == nil {
		return
	}
	next := *was
	next.err = err
	s.state.Store(&next)
	if (was.err == nil) != (err == nil) {
		s.observer.MappingsUnreachable(s.name, err)
	}
}

// hides returns the list without valid content that could change a result, or an empty
// text. Lists are tried in this order: roles and users by the whole ARN, both by the
// names of roles with paths, accounts.
func (s *state) hides(canonical string, mapping iam.Mapping, found bool) string {
	for _, list := range s.unknown {
		exactRole := found && mapping.Kind == iam.RoleMapping && strings.EqualFold(mapping.ARN, canonical)
		switch {
		case !found, list == iam.MapRoles,
			list == iam.MapUsers && !exactRole:
			return list
		}
	}
	return ""
}

func without(findings, removed []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f finding.Finding) bool { return slices.Contains(removed, f) })
}

func (s *state) counts() map[iam.MappingKind]int {
	return map[iam.MappingKind]int{
		iam.RoleMapping: len(s.mappings.Roles), iam.UserMapping: len(s.mappings.Users), iam.AccountMapping: len(s.mappings.Accounts),
	}
}
