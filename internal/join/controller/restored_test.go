package controller_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// The store is restored, and the API server keeps running: it lists and watches an object that the store does not have
// any more. Within twice MaxStaleness the approver decides nothing from its copy, until the API server lists the objects of its
// store.
func TestRestoredStoreBehindAnAPIServerThatKeepsRunning(t *testing.T) {
	const limit = 2 * time.Minute
	for resource, drop := range map[string]func(*testCluster){
		"certificatesigningrequests.certificates.k8s.io": func(s *testCluster) {
			s.put(requestPath("dropped"), &certificatesv1.CertificateSigningRequest{})
		},
		"nodes": func(s *testCluster) { s.put("/api/v1/nodes/dropped", &corev1.Node{}) },
	} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &testCluster{t: t, api: fakeapiserver.New(fakeapiserver.Options{})}
				var err error
				if s.client, err = kubernetes.NewForConfig(s.api.InMemory(nil)); err != nil {
					t.Fatal(err)
				}
				if s.ledger, err = ledger.NewClient(s.api.InMemory(nil)); err != nil {
					t.Fatal(err)
				}
				s.known = ledger.NewCache(s.ledger)
				c, err := controller.New(controller.Options{Client: s.client, Ledger: s.ledger, Known: s.known, MaxStaleness: limit})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = s.known.Run(ctx) })
				running.Go(func() { _ = c.Run(ctx) })
				defer running.Wait()
				defer stop()
				// tooOld returns the errors of the copies, by resource.
				tooOld := func() map[string]error {
					all := map[string]error{}
					for _, age := range c.Ages() {
						if err := age.Check(); err != nil {
							all[age.Source()] = err
						}
					}
					return all
				}
				time.Sleep(limit)
				before := s.api.Version()
				drop(s)
				for range 20 {
					time.Sleep(20 * time.Second)
					if old := tooOld(); len(old) > 0 {
						t.Fatal(old)
					}
				}
				s.api.RestoreStore(before)
				time.Sleep(2 * limit)
				for range 20 {
					err := tooOld()[resource]
					if err == nil || !strings.Contains(err.Error(), "restart this kube-apiserver: its store has dropped") {
						t.Fatalf("the copy may be used: %v", err)
					}
					time.Sleep(20 * time.Second)
				}
				s.api.Restart()
				time.Sleep(limit)
				if old := tooOld(); len(old) > 0 {
					t.Error(old)
				}
			})
		})
	}
}
