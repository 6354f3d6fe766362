package noderestriction

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A message quotes values of the node, which may have megabytes.
func TestMessagesStayShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, r := range []*refusal{
		forbid(PodNotOnNode, "the pod's spec.nodeName is %q", long),
		forbid(PodUIDMismatch, "the uid is %q", types.UID(long)),
		labelRefusal([]string{"kubernetes.io/" + long, "k8s.io/" + long}),
	} {
		if n := len(r.message); n > 2*maxQuoted || !strings.Contains(r.message, "…") {
			t.Errorf("a message of %d bytes: %.100s", n, r.message)
		}
	}
	if got := forbid(PodNotOnNode, "%q", "worker-1").message; got != `"worker-1"` {
		t.Errorf("got %s", got)
	}
}
