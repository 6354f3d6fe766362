package webhook

import (
	"net/http"

	"github.com/node-authorizer/node-authorizer/internal/review"
)

// Mutate returns the handler that gives pods, when they are created or updated,
// the tolerations for their extended resources, as Kubernetes' admission plugin
// does. Every other write passes unchanged.
func Mutate(opts Options) http.Handler {
	opts = opts.withDefaults()
	return newEndpoint(opts, func(body []byte) (answer, error) {
		asked, err := review.DecodeTolerations(body)
		if err != nil {
			return nil, err
		}
		patch := asked.Patch()
		if asked.WritesPod() {
			opts.Mutated(len(patch) > 0)
		}
		return given(asked.RespondPatch(patch)), nil
	})
}
