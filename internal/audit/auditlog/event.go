package auditlog

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The stages of a request.
const (
	RequestReceived  = "RequestReceived"
	ResponseStarted  = "ResponseStarted"
	ResponseComplete = "ResponseComplete"
	Panic            = "Panic"
)

// Event is one stage of one request: who sent it, what it requests, and how the server
// responded. The response object is not read.
type Event struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`

	Stage   string `json:"stage"`
	AuditID string `json:"auditID"`
	// RequestURI is the URI as the client sent it: escaped, with the query.
	RequestURI string `json:"requestURI"`
	// Verb is the verb of the Kubernetes API, or the HTTP method in lower case for
	// requests without a resource.
	Verb string `json:"verb"`
	// User is the authenticated user; empty without authentication.
	User User `json:"user"`
	// Impersonated is the impersonated user; nil for most requests.
	Impersonated *User  `json:"impersonatedUser"`
	UserAgent    string `json:"userAgent"`
	// Authentication says how the user was impersonated.
	Authentication Authentication `json:"authenticationMetadata"`
	// Object is the requested object; nil for requests without a resource.
	Object *Object `json:"objectRef"`
	Status Status  `json:"responseStatus"`
	// Received is the time at which the API server received the request.
	Received    time.Time   `json:"requestReceivedTimestamp"`
	Annotations Annotations `json:"annotations"`

	Sources span `json:"sourceIPs"`
	Request span `json:"requestObject"`

	text []byte // the text that the spans refer to
}

// User is the user of a request.
type User struct {
	Name   string   `json:"username"`
	UID    string   `json:"uid"`
	Groups []string `json:"groups"`
	Extra  span     `json:"extra"`
}

// Authentication has the fields that API servers since 1.35 log about the authentication of a request.
type Authentication struct {
	// ImpersonationConstraint is the verb of the constrained impersonation that allowed to
	// impersonate, such as impersonate:associated-node; empty without such a constraint.
	ImpersonationConstraint string `json:"impersonationConstraint"`
}

// Object is the object of a request. For a create, the API server takes the name and the
// namespace from the body; authorizers see only the name and namespace in the URI.
type Object struct {
	Group       string `json:"apiGroup"`
	Version     string `json:"apiVersion"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// Status is the response status.
type Status struct {
	// Code is the HTTP status; 0 without a response.
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Annotations are the API server's annotations about authorization: "allow" or "forbid", and
// the reason.
type Annotations struct {
	Decision string `json:"authorization.k8s.io/decision"`
	Reason   string `json:"authorization.k8s.io/reason"`
}

// The decisions in the annotations of API servers.
const (
	Allowed   = "allow"
	Forbidden = "forbid"
)

// span is the position of a value in the text of its event. It is decoded only on demand.
type span struct{ start, end int }

// UnmarshalJSONFrom skips the value.
func (s *span) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	*s = span{}
	if value.Kind() != jsontext.KindNull {
		s.end = int(d.InputOffset())
		s.start = s.end - len(value)
	}
	return nil
}

// Answered reports whether the stage has a response status.
func (e *Event) Answered() bool { return e.Stage != RequestReceived }

// Last reports whether no further stage of the request follows.
func (e *Event) Last() bool { return e.Stage == ResponseComplete || e.Stage == Panic }

// RequestObject returns the object that was sent, or the patch, as JSON; nil if the audit
// policy does not log it. It is valid as long as the event is.
func (e *Event) RequestObject() []byte { return e.in(e.Request) }

// Source returns the address of the connection to the API server; empty if it is not
// logged. The addresses before it come from headers, which the client may forge.
func (e *Event) Source() string {
	var all []string
	if text := e.in(e.Sources); text == nil || json.Unmarshal(text, &all, asKubernetes()) != nil || len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// Extra returns the extra fields of a user of the event.
func (e *Event) Extra(u *User) map[string][]string {
	var extra map[string][]string
	if text := e.in(u.Extra); text == nil || json.Unmarshal(text, &extra, asKubernetes()) != nil {
		return nil
	}
	return extra
}

func (e *Event) in(s span) []byte {
	if s == (span{}) {
		return nil
	}
	return e.text[s.start:s.end]
}
