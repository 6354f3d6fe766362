package approver_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/approve"
	"github.com/node-authorizer/node-authorizer/internal/approver"
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
)

// storm fails requests at random, a number of times.
type storm struct {
	mu     sync.Mutex
	random *rand.Rand
	left   int
	met    map[fakeapiserver.Fault]int
}

func (s *storm) of(r *http.Request) fakeapiserver.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || s.random.IntN(3) > 0 {
		return fakeapiserver.NoFault
	}
	fault := []fakeapiserver.Fault{fakeapiserver.Unavailable, fakeapiserver.Internal, fakeapiserver.Cut, fakeapiserver.AnswerLost}[s.random.IntN(4)]
	if r.Method == http.MethodGet && r.URL.Query().Get("watch") != "" && fault == fakeapiserver.AnswerLost {
		fault = fakeapiserver.Cut // an answer to a watch has no end that could be lost
	}
	s.left--
	s.met[fault]++
	return fault
}

// unmet are the faults that did not happen.
func (s *storm) unmet() (faults []fakeapiserver.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range []fakeapiserver.Fault{fakeapiserver.Unavailable, fakeapiserver.Internal, fakeapiserver.Cut, fakeapiserver.AnswerLost} {
		if s.met[fault] == 0 {
			faults = append(faults, fault)
		}
	}
	return faults
}

// TestTwoLeadersUnderFaults has two approvers decide the same requests at once,
// each certain that it leads, while every call to the API server may fail before
// or after it takes effect.
func TestTwoLeadersUnderFaults(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			weather := &storm{random: rand.New(rand.NewPCG(seed, 0)), left: 250, met: map[fakeapiserver.Fault]int{}}
			s := newStand(t, fakeapiserver.Options{Fault: weather.of})
			names := s.crowd()
			for range 2 {
				s.start(approver.Options{})
			}
			for _, name := range names {
				s.until(name+" is decided", func() bool { return decision(s.request(name)) != "" })
			}
			s.check(names)
			for _, fault := range weather.unmet() {
				t.Errorf("fault %d was never met", fault)
			}
		})
	}
}

const machines = 8

// crowd makes machines with a token each, and for each token three keys with two
// requests each; two machines claim one name; some requests others have decided.
func (s *stand) crowd() (names []string) {
	for m := range machines {
		token, node := fmt.Sprintf("tok%03d", m), fmt.Sprintf("worker-%d", m)
		s.machine("aws-i-"+node, node, token)
		for k := range 3 {
			key := newKey(s.t)
			for again := range 2 {
				name := fmt.Sprintf("%s-key%d-%d", token, k, again)
				s.put(requestPath(name), withToken(s.t, token, key, node))
				names = append(names, name)
			}
		}
		for name, csr := range map[string]*certificatesv1.CertificateSigningRequest{
			token + "-renewal": ofNode(s.t, node), token + "-serving": ofNode(s.t, node, "10.0.0.7"), token + "-stranger": ofNode(s.t, "stranger"),
		} {
			s.put(requestPath(name), csr)
			names = append(names, name)
		}
		decided := withToken(s.t, token, newKey(s.t), node)
		decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type:   []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied}[m%2],
			Status: corev1.ConditionTrue, Reason: "Manual",
		}}
		s.put(requestPath(token+"-manual"), decided)
	}
	for i, token := range []string{"same01", "same02"} {
		s.machine("aws-i-"+token, "same", token, func(e *v1alpha1.NodeAttestation) {
			e.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(i-10) * time.Minute))
		})
		s.put(requestPath(token), withToken(s.t, token, newKey(s.t), "same"))
		names = append(names, token)
	}
	return names
}

// check wants one key for each token, one machine for the shared name, and every
// decision to have stayed as it was.
func (s *stand) check(names []string) {
	s.t.Helper()
	for m := range machines {
		token := fmt.Sprintf("tok%03d", m)
		approved := map[string]int{}
		for k := range 3 {
			for again := range 2 {
				csr := s.request(fmt.Sprintf("%s-key%d-%d", token, k, again))
				switch got := decision(csr); got {
				case "Approved ClientCertificateApproved":
					approved[approve.PublicKey(csr.Spec.Request)]++
				case "Denied TokenAlreadyUsed":
				default:
					s.t.Errorf("request %s: %s", csr.Name, got)
				}
			}
		}
		bound := s.entry("aws-i-worker-" + strconv.Itoa(m)).BoundKey()
		if len(approved) != 1 || approved[bound] != 2 {
			s.t.Errorf("token %s: approved %v, bound to %s; want both requests of this key and no other", token, approved, bound)
		}
		if keys := s.keysOf("aws-i-worker-" + strconv.Itoa(m)); len(keys) != 1 {
			s.t.Errorf("token %s has been bound to %v", token, keys)
		}
		for name, want := range map[string]string{
			"-renewal": "Approved RenewalApproved", "-serving": "Approved ServingCertificateApproved", "-stranger": "Denied NotAttested",
		} {
			if got := decision(s.request(token + name)); got != want {
				s.t.Errorf("request %s%s: %s, want %s", token, name, got, want)
			}
		}
		if versions, err := s.api.History(requestPath(token + "-manual")); err != nil || len(versions) != 1 {
			s.t.Errorf("a request that was decided by hand had %d versions, %v", len(versions), err)
		}
	}
	if first, second := decision(s.request("same01")), decision(s.request("same02")); first != "Approved ClientCertificateApproved" || second != "Denied NameTaken" {
		s.t.Errorf("of two machines with one name the older is %s, the younger %s", first, second)
	}
	for _, name := range names {
		if versions, err := s.api.History(requestPath(name)); err != nil || len(versions) != 2 {
			s.t.Errorf("request %s had %d versions, %v; want it as it was made and as it was decided", name, len(versions), err)
		}
	}
}

// keysOf returns every key that an entry's token was ever bound to.
func (s *stand) keysOf(name string) []string {
	s.t.Helper()
	versions, err := s.api.History(entryPath(name))
	if err != nil {
		s.t.Fatal(err)
	}
	var keys []string
	for _, v := range versions {
		text, err := json.Marshal(v)
		if err != nil {
			s.t.Fatal(err)
		}
		var entry v1alpha1.NodeAttestation
		if err := json.Unmarshal(text, &entry); err != nil {
			s.t.Fatal(err)
		}
		if key := entry.BoundKey(); key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
