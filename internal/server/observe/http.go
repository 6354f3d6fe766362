package observe

import (
	"net/http"
	"strconv"
	"time"
)

// HTTP counts and times the requests to an endpoint.
func (m *Metrics) HTTP(endpoint string, next http.Handler) http.Handler {
	inFlight := m.inFlight.WithLabelValues(endpoint)
	duration := m.duration.WithLabelValues(endpoint)
	ok := m.requests.WithLabelValues(endpoint, strconv.Itoa(http.StatusOK))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		inFlight.Inc()
		recorder := &statusRecorder{ResponseWriter: w}
		defer func() {
			inFlight.Dec()
			duration.Observe(time.Since(begin).Seconds())
			if status := recorder.status; status == http.StatusOK {
				ok.Inc()
			} else {
				m.requests.WithLabelValues(endpoint, statusLabel(status)).Inc()
			}
		}()
		next.ServeHTTP(recorder, r)
	})
}

// statusLabel returns "none" for a request without a response, because its handler
// panicked.
func statusLabel(status int) string {
	if status == 0 {
		return "none"
	}
	return strconv.Itoa(status)
}

// statusRecorder records the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *statusRecorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *statusRecorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
