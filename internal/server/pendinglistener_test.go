package server

import (
	"net"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// occupied returns a listener that uses an address until the test ends.
func occupied(t *testing.T) net.Listener {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	return taken
}

// If the port for metrics is in use, the server logs that, serves everything else, and serves metrics
// when the port is free.
func TestATakenMetricsPortDoesNotEndTheServer(t *testing.T) {
	t.Parallel()
	taken := occupied(t)
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) { c.Metrics.Address = taken.Addr().String() })
	s.serve(parts{metrics: says("metrics"), ready: []check{failing("none")}})
	if got, err := read(s.caller(s.callers.client("kube-apiserver")).Get(s.url("/livez"))); err != nil || got.status != 200 {
		t.Fatalf("/livez of the webhooks: %+v, %v", got, err)
	}
	log := s.log.String()
	if !strings.Contains(log, "the address of metrics is taken") || strings.Contains(log, `"serving metrics"`) {
		t.Errorf("logged\n%s", log)
	}
	taken.Close()
	eventually(t, "metrics are served", func() bool {
		got, err := read(s.caller(nil).Get("http://" + taken.Addr().String() + "/metrics"))
		return err == nil && got.status == 200 && got.body == "metrics"
	})
	if !strings.Contains(s.log.String(), `"serving metrics"`) {
		t.Errorf("logged\n%s", s.log.String())
	}
}

// Nothing waits for the port after the end.
func TestAServerEndsWhileItsMetricsPortIsTaken(t *testing.T) {
	t.Parallel()
	taken := occupied(t)
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) { c.Metrics.Address = taken.Addr().String() })
	s.serve(parts{metrics: says("metrics")})
	s.stop()
	if err := s.ended(); err != nil {
		t.Error(err)
	}
}

func TestOtherPortsThatAreTakenEndTheServer(t *testing.T) {
	t.Parallel()
	taken := occupied(t)
	s := newTestListeners(t, nil)
	s.close()
	s.config.Webhook.Address = taken.Addr().String()
	_, err := newListeners(s.config, s.log.logger(), s.events)
	if err == nil || !strings.Contains(err.Error(), "listen on webhook.address: ") {
		t.Errorf("error %v", err)
	}
}
