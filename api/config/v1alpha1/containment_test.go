package v1alpha1

import (
	"strings"
	"testing"
)

func TestContainmentIsDisabledByDefault(t *testing.T) {
	if c := parse(t, minimal).Containment; c.Enabled() || c.NodeScopes != Disabled || c.Quarantines != Disabled ||
		c.MaxQuarantinedNodes != "10%" {
		t.Errorf("the default is %+v", c)
	}
}

func TestEachResourceIsEnabledAlone(t *testing.T) {
	for field, want := range map[string]Containment{
		"nodeScopes":  {NodeScopes: Enabled, Quarantines: Disabled, MaxQuarantinedNodes: "10%"},
		"quarantines": {NodeScopes: Disabled, Quarantines: Enabled, MaxQuarantinedNodes: "10%"},
	} {
		if got := parse(t, minimal+"containment: {"+field+": Enabled}\n").Containment; got != want || !got.Enabled() {
			t.Errorf("%s: got %+v, want %+v", field, got, want)
		}
	}
}

// TestServersThatCanUseContainment: a scope needs questions about requests, a quarantine applies to every
// part of a server.
func TestServersThatCanUseContainment(t *testing.T) {
	const (
		webhook = "webhook: {certificateFile: c, keyFile: k, clientCAFile: ca, allowedClientNames: [kube-apiserver], serves: "
		machine = `webhook: {address: ""}` + "\n" +
			`bootstrap: {address: ":10443", certificateFile: c, keyFile: k, attestor: aws, aws: {clusterName: shop}}` + "\n"
	)
	for name, c := range map[string]struct {
		server     string
		withScopes bool
	}{
		"authorization":  {webhook + "[Authorization]}\n", true},
		"admission":      {webhook + "[Admission]}\n", true},
		"authentication": {webhook + "[Authentication]}\niam: {clusterID: shop}\n", false},
		"machines":       {machine, false},
		"the approver":   {`webhook: {address: ""}` + "\napprover: {enabled: true}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			parse(t, head+c.server+"containment: {quarantines: Enabled}\n")
			_, err := Parse([]byte(head + c.server + "containment: {nodeScopes: Enabled}\n"))
			const want = "containment.nodeScopes: Enabled has no effect"
			if c.withScopes != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLimitOfNodes(t *testing.T) {
	for _, c := range []struct {
		rule        string
		limit       NodeLimit
		nodes, want int
	}{
		{"a number", "3", 100, 3},
		{"a number, for a smaller cluster", "3", 2, 3},
		{"a share", "10%", 100, 10},
		{"a share is rounded down", "10%", 19, 1},
		{"one node at least", "10%", 9, 1},
		{"one node at least, if none is known", "10%", 0, 1},
		{"all", "100%", 7, 7},
		{"a large cluster", "100%", 1_000_000_000, 1_000_000_000},
		{"no limit is the least", "", 100, 1},
		{"nonsense is the least", "many", 100, 1},
		{"a nonsensical share is the least", "x%", 100, 1},
		{"a negative number is the least", "-3", 100, 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := c.limit.Of(c.nodes); got != c.want {
				t.Errorf("%s of %d nodes are %d, want %d", c.limit, c.nodes, got, c.want)
			}
		})
	}
}

func TestFormOfLimits(t *testing.T) {
	for value, valid := range map[string]bool{
		"1": true, "3": true, `"3"`: true, `"10%"`: true, "10%": true, "100%": true, "999999": true,
		"0": false, "-1": false, "1000000": false, "0%": false, "101%": false, `""`: false, "1.5": false, `"1.5%"`: false,
		"0x10": false, "010": false, "+3": false, "1_000": false, "true": false, "[3]": false, `" 3"`: false, "10 %": false,
	} {
		_, err := Parse([]byte(minimal + "containment: {maxQuarantinedNodes: " + value + "}\n"))
		if valid != (err == nil) || err != nil && !strings.Contains(err.Error(), "such as 10%") {
			t.Errorf("%s: got %v", value, err)
		}
	}
}
