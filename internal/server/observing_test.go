package server

import (
	"encoding/json"
	"net/http"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestObservedRequestsHaveNoAnswer: on the paths for observing, an API server gets no opinion about a request that the server
// allows on the other path.
func TestObservedRequestsHaveNoAnswer(t *testing.T) {
	s := Serve(t, nil, nil, "")
	const own = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"system:node:worker-1",` +
		`"groups":["system:nodes"],"resourceAttributes":{"verb":"get","resource":"nodes","name":"worker-1"}}}`
	for path, allowed := range map[string]bool{authorizePath: true, observePath: false, observeBehindPath: false} {
		got, err := s.post(s.caller, path, own)
		var review authorizationv1.SubjectAccessReview
		if err == nil {
			err = json.Unmarshal([]byte(got.body), &review)
		}
		if err != nil || got.status != http.StatusOK || review.Status.Allowed != allowed || review.Status.Denied {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
}
