package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// hostileBodies returns bodies that need a multiple of their size if they are decoded completely.
func hostileBodies() [][]byte {
	const size = 6 << 20
	pod := func(fields string) []byte {
		return []byte(
			`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","kind":{"version":"v1","kind":"Pod"},` +
				`"resource":{"version":"v1","resource":"pods"},"name":"web","namespace":"shop","operation":"CREATE",` +
				`"userInfo":{"username":"system:node:a","groups":["system:nodes"]},` +
				`"object":{"kind":"Pod","apiVersion":"v1",` + fields + `}}}`,
		)
	}
	filled := func(entry string) string { return strings.Repeat(entry+",", size/(len(entry)+1)) + entry }
	bodies := [][]byte{
		pod(`"spec":{"containers":[` + filled(`{}`) + `]}`),
		pod(`"spec":{"containers":[` + filled(`{"name":"","resources":{}}`) + `]}`),
		pod(`"spec":{"volumes":[` + filled(`{"name":"a","emptyDir":{}}`) + `]}`),
		pod(`"metadata":{"managedFields":[` + filled(`{}`) + `]}`),
		pod(`"spec":{"priority":` + strings.Repeat("9", size) + `}`),
		pod(`"spec":{"tolerations":[` + filled(`{}`) + `]}`),
	}
	status := pod(`"status":{"nodeAllocatableResourceClaimStatuses":[` + filled(`{}`) + `]}`)
	status = bytes.Replace(status, []byte(`"CREATE"`), []byte(`"UPDATE"`), 1)
	status = bytes.Replace(status, []byte(`"name":"web"`), []byte(`"name":"web","subResource":"status",`+
		`"oldObject":{"kind":"Pod","apiVersion":"v1","spec":{"nodeName":"a"}}`), 1)
	return append(bodies, status)
}

// bodiesInFlight is how many hostile bodies are sent at once.
const bodiesInFlight = 20

// sendHostileBodies sends bodies until the context ends, on the connection of the small ones.
func (a *attacked) sendHostileBodies(ctx context.Context) {
	bodies := hostileBodies()
	var running sync.WaitGroup
	for i := range bodiesInFlight {
		running.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				status := a.send(ctx, bodies, n)
				if status != http.StatusTooManyRequests {
					continue
				}
				select { // as an API server waits
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
			}
		})
	}
	running.Wait()
}

// send returns the status of the answer, 0 if there is none.
func (a *attacked) send(ctx context.Context, bodies [][]byte, n int) int {
	path := []string{"/admit", "/mutate"}[n%2]
	url, body := "https://"+a.server.Address+path, bytes.NewReader(bodies[n%len(bodies)])
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		a.outcome(err.Error())
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := read(a.client.Do(r))
	if err != nil {
		a.outcome("error")
		return 0
	}
	a.outcome(fmt.Sprint(got.status))
	return got.status
}

// With 20 bodies of 6 MB in flight, the server has less than 600 MB of resident memory.
func TestHostileBodiesTakeLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 120 MB")
	}
	const limit = 600_000 // kB
	a := attackServer(t)
	defer a.end()
	bodies := hostileBodies()
	var running sync.WaitGroup
	for i := range bodiesInFlight {
		running.Go(func() { a.send(t.Context(), bodies, i) })
	}
	running.Wait()
	var peak int
	if _, err := fmt.Sscanf(a.memory(), "%d kB", &peak); err != nil {
		t.Skip("the memory of processes is not known here:", err)
	}
	t.Logf("peak of the resident memory: %d kB; %v", peak, a.statuses)
	if peak > limit {
		t.Errorf("%d kB were resident, want at most %d", peak, limit)
	}
	if a.statuses["error"] > 0 {
		t.Error("bodies got no answer")
	}
}
