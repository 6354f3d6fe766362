package replay

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

// request is what authorizers were asked about an event.
type request = nodeauthz.Request

// paths reads what the path of a request says of it, as kube-apiserver does.
type paths struct {
	factory *apirequest.RequestInfoFactory
}

func newPaths() paths {
	return paths{&apirequest.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}}
}

// methods are those of the requests whose body the API server looks into for what their
// path does not say, when it notes what they are about.
var methods = map[string]string{"create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch}

// requestOf restores what authorizers saw when the event's request came. The log
// notes names and namespaces that the API server took from the object later; a
// request to create bears none but those of its path.
func (p paths) requestOf(e *auditlog.Event, into *request) {
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
	if method, writes := methods[e.Verb]; writes {
		p.write(method, e, into)
	}
	readSelectors(into, path, query)
}

// write takes what a write is about from its path alone. A log whose paths are lost or
// changed has no names of what is created but those of the objects.
func (p paths) write(method string, e *auditlog.Event, into *request) {
	if at, err := url.ParseRequestURI(e.RequestURI); err == nil {
		info, err := p.factory.NewRequestInfo(&http.Request{Method: method, URL: at})
		if err == nil && info.IsResourceRequest {
			into.Resource, into.Subresource, into.Namespace, into.Name = info.Resource, info.Subresource, info.Namespace, info.Name
			return
		}
	}
	if e.Verb == "create" && into.Subresource == "" {
		into.Name = ""
	}
}

func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
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

// readSelectors reads the selectors of requests for many objects. One that cannot be
// parsed is none, as for the API server, so that the request is one for everything.
// In the old form /api/v1/watch/… they do not count.
func readSelectors(into *request, path, query string) {
	switch into.Verb {
	case "list", "watch", "deletecollection":
	default:
		return
	}
	if !strings.Contains(query, "Selector=") && !strings.Contains(query, "%") {
		return
	}
	if parts := resourceParts(unescaped(path)); len(parts) > 0 && (parts[0] == "watch" || parts[0] == "proxy") {
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
