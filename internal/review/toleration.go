package review

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/extendedtoleration"
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
	t.pod, t.text = &tolerationReading{}, in.Object.of(document)
	if err = decodeInto(t.text, t.pod, kind, checked()); err != nil {
		return nil, within("object", err)
	}
	for _, names := range []requestedResources{t.pod.Spec.InitContainers, t.pod.Spec.Containers} {
		for name := range names {
			t.pod.Spec.Tolerations.Request(name)
		}
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
	seen := &t.pod.Spec.Tolerations
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
	var pod struct {
		Spec struct {
			Tolerations changedList `json:"tolerations"`
		} `json:"spec"`
	}
	l := &pod.Spec.Tolerations
	l.changes = changes
	if err := json.Unmarshal(t.text, &pod, checked()); err != nil {
		panic("tolerations do not decode again: " + err.Error())
	}
	for _, c := range l.changes {
		l.add(encodeTolerations(c.Toleration))
	}
	return append(append(jsontext.Value("["), l.text...), ']')
}

// changedList is the text of a list, without its brackets, with the changes so far made.
type changedList struct {
	changes []extendedtoleration.Change
	text    []byte
}

// UnmarshalJSONFrom keeps the entries as they are written, except for those that are replaced.
func (l *changedList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	index := 0
	return eachEntry(d, func(entry *jsontext.Value) error {
		if len(l.changes) > 0 && l.changes[0].Index == index {
			*entry = encodeTolerations(l.changes[0].Toleration)
			l.changes = l.changes[1:]
		}
		l.add(*entry)
		index++
		return nil
	})
}

func (l *changedList) add(entry []byte) {
	if len(l.text) > 0 {
		l.text = append(l.text, ',')
	}
	l.text = append(l.text, entry...)
}

func encodeTolerations(what any) []byte {
	text, err := json.Marshal(
		what, json.OmitZeroStructFields(true), json.Deterministic(true), jsontext.AllowInvalidUTF8(true),
	)
	if err != nil {
		panic("patch of tolerations does not encode: " + err.Error())
	}
	return text
}

// tolerationReading has the extended resources that a pod requests, and its tolerations.
type tolerationReading struct {
	Spec struct {
		InitContainers requestedResources `json:"initContainers"`
		Containers     requestedResources `json:"containers"`
		Tolerations    countedTolerations `json:"tolerations"`
	} `json:"spec"`
}

type countedTolerations struct{ extendedtoleration.Reading }

// UnmarshalJSONFrom reads the tolerations.
func (c *countedTolerations) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return eachEntry(d, func(t *corev1.Toleration) error {
		c.Tolerate(t)
		return nil
	})
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
	return eachEntry(d, func(c *struct {
		Resources struct {
			Requests resourceNames `json:"requests"`
		} `json:"resources"`
	},
	) error {
		for _, name := range c.Resources.Requests {
			if (*r)[name] = struct{}{}; len(*r) > maxResources {
				return errTooManyResources
			}
		}
		return nil
	})
}

// resourceNames are the keys of a list of resources. Quantities are not read.
type resourceNames []string

// UnmarshalJSONFrom reads the resource names.
func (n *resourceNames) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*n = nil
	return eachMember(d, func(name string) error {
		*n = append(*n, name)
		return d.SkipValue()
	})
}
