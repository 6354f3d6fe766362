package review

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/extendedtoleration"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// TolerationReview is a write, possibly of a pod that gets tolerations.
type TolerationReview struct {
	*AdmissionReview
	pod *tolerationReading
	// text is the JSON of the pod.
	text []byte
}

// DecodeTolerations decodes an AdmissionReview as [DecodeAdmission] does. If the write creates
// or updates a pod, it reads the pod's tolerations and the resources that its containers
// request.
func DecodeTolerations(document []byte) (*TolerationReview, error) {
	if err := checkLimits(document); err != nil {
		return nil, err
	}
	in, review, err := decodeRequest(document)
	if err != nil {
		return nil, err
	}
	t := &TolerationReview{AdmissionReview: review}
	if !writesPod(&review.request) || in.Object == (part{}) {
		return t, nil
	}
	kind := schema.GroupVersionKind(in.Kind)
	if kind != corev1.SchemeGroupVersion.WithKind("Pod") {
		return nil, fmt.Errorf("request.object: want a Pod of v1, got a %s", kind.Kind)
	}
	t.pod, t.text = &tolerationReading{}, document[in.Object.start:in.Object.end]
	if err = decodeInto(t.text, t.pod, kind); err != nil {
		return nil, within("object", err)
	}
	p := &pairing{object: t.text}
	if t.pod.resolve(p, nil); p.err != nil {
		return nil, within("object", p.err)
	}
	return t, nil
}

func writesPod(req *noderestriction.Request) bool {
	written := req.Operation == noderestriction.Create || req.Operation == noderestriction.Update
	return written && req.Group == "" && req.Resource == "pods" && req.Subresource == ""
}

// WritesPod reports whether the review is of a pod that may get tolerations.
func (t *TolerationReview) WritesPod() bool { return t.pod != nil }

const (
	tolerationsPath = "/spec/tolerations"
	// maxSteps is the maximum number of steps of a patch: the time in which API servers
	// apply steps to a list grows with the square of their number.
	maxSteps = 64
)

// step is an operation of an RFC 6902 patch.
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Patch returns the RFC 6902 patch that adds the tolerations to the pod; empty if the pod has
// them. It does not change existing entries, which may have fields that this version does not
// know.
func (t *TolerationReview) Patch() []byte {
	if t.pod == nil {
		return nil
	}
	seen := &t.pod.Spec.Tolerations.counted
	changes := seen.Changes()
	var steps []step
	switch {
	case len(changes) == 0:
		return nil
	case seen.Len() == 0 || len(changes) > maxSteps:
		steps = []step{{"add", tolerationsPath, t.list(changes)}}
	default:
		for _, c := range changes {
			s := step{"add", tolerationsPath + "/-", c.Toleration}
			if c.Index != extendedtoleration.AtTheEnd {
				s.Op, s.Path = "replace", tolerationsPath+"/"+strconv.Itoa(c.Index)
			}
			steps = append(steps, s)
		}
	}
	return encodeTolerations(steps)
}

// list returns the whole list after the changes.
func (t *TolerationReview) list(changes []extendedtoleration.Change) jsontext.Value {
	text := jsontext.Value("[")
	next := func(entry []byte) {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, entry...)
	}
	present := t.pod.Spec.Tolerations.part
	entries := entriesOf(t.text[present.start:present.end])
	for i := 0; ; i++ {
		entry := entries.next()
		switch {
		case entry == nil:
			for _, c := range changes {
				next(encodeTolerations(c.Toleration))
			}
			return append(text, ']')
		case len(changes) > 0 && changes[0].Index == i:
			next(encodeTolerations(changes[0].Toleration))
			changes = changes[1:]
		default:
			next(bytes.Clone(entry))
		}
	}
}

func encodeTolerations(what any) []byte {
	text, err := json.Marshal(
		what, json.OmitZeroStructFields(true), json.Deterministic(true), jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true),
	)
	if err != nil {
		panic("patch of tolerations does not encode: " + err.Error())
	}
	return text
}

// tolerationReading has the extended resources that a pod requests, and its tolerations.
type tolerationReading struct {
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		InitContainers requestedResources `json:"initContainers"`
		Containers     requestedResources `json:"containers"`
		Tolerations    tolerationList     `json:"tolerations"`
	} `json:"spec"`
}

func (r *tolerationReading) target() any            { return r }
func (r *tolerationReading) object() runtime.Object { return &corev1.Pod{TypeMeta: r.TypeMeta} }

func (r *tolerationReading) resolve(p *pairing, _ reading) {
	l := &r.Spec.Tolerations
	p.decode(p.text(l.part), &l.counted, "spec.tolerations", false)
	for _, names := range []requestedResources{r.Spec.InitContainers, r.Spec.Containers} {
		for name := range names {
			l.counted.Request(name)
		}
	}
}

// tolerationList is the list of tolerations with the position of its JSON.
type tolerationList struct {
	part
	counted countedTolerations
}

// UnmarshalJSONFrom skips the list.
func (l *tolerationList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return skipOf[[]corev1.Toleration](d, &l.part)
}

type countedTolerations struct{ extendedtoleration.Reading }

// UnmarshalJSONFrom reads the tolerations.
func (c *countedTolerations) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return eachEntry(d, c.Tolerate)
}

// maxResources is the maximum number of different resources that the containers of a list may
// request: the answer has a toleration for each.
const maxResources = 10_000

var errTooManyResources = fmt.Errorf("more than %d different resources are requested", maxResources)

// requestedResources are the names of the resources that the containers of a list request.
type requestedResources map[string]struct{}

// UnmarshalJSONFrom reads the containers.
func (r *requestedResources) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*r = requestedResources{}
	err := eachEntry(d, func(c *struct {
		Resources struct {
			Requests resourceNames `json:"requests"`
		} `json:"resources"`
	},
	) {
		for _, name := range c.Resources.Requests {
			if len(*r) <= maxResources {
				(*r)[name] = struct{}{}
			}
		}
	})
	if err == nil && len(*r) > maxResources {
		return errTooManyResources
	}
	return err
}

// resourceNames are the keys of a list of resources. Quantities are not read.
type resourceNames []string

// UnmarshalJSONFrom reads the resource names.
func (n *resourceNames) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		*n = nil
		return json.UnmarshalDecode(d, new(map[string]jsontext.Value)) // null, or an error
	}
	return eachMember(d, func(name string) error {
		*n = append(*n, name)
		return d.SkipValue()
	})
}
