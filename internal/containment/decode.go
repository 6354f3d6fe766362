package containment

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// asKubernetes decodes as API servers do: field names are case-sensitive, unknown fields are
// ignored, and the last of repeated names is used.
func asKubernetes() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// maxStatus is the maximum size of a status in bytes. A server writes less.
const maxStatus = 16 << 10

// written is an object as an API server sends it. The spec and the status may have any type:
// one object that does not fit its schema must not hide the others.
type written struct {
	Metadata struct {
		Name              string      `json:"name"`
		UID               types.UID   `json:"uid"`
		ResourceVersion   string      `json:"resourceVersion"`
		Generation        int64       `json:"generation"`
		CreationTimestamp metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec   jsontext.Value `json:"spec"`
	Status jsontext.Value `json:"status"`
}

// decodeObject returns what is kept of an object.
func decodeObject(text []byte) (*object, error) {
	var in written
	if err := json.Unmarshal(text, &in, asKubernetes()); err != nil {
		return nil, badjson.Explain(err)
	}
	o := &object{ObjectMeta: metav1.ObjectMeta{
		Name: in.Metadata.Name, UID: in.Metadata.UID, ResourceVersion: in.Metadata.ResourceVersion,
		Generation: in.Metadata.Generation, CreationTimestamp: in.Metadata.CreationTimestamp,
	}}
	if o.size = len(in.Spec); o.size <= maxSpec {
		o.spec = append([]byte{}, in.Spec...) // not nil, even if there is no spec
	} else {
		o.spec, o.left = extract(in.Spec)
	}
	o.room = len(o.spec)
	if len(in.Status) <= maxStatus {
		o.status = decodeStatus(in.Status)
	}
	return o, nil
}

// decodeStatus returns the zero value for a status that cannot be decoded.
func decodeStatus(text []byte) status {
	var in v1alpha1.NodeScopeStatus // that of a Quarantine is the same
	if len(text) == 0 || json.Unmarshal(text, &in, asKubernetes()) != nil {
		return status{}
	}
	for _, c := range in.Conditions {
		if c.Type == v1alpha1.ConditionAccepted {
			return status{in.ObservedGeneration, c}
		}
	}
	return status{}
}

// readPage reads one page of a list object by object, so that the memory does not grow with the
// page.
func readPage(page io.Reader, see func(*object)) (metav1.ListMeta, error) {
	var meta metav1.ListMeta
	d := jsontext.NewDecoder(page, asKubernetes())
	if token, err := d.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
		return meta, unexpected(err)
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return meta, err
		}
		switch name.String() {
		case "metadata":
			err = json.UnmarshalDecode(d, &meta, asKubernetes())
		case "items":
			err = readItems(d, see)
		default:
			err = d.SkipValue()
		}
		if err != nil {
			return meta, err
		}
	}
	_, err := d.ReadToken()
	return meta, err
}

func readItems(d *jsontext.Decoder, see func(*object)) error {
	switch token, err := d.ReadToken(); {
	case err != nil:
		return err
	case token.Kind() == jsontext.KindNull:
		return nil
	case token.Kind() != jsontext.KindBeginArray:
		return unexpected(nil)
	}
	for d.PeekKind() != jsontext.KindEndArray {
		text, err := d.ReadValue()
		if err != nil {
			return err
		}
		o, err := decodeObject(text)
		if err != nil {
			return err
		}
		see(o)
	}
	_, err := d.ReadToken()
	return err
}

var errNotAList = errors.New("the API server did not send a list")

func unexpected(err error) error {
	if err != nil {
		return err
	}
	return errNotAList
}

// eventDecoder decodes the events of a watch.
type eventDecoder struct {
	body   io.ReadCloser
	events *jsontext.Decoder
}

func newEventDecoder(body io.ReadCloser) *eventDecoder {
	return &eventDecoder{body, jsontext.NewDecoder(body, asKubernetes())}
}

// Decode implements watch.Decoder.
func (d *eventDecoder) Decode() (watch.EventType, runtime.Object, error) {
	text, err := d.events.ReadValue()
	if err != nil {
		return "", nil, ended(err)
	}
	var event struct {
		Type   watch.EventType `json:"type"`
		Object jsontext.Value  `json:"object"`
	}
	if err := json.Unmarshal(text, &event, asKubernetes()); err != nil {
		return "", nil, fmt.Errorf("decode an event of a watch: %w", badjson.Explain(err))
	}
	if event.Type == watch.Error {
		var status metav1.Status
		if err := json.Unmarshal(event.Object, &status, asKubernetes()); err != nil {
			return "", nil, fmt.Errorf("decode an error of a watch: %w", badjson.Explain(err))
		}
		return event.Type, &status, nil
	}
	o, err := decodeObject(event.Object)
	return event.Type, o, err
}

// ended returns io.EOF for a watch that ends in one of the usual ways.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) {
		return io.EOF
	}
	return err
}

// Close implements watch.Decoder.
func (d *eventDecoder) Close() { _ = d.body.Close() }

func newWatcher(body io.ReadCloser) watch.Interface {
	const internalError = 500
	return watch.NewStreamWatcher(newEventDecoder(body), apierrors.NewClientErrorReporter(internalError, "watch", "ClientWatchDecoding"))
}
