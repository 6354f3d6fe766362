package replay

import (
	"reflect"
	"testing"
)

func TestStandingOfKubelets(t *testing.T) {
	other := func(e entry) entry { e.agent = "kube-controller-manager/v1.37.1"; return e }
	refused := func(e entry) entry { e.decision, e.code = "forbid", 403; return e }
	impersonated := func(e entry, user string, groups ...string) entry {
		e.as, e.asGroups, e.agent = user, groups, "kubectl/v1.37.1"
		return e
	}
	for name, test := range map[string]struct {
		entry    entry
		standing Standing // empty for users that are not kubelets
		never    []string // nodes that never conform
	}{
		"a node's name in the group conforms": {renewLease("worker-1").node("worker-1"), Conforming, nil},
		"it conforms with any user agent":     {other(renewLease("worker-1").node("worker-1")), Conforming, nil},
		"in the group with another name": {
			renewLease("worker-2").by("WorkerNodeRole", "system:bootstrappers", "system:nodes"), NotNamed, []string{"worker-2"},
		},
		"in the group and refused": {
			refused(renewLease("worker-2")).by("WorkerNodeRole", "system:nodes"), NotNamed, []string{"worker-2"},
		},
		"in the group with an empty name":    {getSecret("db").by("system:node:", "system:nodes"), EmptyName, nil},
		"a node's name outside of the group": {getSecret("db").by("system:node:worker-2"), NotInGroup, []string{"worker-2"}},
		"a node's name outside of the group, masters": {
			getSecret("db").by("system:node:worker-2", "system:masters"), NotInGroup, []string{"worker-2"},
		},
		"a kubelet with another user": {getSecret("db").by("WorkerNodeRole", "system:masters"), KubeletAgent, nil},
		"a kubelet without a user":    {entry{verb: "get", uri: "/version"}.by("system:anonymous"), KubeletAgent, nil},
		"a bootstrap token": {
			entry{verb: "get", uri: "/version"}.by("system:bootstrap:abcdef", "system:bootstrappers"), Bootstrapping, nil,
		},
		"a bootstrap token with groups of its own": {
			entry{verb: "get", uri: "/version"}.by("system:bootstrap:abcdef", "system:bootstrappers:kubeadm:default-node-token"),
			Bootstrapping, nil,
		},
		"the group of bootstrap tokens": {
			other(entry{verb: "get", uri: "/version"}).by("ada", "system:bootstrappers"), Bootstrapping, nil,
		},
		"a bootstrap user that keeps a node alive": {
			renewLease("worker-2").by("ada", "system:bootstrappers"), WritesForNode, []string{"worker-2"},
		},
		"a bootstrap user that writes a node's status": {
			patchStatus("worker-2").by("ada", "system:bootstrappers"), WritesForNode, []string{"worker-2"},
		},
		"a cloud's controllers write a node's status": {
			other(patchStatus("worker-2")).by("eks:vpc-resource-controller", "system:authenticated"), "", nil,
		},
		"another user that renews a lease": {other(renewLease("worker-2")).by("ada"), WritesForNode, []string{"worker-2"}},
		"a virtual kubelet renews its lease": {
			other(renewLease("worker-2")).by("system:serviceaccount:virtual:kubelet", "system:serviceaccounts"), WritesForNode,
			[]string{"worker-2"},
		},
		"another user that is refused": {refused(other(renewLease("worker-2"))).by("ada"), "", nil},
		"controllers write conditions": {
			other(patchStatus("worker-2")).by("system:serviceaccount:kube-system:node-controller", "system:serviceaccounts"), "", nil,
		},
		"the control plane writes both":         {other(renewLease("worker-2")).by("system:kube-controller-manager"), "", nil},
		"another user that does something else": {other(getSecret("db")).by("ada"), "", nil},
		"an impersonated node": {
			impersonated(renewLease("worker-2").by("ada"), "system:node:worker-2", "system:nodes"), Conforming, nil,
		},
		"an impersonated kubelet": {
			impersonated(renewLease("worker-2").by("ada"), "WorkerNodeRole", "system:nodes"), NotNamed, nil,
		},
		"a user whom a kubelet impersonates": {entry{verb: "get", uri: "/version", as: "ada"}.node("worker-2"), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			report := replayed(t, evaluators(t), logOf(test.entry))
			if got := standingOf(report); got != test.standing {
				t.Errorf("got standing %q, want %q", got, test.standing)
			}
			var never []string
			for _, n := range report.Nodes.NeverConforming {
				never = append(never, n.Name)
				if want := []string{test.entry.user}; !reflect.DeepEqual(n.Identities, want) {
					t.Errorf("%v act for %s, want %v", n.Identities, n.Name, want)
				}
			}
			if !reflect.DeepEqual(never, test.never) {
				t.Errorf("never conforming are %v, want %v", never, test.never)
			}
		})
	}
}

func standingOf(r *Report) Standing {
	switch {
	case r.Totals.Conforming == 1:
		return Conforming
	case r.Totals.Bootstrapping == 1:
		return Bootstrapping
	case len(r.Nonconforming) == 1:
		return r.Nonconforming[0].Standing
	}
	return ""
}

func TestImpersonationDoesNotShowThatTheNodeConforms(t *testing.T) {
	e := getSecret("db").by("ada")
	e.as, e.asGroups = "system:node:worker-2", []string{"system:nodes"}
	report := replayed(t, evaluators(t), logOf(e, renewLease("worker-2").by("WorkerNodeRole", "system:nodes")))
	if report.Nodes.Conforming != 0 || len(report.Nodes.NeverConforming) != 1 || report.Totals.Impersonated != 1 {
		t.Errorf("got %+v, %+v", report.Nodes, report.Totals)
	}
	// The evaluators still answer it as a request of the node.
	if report.WouldBeRefused[0].Identity != "system:node:worker-2" && report.WouldBeRefused[1].Identity != "system:node:worker-2" {
		t.Errorf("got %+v", report.WouldBeRefused)
	}
}

func TestNodeThatAlsoConformsIsNotNeverConforming(t *testing.T) {
	report := replayed(t, evaluators(t), logOf(
		renewLease("worker-2").by("WorkerNodeRole", "system:nodes"), renewLease("worker-2").node("worker-2"),
		renewLease("gone").node("gone"),
	))
	want := Nodes{
		Conforming: 2, NeverConforming: []NeverConforming{}, Silent: []string{"worker-1", "worker-3"}, NotInState: []string{"gone"},
	}
	if !reflect.DeepEqual(report.Nodes, want) {
		t.Errorf("got %+v, want %+v", report.Nodes, want)
	}
}

func TestRequestsOfASharedUserAreAssignedByAddress(t *testing.T) {
	from := func(source string, e entry) entry {
		e.source = source
		return e.by("WorkerNodeRole", "system:nodes")
	}
	report := replayed(t, evaluators(t), logOf(
		from("10.0.0.1", renewLease("worker-1")), from("10.0.0.2", renewLease("worker-2")),
		from("10.0.0.1", getSecret("db")), from("10.0.0.2", getSecret("db")), from("10.0.0.9", getSecret("db")),
		// Two nodes share an address: it is not known which of them sent the request.
		from("10.0.0.3", renewLease("worker-3")), from("10.0.0.3", renewLease("worker-4")), from("10.0.0.3", getSecret("other")),
	))
	nodes := map[string][]string{}
	for _, r := range report.WouldBeRefused {
		if r.Resource == "secrets" {
			nodes[r.Name] = append(nodes[r.Name], r.Node)
		}
	}
	want := map[string][]string{"db": {"", "worker-1", "worker-2"}, "other": {""}}
	if !reflect.DeepEqual(nodes, want) {
		t.Errorf("got %v, want %v", nodes, want)
	}
	if got := report.Nonconforming[0].Nodes; !reflect.DeepEqual(got, []string{"worker-1", "worker-2", "worker-3", "worker-4"}) {
		t.Errorf("the user acted for %v", got)
	}
}

func TestFailedAuthenticationHasNoUser(t *testing.T) {
	failed := entry{stage: "ResponseStarted", verb: "update", uri: "/api/v1/nodes/worker-1", code: 401, decision: "-"}
	other := failed
	other.agent = "curl/8"
	report := replayed(t, evaluators(t), logOf(failed, other))
	if report.Totals.Unauthenticated != 1 || report.Totals.Requests != 0 || len(report.Nonconforming) != 0 {
		t.Errorf("got %+v", report.Totals)
	}
}
