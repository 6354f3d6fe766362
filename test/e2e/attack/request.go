package attack

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Request is one request of the node web-1.
type Request struct {
	// Attack describes the request. It may be empty if method and path suffice.
	Attack string
	Method string
	// Path includes the query.
	Path string
	// Body is YAML. UID(pods/own) stands for the uid of an object of the fixture, CSR(a
	// name; a group, …) for a certificate signing request in PEM, and PKCS10() for an
	// empty one in DER, both in base64.
	Body string
	// Current sends the current object with an additional annotation. If there is none,
	// Body is sent.
	Current bool
	// ContentType is the type of the body. The default is JSON. The body is always sent
	// as JSON.
	ContentType string
	// Header has further fields of the request's header, as "Name: value".
	Header string
}

// Section is a group of requests with a title and a description.
type Section struct {
	Title, About string
	Requests     []Request
}

// Sections returns all requests, in the order in which they are sent.
func Sections() []Section {
	return slices.Concat(
		[]Section{secrets()},
		nodes(),
		[]Section{
			leases(), csiNodes(), mirrorPods(), pods(), podStatus(), evictions(),
			tokens(), podCertificates(), signingRequests(), volumes(), devices(), cluster(),
		},
		everyVerb(),
	)
}

const (
	mergePatch     = "application/merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

func get(attack, path string) Request {
	return Request{Attack: attack, Method: http.MethodGet, Path: path}
}

func post(attack, path, body string) Request {
	return Request{Attack: attack, Method: http.MethodPost, Path: path, Body: body}
}

func remove(attack, path string) Request {
	return Request{Attack: attack, Method: http.MethodDelete, Path: path}
}

// patch is a merge patch, the simplest of the four kinds.
func patch(attack, path, body string) Request { return patchAs(mergePatch, attack, path, body) }

func patchAs(contentType, attack, path, body string) Request {
	return Request{Attack: attack, Method: http.MethodPatch, Path: path, Body: body, ContentType: contentType}
}

// replace sends the current object with an additional annotation, or body if there is no
// such object.
func replace(attack, path, body string) Request {
	return Request{Attack: attack, Method: http.MethodPut, Path: path, Body: body, Current: true}
}

// watchFor limits the duration of an allowed watch. Only its beginning matters.
const watchFor = "watch=1&timeoutSeconds=1"

// with adds a query to a path.
func with(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// inStock returns the path of a resource of the core group in the namespace of the
// fixture.
func inStock(format string, args ...any) string {
	return "/api/v1/namespaces/stock/" + fmt.Sprintf(format, args...)
}
