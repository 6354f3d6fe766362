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
	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// request is the request of an event as authorizers saw it.
type request = access.Request

// paths parses the paths of requests as kube-apiserver does. It caches the results, because
// kubelets repeat their requests.
type paths struct {
	factory *apirequest.RequestInfoFactory
	read    map[string]located
}

// Bounds of the cache.
const (
	keptPaths      = 4096
	keptPathLength = 512
)

type located struct {
	// object is the requested object, without a name that only the body has.
	object auditlog.Object
	// resource is true if there is an object; otherwise plain is the unescaped path.
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

// requestOf restores the request that authorizers saw, from its path. The logged object has
// names and namespaces that the API server took from the body later; it is used only if the
// path is missing or cannot be parsed.
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

// locate parses a path; false if it cannot be parsed.
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
	// Only the verb depends on the method, and the log has the verb.
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

// ofLog returns the object from the log, for a request without a usable path. A created
// object has the name of its body there.
func ofLog(e *auditlog.Event, uriPath string) located {
	if e.Object == nil {
		if plain, err := url.PathUnescape(uriPath); err == nil {
			uriPath = plain
		}
		return located{plain: uriPath}
	}
	found := located{object: *e.Object, resource: true}
	if e.Verb == "create" && found.object.Subresource == "" {
		found.object.Name = ""
	}
	return found
}

// correct replaces the event's object by the object of its path, which it stores in into. A
// created object keeps the name of its body, as admission sees it.
func (p paths) correct(e *auditlog.Event, into *auditlog.Object) {
	uriPath, _, _ := strings.Cut(e.RequestURI, "?")
	at, known := p.locate(uriPath)
	switch {
	case !known:
		return
	case !at.resource:
		e.Object = nil
		return
	}
	*into = at.object
	if into.Name == "" && e.Verb == "create" && e.Object != nil {
		into.Name = e.Object.Name
	}
	e.Object = into
}

// readSelectors parses the selectors of requests for several objects. A selector that cannot
// be parsed is ignored, as in the API server, so that the request is for all objects.
func readSelectors(into *request, query string) {
	switch into.Verb {
	case "list", "watch", "deletecollection":
	default:
		return
	}
	if !strings.Contains(query, "Selector=") && !strings.Contains(query, "%") {
		return
	}
	values, _ := url.ParseQuery(query) // keeps the valid parameters, like the API server
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

// readName sets the name of a list or watch of one object from its field selector, as the
// API server does if all options are valid.
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

// RequestReader restores from events the requests that authorizers saw, of any user. It is not safe
// for concurrent use.
type RequestReader struct{ paths paths }

func NewRequestReader() *RequestReader { return &RequestReader{newPaths()} }

// Read stores the request of an event in into, with the extra values of its user.
func (r *RequestReader) Read(e *auditlog.Event, into *access.Request) {
	r.paths.requestOf(e, into)
	into.Extra = e.Extra(userOf(e))
}
