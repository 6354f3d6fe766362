package replay

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

// request is what authorizers were asked about an event.
type request = nodeauthz.Request

// requestOf restores what authorizers saw when the event's request came. The log
// notes names and namespaces that the API server took from the object later; a
// request to create bears none but those of its path.
func requestOf(e *auditlog.Event, into *request) {
	user := userOf(e)
	path, query, _ := strings.Cut(e.RequestURI, "?")
	*into = request{User: user.Name, UID: user.UID, Groups: user.Groups, Verb: e.Verb}
	o := e.Object
	if o == nil {
		into.Path = unescaped(path)
		return
	}
	into.ResourceRequest = true
	into.Group, into.Version, into.Resource, into.Subresource = o.Group, o.Version, o.Resource, o.Subresource
	into.Namespace, into.Name = o.Namespace, o.Name
	if e.Verb == "create" && o.Subresource == "" {
		into.Name = nameInPath(path)
	}
	selectors(into, path, query)
}

func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// nameInPath is the name behind the resource; empty in
// /api/v1/namespaces/NAMESPACE/RESOURCE, which has none.
func nameInPath(path string) string {
	parts := resourceParts(path)
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) < 2 {
		return ""
	}
	return unescaped(parts[1])
}

// resourceParts are the parts of a path behind the version:
// /api/v1/… and /apis/GROUP/VERSION/….
func resourceParts(path string) []string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) <= skip {
		return nil
	}
	return parts[skip:]
}

// selectors reads the selectors of requests for many objects. One that cannot be
// parsed is none, as for the API server, so that the request is one for everything.
// In the old form /api/v1/watch/… they do not count.
func selectors(into *request, path, query string) {
	switch into.Verb {
	case "list", "watch", "deletecollection":
	default:
		return
	}
	if !strings.Contains(query, "Selector=") {
		return
	}
	if parts := resourceParts(path); len(parts) > 0 && (parts[0] == "watch" || parts[0] == "proxy") {
		return
	}
	values, _ := url.ParseQuery(query) // what can be read of it, as in the API server
	if selector, err := fields.ParseSelector(values.Get("fieldSelector")); err == nil {
		if requirements := selector.Requirements(); len(requirements) > 0 {
			into.FieldSelector = requirements
		}
	}
	if selector, err := labels.Parse(values.Get("labelSelector")); err == nil {
		if requirements, selectable := selector.Requirements(); selectable && len(requirements) > 0 {
			into.LabelSelector = requirements
		}
	}
}
