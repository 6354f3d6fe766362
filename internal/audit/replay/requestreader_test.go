package replay

import (
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// TestRequestReader: the path gives the request, and the user that counts gives the extra values.
func TestRequestReader(t *testing.T) {
	const line = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"list",
		"requestURI":"/api/v1/pods?fieldSelector=spec.nodeName%3Da","user":{"username":"ada","extra":{"k":["ada"]}},
		"impersonatedUser":{"username":"agent","extra":{"k":["agent"]}}}`
	var req access.Request
	var d auditlog.Decoder
	if _, err := d.Decode([]byte(line), func(e *auditlog.Event) { NewRequestReader().Read(e, &req) }); err != nil {
		t.Fatal(err)
	}
	if req.User != "agent" || !slices.Equal(req.Extra["k"], []string{"agent"}) || req.Resource != "pods" || len(req.FieldSelector) != 1 {
		t.Errorf("got %+v", req)
	}
}
