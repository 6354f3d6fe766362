package replay

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/auditlog"
)

// request is what authorizers were asked about an event.
type request = access.Request

// paths reads what the path of a request says of it, as kube-apiserver does. It keeps
// what it has read, because kubelets send the same requests again and again.
type paths struct {
	factory *apirequest.RequestInfoFactory
	read    map[string]located
}

// Bounds of what paths keeps.
const (
	keptPaths      = 4096
	keptPathLength = 512
)

// located is what a path says.
type located struct {
	// object is what a request is about, without a name that only its body has.
	object auditlog.Object
	// resource is true if there is an object, and plain the path, without escapes, if not.
	resource bool
	plain    string
	// old is true for the forms /api/v1/watch/… and /api/v1/proxy/….
	old bool
}

func newPaths() paths {
	return paths{
		factory: &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
		read:    map[string]located{},
	}
}

// requestOf restores what authorizers saw when the event's request came: what its path
// says. The log's object has names and namespaces that the API server took from the body
// later; it counts only where the path is lost or cannot be read.
func (p paths) requestOf(e *auditlog.Event, into *request) {
	user := userOf(e)
	*into = request{User: user.Name, UID: user.UID, Groups: user.Groups, Verb: e.Verb}
	uriPath, query, _ := strings.Cut(e.RequestURI, "?")
	at, known := p.locate(uriPath)
	if !known {
		at = ofLog(e, uriPath)
	}
	if !at.resource {
		into.Path = at.plain
		return
	}
	into.ResourceRequest = true
	o := &at.object
	into.Group, into.Version, into.Resource, into.Subresource = o.Group, o.Version, o.Resource, o.Subresource
	into.Namespace, into.Name = o.Namespace, o.Name
	if !at.old {
		readSelectors(into, query)
	}
}

// locate reads a path; false if it says nothing.
func (p paths) locate(uriPath string) (located, bool) {
	if uriPath == "" {
		return located{}, false
	}
	if kept, ok := p.read[uriPath]; ok {
		return kept, true
	}
	at, err := url.ParseRequestURI(uriPath)
	if err != nil {
		return located{}, false
	}
	// Of the method nothing depends but the verb, which the log has.
	info, err := p.factory.NewRequestInfo(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: at.Path}})
	if err != nil {
		return located{}, false
	}
	found := located{plain: at.Path, resource: info.IsResourceRequest, old: info.Verb != "create"}
	if found.resource {
		found.object = auditlog.Object{
			Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
			Namespace: info.Namespace, Name: info.Name,
		}
	}
	p.keep(uriPath, found)
	return found, true
}

func (p paths) keep(uriPath string, found located) {
	if len(uriPath) > keptPathLength {
		return
	}
	if len(p.read) >= keptPaths {
		clear(p.read)
	}
	p.read[strings.Clone(uriPath)] = found
}

// ofLog is what the log says of a request whose path does not say it. Of what is created
// it has no names but those of the bodies.
func ofLog(e *auditlog.Event, uriPath string) located {
	if e.Object == nil {
		return located{plain: unescaped(uriPath)}
	}
	found := located{object: *e.Object, resource: true}
	if e.Verb == "create" && found.object.Subresource == "" {
		found.object.Name = ""
	}
	return found
}

// correct replaces the event's object by what its path says, for which there is room. What
// is created has the name of its body there, as admission sees it.
func (p paths) correct(e *auditlog.Event, room *auditlog.Object) {
	uriPath, _, _ := strings.Cut(e.RequestURI, "?")
	at, known := p.locate(uriPath)
	switch {
	case !known:
		return
	case !at.resource:
		e.Object = nil
		return
	}
	*room = at.object
	if room.Name == "" && e.Verb == "create" && e.Object != nil {
		room.Name = e.Object.Name
	}
	e.Object = room
}

func unescaped(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// readSelectors reads the selectors of requests for many objects. One that cannot be
// parsed is none, as for the API server, so that the request is one for everything.
func readSelectors(into *request, query string) {
	switch into.Verb {
	case "list", "watch", "deletecollection":
	default:
		return
	}
	if !strings.Contains(query, "Selector=") && !strings.Contains(query, "%") {
		return
	}
	values, _ := url.ParseQuery(query) // what can be read of it, as in the API server
	if selector, err := fields.ParseSelector(values.Get("fieldSelector")); err == nil {
		if requirements := selector.Requirements(); len(requirements) > 0 {
			into.FieldSelector = requirements
			readName(into, selector, values)
		}
	}
	if selector, err := labels.Parse(values.Get("labelSelector")); err == nil {
		if requirements, selectable := selector.Requirements(); selectable && len(requirements) > 0 {
			into.LabelSelector = requirements
		}
	}
}

// readName takes the name of a list or watch of one object from its selector, as the API
// server does if it can read all of the options.
func readName(into *request, selector fields.Selector, values url.Values) {
	name, one := selector.RequiresExactMatch(metav1.ObjectNameField)
	if !one || into.Name != "" || into.Verb == "deletecollection" || len(content.IsPathSegmentName(name)) > 0 {
		return
	}
	var options internalversion.ListOptions
	if internalscheme.ParameterCodec.DecodeParameters(values, metav1.SchemeGroupVersion, &options) == nil {
		into.Name = name
	}
}
