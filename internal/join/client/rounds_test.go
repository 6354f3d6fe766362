package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
)

// responder answers challenges.
type responder struct {
	collector
	err error
}

func (r responder) Respond(_ context.Context, about attest.Binding, challenge []byte) ([]byte, error) {
	return fmt.Appendf(nil, `{"Answer":%q,"Key":%q}`, challenge, about.PublicKey), r.err
}

// challenging answers the first requests with a challenge.
func challenging(rounds int, mediaType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if rounds--; rounds < 0 {
			grant(w, r)
			return
		}
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"number":`, rounds, `}`)
	}
}

func TestRounds(t *testing.T) {
	const challengeType = "application/vnd.node-authorizer.tpm-challenge+json"
	for _, tc := range []struct {
		rule      string
		rounds    int
		mediaType string
		collector attest.Collector
		asked     []string
		err       string
	}{
		{
			rule: "a challenge is answered", rounds: 2, mediaType: challengeType, collector: responder{collector: collector{"worker-1"}},
			asked: []string{
				"GET /challenge", `POST /authorize/worker-1 {"Challenge":""}`,
				`POST /authorize/worker-1 {"Answer":"{\"number\":1}","Key":""}`,
				`POST /authorize/worker-1 {"Answer":"{\"number\":0}","Key":""}`,
			},
		},
		{
			rule: "a collector with one round is of another kind", rounds: 1, mediaType: challengeType, collector: collector{"worker-1"},
			err: "the bootstrap service refuses: it asks for another kind of evidence: compare --authorizer with its attestor",
		},
		{
			rule: "401 of something else is an answer", rounds: 1, mediaType: "application/json",
			collector: responder{collector: collector{"worker-1"}},
			err:       "the bootstrap service refuses: it answered 401 Unauthorized; is its URL right?",
		},
		{
			rule: "a service that never ends is left", rounds: 1 << 30, mediaType: challengeType,
			collector: responder{collector: collector{"worker-1"}}, err: "the service asked for evidence more than 4 times",
		},
		{
			rule: "a failed answer is tried again", rounds: 1 << 30, mediaType: challengeType,
			collector: responder{collector{"worker-1"}, errors.New("the TPM is busy")},
			err:       "answer the challenge of the service: the TPM is busy",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			m := newMachine(t, challenging(tc.rounds, tc.mediaType))
			m.options.Collector, m.options.Timeout = tc.collector, 50*time.Millisecond
			_, err := m.run()
			switch {
			case tc.err == "" && (err != nil || !slices.Equal(m.asked, tc.asked)):
				t.Errorf("asked %q, want %q, error %v", m.asked, tc.asked, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("error %v, want %s", err, tc.err)
			}
		})
	}
}
