package server

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// An account has one quota of requests to EC2 in a region. The webhook for tokens and the bootstrap
// service use one client, with one rate limit and one metric.
func TestAllPartsAskEC2ThroughOneClient(t *testing.T) { // sets the environment of the SDK
	cloud, err := fakeaws.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cloud.Close)
	front, err := cloud.Front(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	setCredentials(t, cloud.User(account, "node-authorizer"))
	var mu sync.Mutex
	observed := map[string]int{}
	observe := func(service, outcome string) {
		mu.Lock()
		defer mu.Unlock()
		observed[service+" "+outcome]++
	}
	config := v1alpha1.Defaults()
	config.IAM.Region = "eu-west-1"
	config.Bootstrap.Attestor = v1alpha1.AWSAttestor
	config.Bootstrap.AWS.ClusterName = "shop.example.com"
	aws := &config.Bootstrap.AWS
	aws.Accounts, aws.Regions, aws.VPCs = []string{account}, []string{"eu-west-1"}, []string{"vpc-0123456789abcdef0"}
	shared := newSharedEC2(&config.IAM.EC2, front.Transport(), observe)
	attestor, err := newPendingAttestor(&config.Bootstrap, nil, shared, nil)
	if err != nil {
		t.Fatal(err)
	}
	lookUps := newPendingInstances(&config.IAM, shared, front.Transport(), observe)

	machine, node := cloud.Launch(fakeaws.Instance{}), cloud.Launch(fakeaws.Instance{})
	made, err := attestor.make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if gone, err := made.(attest.Presence).Gone(t.Context(), machine.ID, "eu-west-1"); gone || err != nil {
		t.Errorf("the bootstrap service: %v, %v", gone, err)
	}
	of, err := lookUps.make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found, err := of.Instance(t.Context(), node.ID, false); found == nil || err != nil {
		t.Errorf("the webhook: %v, %v", found, err)
	}
	if want := map[string]int{"EC2 answered": 2}; !maps.Equal(observed, want) {
		t.Errorf("observed %v, want %v", observed, want)
	}
	one, err := shared.get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if two, err := shared.get(context.Background()); err != nil || one != two {
		t.Errorf("another client, %v", err)
	}
}
