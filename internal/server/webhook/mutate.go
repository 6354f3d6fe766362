package webhook

import (
	"net/http"

	"github.com/node-authorizer/node-authorizer/internal/review"
)

// Mutate returns the handler that adds tolerations for extended resources to pods that are
// created or updated, as Kubernetes' admission plugin does. Other writes are allowed
// unchanged.
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
		return constantAnswer(asked.RespondPatch(patch)), nil
	})
}
