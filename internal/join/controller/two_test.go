package controller_test

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
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// randomFaults makes random requests fail, a limited number of times.
type randomFaults struct {
	mu     sync.Mutex
	random *rand.Rand
	left   int
	made   map[fakeapiserver.Fault]int
}

func (s *randomFaults) of(r *http.Request) fakeapiserver.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || s.random.IntN(3) > 0 {
		return fakeapiserver.NoFault
	}
	fault := allFaults()[s.random.IntN(4)]
	if r.Method == http.MethodGet && r.URL.Query().Get("watch") != "" && fault == fakeapiserver.AnswerLost {
		fault = fakeapiserver.Cut // the answer to a watch cannot be lost
	}
	s.left--
	s.made[fault]++
	return fault
}

func allFaults() []fakeapiserver.Fault {
	return []fakeapiserver.Fault{
		fakeapiserver.Unavailable, fakeapiserver.Internal, fakeapiserver.Cut, fakeapiserver.AnswerLost,
	}
}

// missing returns the faults that did not occur.
func (s *randomFaults) missing() (faults []fakeapiserver.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range allFaults() {
		if s.made[fault] == 0 {
			faults = append(faults, fault)
		}
	}
	return faults
}

// Two approvers that both lead decide the same requests, while every call to the API server may
// fail before or after it takes effect.
func TestTwoLeadersUnderFaults(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			faults := &randomFaults{random: rand.New(rand.NewPCG(seed, 0)), left: 250, made: map[fakeapiserver.Fault]int{}}
			s := newTestCluster(t, fakeapiserver.Options{Fault: faults.of})
			names := s.createRequests()
			for range 2 {
				s.start(controller.Options{})
			}
			for _, name := range names {
				s.until(name+" is decided", func() bool { return decision(s.request(name)) != "" })
			}
			s.check(names)
			for _, fault := range faults.missing() {
				t.Errorf("fault %d did not occur", fault)
			}
		})
	}
}

const machines = 8

// createRequests creates machines with a token each, and for each token three keys with two requests
// each. Two machines have the same name, and others have decided some requests.
func (s *testCluster) createRequests() (names []string) {
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
			token + "-renewal": ofNode(s.t, node), token + "-serving": ofNode(s.t, node, "10.0.0.7"),
			token + "-unattested": ofNode(s.t, "unattested"),
		} {
			s.put(requestPath(name), csr)
			names = append(names, name)
		}
		decided := withToken(s.t, token, newKey(s.t), node)
		types := []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied}
		decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type:   types[m%2],
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

// check checks that each token was used for one key, one machine has the shared name, and no decision
// was changed.
func (s *testCluster) check(names []string) {
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
			s.t.Errorf("token %s: approved %v, bound to %s; want both requests of this key and no other",
				token, approved, bound)
		}
		if keys := s.keysOf("aws-i-worker-" + strconv.Itoa(m)); len(keys) != 1 {
			s.t.Errorf("token %s has been bound to %v", token, keys)
		}
		for name, want := range map[string]string{
			"-renewal": "Approved RenewalApproved", "-serving": "Approved ServingCertificateApproved",
			"-unattested": "Denied NotAttested",
		} {
			if got := decision(s.request(token + name)); got != want {
				s.t.Errorf("request %s%s: %s, want %s", token, name, got, want)
			}
		}
		if versions, err := s.api.History(requestPath(token + "-manual")); err != nil || len(versions) != 1 {
			s.t.Errorf("a manually decided request had %d versions, %v", len(versions), err)
		}
	}
	first, second := decision(s.request("same01")), decision(s.request("same02"))
	if first != "Approved ClientCertificateApproved" || second != "Denied NameTaken" {
		s.t.Errorf("of two machines with one name the older is %s, the younger %s", first, second)
	}
	for _, name := range names {
		if versions, err := s.api.History(requestPath(name)); err != nil || len(versions) != 2 {
			s.t.Errorf("request %s had %d versions, %v; want one from its creation and one from its decision", name, len(versions), err)
		}
	}
}

// keysOf returns all keys that an entry's token has been bound to.
func (s *testCluster) keysOf(name string) []string {
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
