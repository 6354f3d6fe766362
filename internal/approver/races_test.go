package approver_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/approver"
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
)

// TestTheEntryChangesWhileATokenIsBound: the approver has read the entry, and something
// else changes it before the key is written. Whoever comes first wins.
func TestTheEntryChangesWhileATokenIsBound(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.NodeAttestation)
		want   string
	}{
		{"the machine is given another token", func(e *v1alpha1.NodeAttestation) { e.Spec.TokenID = "cccccc" }, "Denied TokenUnknown"},
		{"the machine is revoked", func(e *v1alpha1.NodeAttestation) { e.Status.Phase = v1alpha1.Revoked }, "Denied AttestationRevoked"},
		{"another approver binds the token to another key", bound("sha256:00"), "Denied TokenAlreadyUsed"},
		{"the machine is given another name", func(e *v1alpha1.NodeAttestation) { e.Spec.NodeName = "worker-2" }, "Denied WrongNodeName"},
		{"the machine's evidence is newer", func(e *v1alpha1.NodeAttestation) { e.Spec.EvidenceTime = &metav1.Time{Time: e.Spec.AttestedTime.Time} }, "Approved ClientCertificateApproved"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			var s *stand
			meanwhile := sync.OnceFunc(func() { s.change("aws-i-1", tc.change) })
			s = newStand(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/nodeattestations/aws-i-1/status") {
					meanwhile()
				}
				return fakeapiserver.NoFault
			}})
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			s.start(approver.Options{})
			s.put(requestPath("it"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
			s.await("it", tc.want)
		})
	}
}

// TestTheEntryChangesBeforeTheApproval: the token is bound, the approval fails, and
// something else changes the entry before the next try.
func TestTheEntryChangesBeforeTheApproval(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.NodeAttestation)
		want   string
	}{
		{"the machine is given another token", func(e *v1alpha1.NodeAttestation) { e.Spec.TokenID = "cccccc" }, "Denied TokenUnknown"},
		{"the machine is revoked", func(e *v1alpha1.NodeAttestation) { e.Status.Phase = v1alpha1.Revoked }, "Denied AttestationRevoked"},
		{"the machine's evidence is newer", func(e *v1alpha1.NodeAttestation) { e.Spec.EvidenceTime = &metav1.Time{Time: e.Spec.AttestedTime.Time} }, "Approved ClientCertificateApproved"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			var s *stand
			var failed atomic.Bool
			s = newStand(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
				if strings.HasSuffix(r.URL.Path, "/approval") && failed.CompareAndSwap(false, true) {
					if s.entry("aws-i-1").BoundKey() == "" {
						t.Error("an approval is written before the token is bound")
					}
					s.change("aws-i-1", tc.change)
					return fakeapiserver.Unavailable
				}
				return fakeapiserver.NoFault
			}})
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			s.start(approver.Options{})
			s.put(requestPath("it"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
			s.await("it", tc.want)
		})
	}
}

// TestManyRequestsOfATokenThatNoEntryNames: whoever has a token that was replaced makes
// any number of requests with it. They share what is listed.
func TestManyRequestsOfATokenThatNoEntryNames(t *testing.T) {
	var lists atomic.Int64
	s := newStand(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		if strings.HasSuffix(r.URL.Path, "/nodeattestations") && r.URL.Query().Get("watch") == "" {
			lists.Add(1)
		}
		return fakeapiserver.NoFault
	}})
	s.machine("aws-i-1", "worker-1", "bbbbbb")
	const requests = 40
	for i := range requests {
		s.put(requestPath(fmt.Sprintf("it-%d", i)), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	}
	s.start(approver.Options{})
	for i := range requests {
		s.await(fmt.Sprintf("it-%d", i), "Denied TokenUnknown")
	}
	if n := lists.Load(); n > requests/4 {
		t.Errorf("the ledger was listed %d times for %d requests", n, requests)
	}
}
