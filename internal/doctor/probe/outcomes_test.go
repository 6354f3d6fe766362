package probe

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakecluster"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// run makes all probes of a fake.
func run(t *testing.T, c *fakecluster.Cluster, minor kubeversion.Minor) (*Results, error) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return Run(t.Context(), &rest.Config{Host: server.URL, BearerToken: fakecluster.Token}, Options{Minor: minor})
}

func mustRun(t *testing.T, c *fakecluster.Cluster, minor kubeversion.Minor) *Results {
	t.Helper()
	results, err := run(t, c, minor)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// outcomes returns the differences from a cluster in which everything holds: "ID outcome cause".
func outcomes(r *Results) []string {
	var list []string
	for _, p := range r.Probes {
		if p.Outcome != Holds {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.ID, p.Outcome, p.Cause)))
		}
	}
	return list
}

// TestOutcomes switches protections off.
func TestOutcomes(t *testing.T) {
	unrestricted := []string{
		"write-other-node doesNotHold", "write-label doesNotHold", "write-pod doesNotHold", "certificate doesNotHold",
		"audience doesNotHold",
	}
	unreachable := []string{
		"write-other-node undetermined", "write-label undetermined", "write-pod undetermined", "certificate undetermined",
		"audience undetermined",
	}
	for _, test := range []struct {
		rule    string
		cluster *fakecluster.Cluster
		minor   kubeversion.Minor
		want    []string
	}{
		{"everything holds", &fakecluster.Cluster{}, 37, nil},
		{"everything holds in an unknown version", &fakecluster.Cluster{}, 0, nil},
		{
			"without messages and reasons, only the pod has no comparison", &fakecluster.Cluster{Silent: true}, 37,
			[]string{"write-pod undetermined"},
		},
		{
			"without the Node authorizer a node may do nothing", &fakecluster.Cluster{WithoutNodeAuthorizer: true}, 37,
			append([]string{"node-identity doesNotHold"}, unreachable...),
		},
		{"without NodeRestriction", &fakecluster.Cluster{WithoutNodeRestriction: true}, 37, unrestricted},
		{
			"a role of the group hides the Node authorizer from one question", &fakecluster.Cluster{Group: []string{"get nodes"}}, 37,
			[]string{"other-node doesNotHold group"},
		},
		{
			"and from all, except for its reason", &fakecluster.Cluster{Group: []string{"get nodes", "create resourceslices"}}, 37,
			[]string{"other-node doesNotHold group"},
		},
		{
			"and from all", &fakecluster.Cluster{Group: []string{"get nodes", "create resourceslices"}, Silent: true}, 37,
			[]string{"node-identity undetermined", "other-node doesNotHold group", "write-pod undetermined"},
		},
		{
			"a role of the group reads secrets", &fakecluster.Cluster{Group: []string{"get secrets", "list secrets"}}, 37,
			[]string{"secret doesNotHold group", "secrets doesNotHold group"},
		},
		{
			"a role of the group in place of the Node authorizer",
			&fakecluster.Cluster{WithoutNodeAuthorizer: true, Group: []string{
				"get nodes", "get secrets", "list secrets", "list pods", "create nodes", "create pods", "create certificatesigningrequests",
				"create serviceaccounts/token",
			}},
			37,
			[]string{
				"node-identity doesNotHold group", "secret doesNotHold group", "secrets doesNotHold group", "other-node doesNotHold group",
				"all-pods doesNotHold group",
			},
		},
		{
			"a role of the group approves certificates",
			&fakecluster.Cluster{Group: []string{"update certificatesigningrequests/approval", "approve signers"}}, 37,
			[]string{"approval doesNotHold"},
		},
		{
			"the right to one half of an approval is none",
			&fakecluster.Cluster{Group: []string{"update certificatesigningrequests/approval"}}, 37, nil,
		},
		{
			"the gate of selectors is off", &fakecluster.Cluster{WithoutSelectors: true}, 33,
			[]string{"other-node doesNotHold", "all-pods doesNotHold"},
		},
		{
			"the version has no selectors", &fakecluster.Cluster{WithoutSelectors: true}, 31,
			[]string{"other-node doesNotHold version", "all-pods doesNotHold version"},
		},
		{"the gate of audiences is off", &fakecluster.Cluster{WithoutAudiences: true}, 36, []string{"audience doesNotHold"}},
		{"the version has no audiences", &fakecluster.Cluster{WithoutAudiences: true}, 31, []string{"audience doesNotHold version"}},
		{
			"a role of the group gives audiences",
			&fakecluster.Cluster{Group: []string{"request-serviceaccounts-token-audience *"}}, 37,
			[]string{"audience doesNotHold audience"},
		},
		{"the gate of requests is on", &fakecluster.Cluster{InsecureRequests: true}, 37, []string{"certificate doesNotHold"}},
		{
			"the version does not check requests", &fakecluster.Cluster{InsecureRequests: true}, 30,
			[]string{"certificate doesNotHold version"},
		},
		{
			"everything is allowed", &fakecluster.Cluster{AlwaysAllow: true}, 37, []string{
				"everyone doesNotHold everyone", "node-identity doesNotHold everyone", "secret doesNotHold everyone",
				"secrets doesNotHold everyone", "approval doesNotHold everyone", "other-node doesNotHold everyone",
				"all-pods doesNotHold everyone", "audience doesNotHold audience", "anonymous doesNotHold",
			},
		},
		{"anonymous requests are off", &fakecluster.Cluster{Anonymous: "off", AnonymousMay: []string{"list secrets"}}, 37, nil},
		{"anonymous requests read health", &fakecluster.Cluster{Anonymous: "health", AnonymousMay: []string{"list secrets"}}, 37, nil},
		{
			"anonymous requests read secrets", &fakecluster.Cluster{AnonymousMay: []string{"list secrets"}}, 37,
			[]string{"anonymous doesNotHold"},
		},
		{
			"anonymous requests read the list of APIs", &fakecluster.Cluster{AnonymousMay: []string{"get /api"}}, 37,
			[]string{"anonymous doesNotHold discovery"},
		},
		{"a page to log in is not an API server", &fakecluster.Cluster{Anonymous: "proxy"}, 37, []string{"anonymous undetermined"}},
		{"a webhook refuses what NodeRestriction allows", &fakecluster.Cluster{Webhook: "no nodes today"}, 37, nil},
		{
			"a webhook refuses everything", &fakecluster.Cluster{Webhook: "no nodes today", WithoutNodeRestriction: true}, 37,
			unreachable,
		},
		{
			"a webhook refuses pods in the place of NodeRestriction",
			&fakecluster.Cluster{Webhook: "pods: quota exceeded", WithoutNodeRestriction: true}, 37,
			[]string{
				"write-other-node doesNotHold", "write-label doesNotHold", "write-pod undetermined", "certificate doesNotHold",
				"audience doesNotHold",
			},
		},
		{
			"constrained impersonation suffices", &fakecluster.Cluster{Constrained: true, Lacks: []string{"impersonate"}}, 37, nil,
		},
		{
			"and shows what does not hold",
			&fakecluster.Cluster{Constrained: true, Lacks: []string{"impersonate"}, WithoutNodeRestriction: true}, 37, unrestricted,
		},
		{
			"but is not tried before there was any", &fakecluster.Cluster{Constrained: true, Lacks: []string{"impersonate"}}, 34,
			unreachable,
		},
		{
			"a webhook that does not support dry runs", &fakecluster.Cluster{WithoutDryRuns: true, WithoutNodeRestriction: true}, 37,
			unreachable,
		},
		{"NodeRestriction refuses before such a webhook", &fakecluster.Cluster{WithoutDryRuns: true}, 37, nil},
		{"no pod has a token", &fakecluster.Cluster{NoPods: true}, 37, []string{"audience undetermined"}},
		{
			"an authorizer that fails refuses nothing", &fakecluster.Cluster{AuthorizerFails: true}, 37, []string{
				"everyone undetermined", "node-identity undetermined", "secret undetermined", "secrets undetermined",
				"approval undetermined", "other-node undetermined", "all-pods undetermined", "anonymous undetermined",
			},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			results := mustRun(t, test.cluster, test.minor)
			if got := outcomes(results); !slices.Equal(got, test.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
			wantNothingStored(t, test.cluster)
			wantTexts(t, results)
		})
	}
}

func wantNothingStored(t *testing.T, c *fakecluster.Cluster) {
	t.Helper()
	if stored := c.Stored(); len(stored) > 0 {
		t.Errorf("the probes stored %q", stored)
	}
}

// wantTexts checks what holds for each probe: there is a reason without a made-up name, and what was
// sent with its answer.
func wantTexts(t *testing.T, r *Results) {
	t.Helper()
	for _, p := range r.Probes {
		why := strings.ReplaceAll(p.Why, "node-restriction.kubernetes.io/node-authorizer-probe", "")
		if why == "" || strings.Contains(why, "worker-1") || strings.Contains(why, prefix) {
			t.Errorf("%s: why is %q", p.ID, p.Why)
		}
		if len(p.Sent) == 0 {
			t.Errorf("%s: nothing was sent", p.ID)
		}
		for _, s := range p.Sent {
			if s.Method == "" || s.Path == "" || s.Answer == "" && s.Status < 400 {
				t.Errorf("%s: %+v", p.ID, s)
			}
		}
	}
}
