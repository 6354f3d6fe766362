package mappings_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
)

func TestFindingsAreEventsOfTheConfigMap(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.set(map[string]string{"mapRoles": nodes + "- {username: nobody}\n"})
	// Two servers write one event.
	first, _ := follow(t, ofConfigMap(c))
	second, observer := follow(t, ofConfigMap(c))
	mapped(t, first, nodeRole, nodeName)
	mapped(t, second, nodeRole, nodeName)
	eventually(t, "there is an event", func() bool { return len(c.events()) == 1 })
	event := c.events()[0]
	about := event.InvolvedObject
	if event.Reason != "MappingInvalid" || event.Type != corev1.EventTypeWarning || about.Kind != "ConfigMap" ||
		about.Namespace != "kube-system" ||
		about.Name != "aws-auth" || about.UID == "" || !strings.HasPrefix(event.Message,
		"data.mapRoles[1]") || event.FirstTimestamp.IsZero() {
		t.Errorf("the event is %+v", event)
	}
	// A known finding makes no new event when something else is edited.
	c.set(map[string]string{"mapRoles": nodes + "- {username: nobody}\n", "mapusers": "[]"})
	eventually(t, "there is another event", func() bool { return len(c.events()) == 2 })
	for _, e := range c.events() {
		if e.Reason == "MappingInvalid" && e.Name != event.Name {
			t.Errorf("the same finding has another event: %+v", e)
		}
	}
	if len(observer.events) > 0 {
		t.Errorf("events failed: %v", observer.events)
	}
}

func TestEventsOfAChangeAreLimited(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var roles strings.Builder
	for i := range 40 {
		fmt.Fprintf(&roles, "- {username: nobody-%d}\n", i)
	}
	c.set(map[string]string{"mapRoles": roles.String()})
	live, _ := follow(t, ofConfigMap(c))
	eventually(t, "all mistakes are found", func() bool { return len(live.Findings()) >= 40 })
	eventually(t, "ten events are written", func() bool { return len(c.events()) == 10 })
	// A last one, after which no event can be in the queue.
	c.set(map[string]string{"mapusers": "[]"})
	eventually(t, "the next change has its event", func() bool { return len(c.events()) > 10 })
	if got := len(c.events()); got != 11 {
		t.Errorf("%d events were written", got)
	}
}

func TestFailedEventsAreReported(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.outage("/events")
	c.set(map[string]string{"mapRoles": nodes + "- {username: nobody}\n"})
	live, observer := follow(t, ofConfigMap(c))
	mapped(t, live, nodeRole, nodeName)
	eventually(t, "the observer is notified", func() bool {
		observer.mu.Lock()
		defer observer.mu.Unlock()
		return len(observer.events) == 1 &&
			strings.HasPrefix(observer.events[0].Error(), "create an event of ConfigMap kube-system/aws-auth: ")
	})
}

func TestUnknownSourceIsAnError(t *testing.T) {
	if _, err := mappings.New(mappings.Options{Sources: []v1alpha1.MappingSource{"Table"}}); err == nil {
		t.Error("an unknown source is accepted")
	}
}
