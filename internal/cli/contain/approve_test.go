package contain

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// TestOnlyWhatWasShownIsApproved changes the Machine after it was read.
func TestOnlyWhatWasShownIsApproved(t *testing.T) {
	const path = "/apis/node-authorizer.io/v1alpha1/machines/key-1"
	hash := "sha256:" + strings.Repeat("0", 64)
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.Machine)
		want   string // part of the error
	}{
		{"nothing", func(*v1alpha1.Machine) {}, ""},
		{"another request of the machine", func(m *v1alpha1.Machine) {
			m.Spec.Evidence.RequestTime = metav1.NewTime(time.Now())
		}, ""},
		{"from another address", func(m *v1alpha1.Machine) { m.Spec.Evidence.RemoteAddress = "192.0.2.8" }, "changed since it was shown"},
		{"another name", func(m *v1alpha1.Machine) { m.Spec.NodeName = "control-plane-1" }, "changed since it was shown"},
		{"another key", func(m *v1alpha1.Machine) { m.Spec.PublicKeys = []string{hash[:70] + "1"} }, "changed since it was shown"},
		{"another Machine of the same name", func(m *v1alpha1.Machine) { m.UID = "uid-2" }, "changed since it was shown"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			server := fakeapiserver.New(fakeapiserver.Options{})
			put := func(m *v1alpha1.Machine) {
				if m.UID == "uid-2" {
					server.Remove(path)
				}
				if err := server.Put(path, m); err != nil {
					t.Error(err)
				}
			}
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "key-1", UID: "uid-1"}, Spec: v1alpha1.MachineSpec{
				NodeName: "worker-1", Approval: v1alpha1.Pending, PublicKeys: []string{hash},
				Evidence: &v1alpha1.MachineEvidence{RemoteAddress: "192.0.2.7"},
			}}
			put(m)
			changed := false
			server.Intercept(func(_ context.Context, call fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
				if call.Verb == "update" && !changed {
					changed = true
					m := m.DeepCopy()
					tc.change(m)
					put(m)
				}
				return do(), nil
			})
			p := &approving{app: &command.App{Streams: command.Streams{ErrOut: &bytes.Buffer{}}}, yes: true}
			result, err := p.run(t.Context(), server.InMemory(nil), "key-1")
			after := &v1alpha1.Machine{}
			if _, err := server.Get(path, after); err != nil {
				t.Fatal(err)
			}
			if approved := after.Spec.Approval == v1alpha1.Approved; approved != (tc.want == "") || approved != (result != nil) {
				t.Errorf("the Machine is %s, the result %+v", after.Spec.Approval, result)
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestNamesOfRegisteredMachinesAreNotGivenAgain: anybody can ask for any name, and the first of two machines to join has it.
func TestNamesOfRegisteredMachinesAreNotGivenAgain(t *testing.T) {
	for _, tc := range []struct {
		rule     string
		approval v1alpha1.Approval // of the other Machine
		nodeName string            // of the flag
		want     string            // part of the error
	}{
		{"the name of a registered machine", "", "", "node worker-1 is the node of machine registered"},
		{"the name of an approved machine", v1alpha1.Approved, "", "node worker-1 is the node of machine registered"},
		{"the name of a pending machine", v1alpha1.Pending, "", ""},
		{"another name", "", "worker-2", ""},
		{"the name of a registered machine in the flag", "", "worker-3", "node worker-3 is the node of machine third"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			server := fakeapiserver.New(fakeapiserver.Options{})
			for name, spec := range map[string]v1alpha1.MachineSpec{
				"key-1":      {NodeName: "worker-1", Approval: v1alpha1.Pending, PublicKeys: []string{"sha256:" + strings.Repeat("0", 64)}},
				"registered": {NodeName: "worker-1", Approval: tc.approval, PublicKeys: []string{"sha256:" + strings.Repeat("1", 64)}},
				"third":      {NodeName: "worker-3", PublicKeys: []string{"sha256:" + strings.Repeat("2", 64)}},
			} {
				m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
				if err := server.Put("/apis/node-authorizer.io/v1alpha1/machines/"+name, m); err != nil {
					t.Fatal(err)
				}
			}
			p := &approving{app: &command.App{Streams: command.Streams{ErrOut: &bytes.Buffer{}}}, yes: true, nodeName: tc.nodeName}
			result, err := p.run(t.Context(), server.InMemory(nil), "key-1")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || (result == nil) != (err != nil) {
				t.Errorf("%+v, %v, want %q", result, err, tc.want)
			}
		})
	}
}
