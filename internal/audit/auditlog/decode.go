package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

const (
	eventKind = "Event"
	listKind  = "EventList"
	group     = "audit.k8s.io/"
)

// asKubernetes reads JSON as API servers do: names are case-sensitive, unknown fields
// are ignored, and the last of repeated names counts.
func asKubernetes() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Decoder decodes lines. Its zero value is ready; it is not safe for concurrent use.
type Decoder struct {
	event document
	list  list
}

// document is a line, whichever of the two kinds it is.
type document struct {
	Event
	Items span `json:"items"`
}

// list holds the position of the items of an EventList.
type list struct {
	spans []span
	item  Event
}

// release drops the references to the text of the last event.
func (d *Decoder) release() { d.event.text, d.list.item.text = nil, nil }

// Decode decodes a line: an Event, or an EventList as API servers send it to webhooks, of
// audit.k8s.io/v1 or v1beta1. It calls each for every event and returns their number. An
// event is valid until each returns. A line of spaces has no events.
func (d *Decoder) Decode(line []byte, each func(*Event)) (events int, err error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return 0, nil
	}
	d.event = document{}
	decodeErr := json.Unmarshal(line, &d.event, asKubernetes())
	e := &d.event.Event
	if decodeErr != nil {
		return 0, explain(line, decodeErr)
	}
	if e.APIVersion != group+"v1" && e.APIVersion != group+"v1beta1" || e.Kind != eventKind && e.Kind != listKind {
		return 0, fmt.Errorf("kind %q of apiVersion %q: want Event or EventList of audit.k8s.io/v1 or v1beta1", e.Kind, e.APIVersion)
	}
	e.text = line
	if e.Kind == eventKind {
		if err := e.check(); err != nil {
			return 0, err
		}
		each(e)
		return 1, nil
	}
	return d.decodeItems(e.in(d.event.Items), each)
}

// decodeItems reads a list twice, so that a broken list yields no events at all.
func (d *Decoder) decodeItems(items []byte, each func(*Event)) (int, error) {
	d.list.spans = d.list.spans[:0]
	if items == nil {
		return 0, nil
	}
	if err := json.Unmarshal(items, &d.list.spans, asKubernetes()); err != nil {
		return 0, fmt.Errorf("items: %w", strictjson.Explain(err))
	}
	for _, hand := range []func(*Event){func(*Event) {}, each} {
		for i, s := range d.list.spans {
			if err := d.decodeItem(items[s.start:s.end]); err != nil {
				return 0, fmt.Errorf("items[%d]: %w", i, err)
			}
			hand(&d.list.item)
		}
	}
	return len(d.list.spans), nil
}

func (d *Decoder) decodeItem(text []byte) error {
	d.list.item = Event{}
	if err := json.Unmarshal(text, &d.list.item, asKubernetes()); err != nil {
		return strictjson.Explain(err)
	}
	d.list.item.text = text
	return d.list.item.check()
}

// check returns an error for events that no API server writes. Without it, they would be
// skipped without a message.
func (e *Event) check() error {
	switch e.Stage {
	case RequestReceived, ResponseStarted, ResponseComplete, Panic:
	default:
		return fmt.Errorf("stage: want RequestReceived, ResponseStarted, ResponseComplete or Panic, got %q", e.Stage)
	}
	if e.Verb == "" && e.RequestURI == "" {
		return errors.New("the event has neither a verb nor a requestURI")
	}
	return nil
}

// ErrUnfinished means that a line ends in the middle of an event, like the last line of a
// log that is being written.
var ErrUnfinished = errors.New("not valid JSON: the line ends in the middle of an event")

// explain returns a more helpful error for lines in a known other format.
func explain(line []byte, err error) error {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 1 && line[0] == '{':
		return errors.New("want a whole event on each line; jq -c . writes it so")
	case line[0] == '[':
		return errors.New("want one event on each line, not a list; jq -c '.[]' writes it so")
	case line[0] != '{' && bytes.Contains(line, []byte(" AUDIT: id=")):
		return errors.New("the log is in the format legacy, which does not say enough; let kube-apiserver write --audit-log-format=json")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrUnfinished
	}
	return strictjson.Explain(err)
}
