package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/node-authorizer/node-authorizer/extendedtoleration"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// Mutate returns the handler that gives pods, when they are created or updated,
// the tolerations for their extended resources, as Kubernetes' admission plugin
// does. Every other write passes unchanged.
func Mutate(opts Options) http.Handler {
	opts = opts.withDefaults()
	return newEndpoint(opts, func(_ context.Context, body []byte) ([]byte, error) {
		asked, err := review.DecodeAdmission(body, writesPod)
		if err != nil {
			return nil, err
		}
		object := asked.Request().Object
		if object == nil {
			return asked.RespondPatch(nil), nil
		}
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("request.object: want a Pod of v1, got a %s", object.GetObjectKind().GroupVersionKind().Kind)
		}
		tolerations, changed := extendedtoleration.Tolerations(pod)
		opts.Mutated(changed)
		if !changed {
			return asked.RespondPatch(nil), nil
		}
		return asked.RespondPatch(patch(pod.Spec.Tolerations, tolerations)), nil
	})
}

// writesPod reads the objects of no other request.
func writesPod(req *noderestriction.Request) (object, oldObject bool) {
	written := req.Operation == noderestriction.Create || req.Operation == noderestriction.Update
	return written && req.Group == "" && req.Resource == "pods" && req.Subresource == "", false
}

// step is an operation of an RFC 6902 patch.
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const tolerationsPath = "/spec/tolerations"

// patch leaves the entries that stay as they are in the object, where they may
// have fields that this version does not know.
func patch(before, after []corev1.Toleration) []byte {
	steps := []step{{"add", tolerationsPath, after}}
	if len(before) > 0 && len(after) >= len(before) {
		steps = nil
		for i, toleration := range after {
			switch {
			case i >= len(before):
				steps = append(steps, step{"add", tolerationsPath + "/-", toleration})
			case !equality.Semantic.DeepEqual(before[i], toleration):
				steps = append(steps, step{"replace", tolerationsPath + "/" + strconv.Itoa(i), toleration})
			}
		}
	}
	text, err := json.Marshal(steps, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		panic("patch of tolerations does not encode: " + err.Error())
	}
	return text
}
