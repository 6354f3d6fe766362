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

// Event is one stage of one request, as far as it matters who asked what and what
// was answered. What the server sent back is not read.
type Event struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`

	Stage   string `json:"stage"`
	AuditID string `json:"auditID"`
	// RequestURI is as the client sent it: escaped, with the query.
	RequestURI string `json:"requestURI"`
	// Verb is that of the Kubernetes API, or an HTTP method in lower case for
	// requests without a resource.
	Verb string `json:"verb"`
	// User is who was authenticated; empty if nobody was.
	User User `json:"user"`
	// Impersonated is who the user acted as; nil for most requests.
	Impersonated *User  `json:"impersonatedUser"`
	UserAgent    string `json:"userAgent"`
	// Object is what the request is about; nil for requests without a resource.
	Object *Object `json:"objectRef"`
	Status Status  `json:"responseStatus"`
	// Received is when the request came.
	Received    time.Time   `json:"requestReceivedTimestamp"`
	Annotations Annotations `json:"annotations"`

	Sources span `json:"sourceIPs"`
	Request span `json:"requestObject"`

	text []byte // that the spans are in
}

// User is who asks.
type User struct {
	Name   string   `json:"username"`
	UID    string   `json:"uid"`
	Groups []string `json:"groups"`
	Extra  span     `json:"extra"`
}

// Object is what a request is about. The API server fills in the name and the
// namespace of what is created from the object itself; authorizers see those of the
// URI only.
type Object struct {
	Group       string `json:"apiGroup"`
	Version     string `json:"apiVersion"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// Status is what was answered.
type Status struct {
	// Code is the HTTP status; 0 if nothing was answered.
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Annotations are what the API server's authorization notes of a request: "allow" or
// "forbid", and why.
type Annotations struct {
	Decision string `json:"authorization.k8s.io/decision"`
	Reason   string `json:"authorization.k8s.io/reason"`
}

// The decisions that API servers note.
const (
	Allowed   = "allow"
	Forbidden = "forbid"
)

// span is where a value stands in the text of its event, which most who read the log
// do not look into.
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

// Answered reports whether the stage is one that says what was answered.
func (e *Event) Answered() bool { return e.Stage != RequestReceived }

// Last reports whether no other stage follows.
func (e *Event) Last() bool { return e.Stage == ResponseComplete || e.Stage == Panic }

// RequestObject is the object that was sent, or the patch, as JSON; nil where the
// audit policy does not log it. It is valid until the event is.
func (e *Event) RequestObject() []byte { return e.in(e.Request) }

// Source is the address from which the API server was reached; empty if it is not
// noted. Addresses before it are what the client says of itself.
func (e *Event) Source() string {
	var all []string
	if text := e.in(e.Sources); text == nil || json.Unmarshal(text, &all, asKubernetes()) != nil || len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// Extra is what else authentication found out about a user of the event.
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
