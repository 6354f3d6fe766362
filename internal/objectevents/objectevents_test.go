package objectevents_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/node-authorizer/node-authorizer/internal/objectevents"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

func about(namespace, name string) *objectevents.Event {
	return &objectevents.Event{
		About:    corev1.ObjectReference{APIVersion: "v1", Kind: "Thing", Namespace: namespace, Name: name, UID: "u"},
		Identity: "u/1/Broken", Type: corev1.EventTypeWarning, Reason: "Broken", Message: "it is broken",
	}
}

// run runs a recorder until the test ends, and returns the errors that it reports.
func run(t *testing.T, client kubernetes.Interface) (r *objectevents.Recorder, failed chan error) {
	t.Helper()
	failed = make(chan error, 100)
	r = objectevents.New(client, clock, func(err error) { failed <- err })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); r.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return r, failed
}

// created makes the client send each Event that it was asked to create.
func created(client *fake.Clientset, answer error) chan *corev1.Event {
	all := make(chan *corev1.Event, 100)
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		all <- action.(clienttesting.CreateAction).GetObject().(*corev1.Event)
		return answer != nil, nil, answer
	})
	return all
}

func TestAnEventIsAboutItsObject(t *testing.T) {
	client := fake.NewClientset()
	events := created(client, nil)
	r, _ := run(t, client)
	for _, tc := range []struct{ rule, namespace, want string }{
		{"in the namespace of the object", "kube-system", "kube-system"},
		{"of a cluster-scoped object", "", metav1.NamespaceDefault},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			e := about(tc.namespace, "thing")
			if !r.Record(e) {
				t.Fatal("dropped")
			}
			got := <-events
			if got.Namespace != tc.want || got.InvolvedObject != e.About || got.Reason != "Broken" || got.Message != "it is broken" ||
				got.Type != corev1.EventTypeWarning || got.Count != 1 || !got.FirstTimestamp.Time.Equal(noon) ||
				got.Source.Component != "node-authorizer" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Two servers report the same, and the second finds the Event of the first.
func TestTheSameEventHasTheSameName(t *testing.T) {
	client := fake.NewClientset()
	events := created(client, nil)
	first, firstFailed := run(t, client)
	second, secondFailed := run(t, client)
	other := about("a", "thing")
	other.Identity = "u/2/Broken"
	first.Record(about("a", "thing"))
	one := <-events
	second.Record(about("a", "thing"))
	two := <-events
	second.Record(other) // is created after the events before it
	three := <-events
	if one.Name != two.Name || three.Name == one.Name || len(firstFailed)+len(secondFailed) > 0 {
		t.Errorf("%s, %s, %s, and %d failures", one.Name, two.Name, three.Name, len(firstFailed)+len(secondFailed))
	}
}

func TestNamesAreValid(t *testing.T) {
	client := fake.NewClientset()
	events := created(client, nil)
	r, _ := run(t, client)
	for _, name := range []string{strings.Repeat("a", 253), strings.Repeat("a", 199) + ".b", strings.Repeat("a", 198) + "-.b"} {
		r.Record(about("a", name))
		if got := (<-events).Name; len(validation.IsDNS1123Subdomain(got)) > 0 {
			t.Errorf("%q is no valid name", got)
		}
	}
}

func TestEventsAreLimited(t *testing.T) {
	r := objectevents.New(fake.NewClientset(), clock, func(error) {})
	recorded := 0
	for range 100 {
		if r.Record(about("a", "thing")) {
			recorded++
		}
	}
	if recorded != 25 {
		t.Errorf("%d events at once, want 25", recorded)
	}
}

func TestAFullQueueDropsEvents(t *testing.T) {
	now := noon
	r := objectevents.New(fake.NewClientset(), func() time.Time { return now }, func(error) {})
	recorded := 0
	for range 100 {
		now = now.Add(time.Minute)
		if r.Record(about("a", "thing")) {
			recorded++
		}
	}
	if recorded != 50 {
		t.Errorf("%d events are queued, want 50", recorded)
	}
}

func TestFailuresAreReported(t *testing.T) {
	client := fake.NewClientset()
	created(client, errors.New("no"))
	r, failed := run(t, client)
	for namespace, want := range map[string]string{"": "thing", "kube-system": "kube-system/thing"} {
		r.Record(about(namespace, "thing"))
		if got, want := (<-failed).Error(), fmt.Sprintf("create an event of Thing %s: no", want); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
