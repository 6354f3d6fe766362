package attackpaths

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// deletesText is the end of the text of a step before which an object is deleted, and recreatesText the text of one that makes a role
// again.
var (
	deletesText   = regexp.MustCompile(`; may delete ([a-z]+)/(\S+) first$`)
	recreatesText = regexp.MustCompile(`^may delete (ClusterRole|Role) "(?:([^"/]+)/)?([^"]+)", which it holds, and create it again`)
)

// deletedBefore is the path of the collection and the name of the object that is deleted before a step.
func (s step) deletedBefore() (resource, namespace, name string, ok bool) {
	if m := recreatesText.FindStringSubmatch(s.Because); m != nil {
		return strings.ToLower(m[1]) + "s", m[2], m[3], true
	}
	m := deletesText.FindStringSubmatch(s.Because)
	if m == nil {
		return "", "", "", false
	}
	namespace, name, inNamespace := strings.Cut(m[2], "/")
	if !inNamespace {
		namespace, name = "", m[2]
	}
	return m[1], namespace, name, true
}

// deleteFirst deletes the object whose name a step needs, with each identity that is held: by its name, or as the only object of a
// collection that has the name.
func (e *executor) deleteFirst(ctx context.Context, s step) error {
	name, namespace, object, ok := s.deletedBefore()
	if !ok {
		return nil
	}
	for _, r := range kinds {
		if r.name != name {
			continue
		}
		last, _ := first(e.actors, func(a *actor) answer { return a.delete(ctx, r.at(namespace, object), immediately) })
		if last.refused() {
			one := r.in(namespace) + "?fieldSelector=metadata.name%3D" + object
			last, _ = first(e.actors, func(a *actor) answer { return a.delete(ctx, one, immediately) })
		}
		if err := last.failure(); err != nil && last.status != http.StatusNotFound {
			return fmt.Errorf("delete %s/%s: %w", name, object, err)
		}
		return e.settle(ctx)
	}
	return fmt.Errorf("delete %s/%s: the kind is not known", name, object)
}
