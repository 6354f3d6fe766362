package mappings_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// The store is restored, and the API server keeps running: it lists and watches a mapping that the store does not have
// any more. Within twice MaxStaleness it maps nobody, until the API server lists the objects of its store.
func TestRestoredStoreBehindAnAPIServerThatKeepsRunning(t *testing.T) {
	for source, write := range map[v1alpha1.MappingSource]func(*cluster){
		v1alpha1.ConfigMapSource: func(c *cluster) {
			c.set(map[string]string{"mapRoles": nodes, "mapUsers": "- userarn: " + ada + "\n  username: ada\n"})
		},
		v1alpha1.IdentityMappingSource: func(c *cluster) { c.identity("ada", ada, "ada") },
	} {
		t.Run(string(source), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{t: t, Server: fakeapiserver.New(fakeapiserver.Options{})}
				c.set(map[string]string{"mapRoles": nodes})
				c.identity("ops", opsRole, "ops")
				live, _ := follow(t, mappings.Options{Sources: kinds{source}, Cluster: c.InMemory(nil), MaxStaleness: limit})
				time.Sleep(limit)
				before := c.Version()
				write(c)
				for range 20 {
					time.Sleep(20 * time.Second)
					mapped(t, live, ada, "ada")
				}
				c.RestoreStore(before)
				time.Sleep(2 * limit)
				for range 20 {
					_, found, err := live.Find(ada, account)
					if found || err == nil || !strings.Contains(err.Error(), "restart this kube-apiserver: its store has ") {
						t.Fatalf("mapped %v: %v", found, err)
					}
					time.Sleep(20 * time.Second)
				}
				c.Restart()
				time.Sleep(limit)
				if mapping, found, err := live.Find(ada, account); found || err != nil {
					t.Errorf("after the restart: %+v, %v", mapping, err)
				}
			})
		})
	}
}
