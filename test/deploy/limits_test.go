package deploy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The memory of a server under hostile bodies is far below its limit, which must leave
// space for the state of a large cluster. Processor time has no limit.
func TestServersHaveALimitOfMemory(t *testing.T) {
	chart := rendered(t,
		image+"bootstrap: {enabled: true, config: {bootstrap: {attestor: alwaysallow, acceptAlwaysAllow: true}}, "+
			"certificates: {names: [join.example.com]}}")
	for name, c := range map[string]struct {
		pod  *corev1.PodSpec
		want string
	}{
		"service": {podOf(only[*appsv1.Deployment](t, built(t, "service"))), "2Gi"},
		"static pod": {
			&only[*corev1.Pod](t, mustDecode(t, filledIn.Replace(read(t, deployFolder, "static-pod/server/node-authorizer.yaml")))).Spec,
			"2Gi",
		},
		"bootstrap":       {&only[*appsv1.DaemonSet](t, built(t, "bootstrap")).Spec.Template.Spec, "512Mi"},
		"chart":           {podOf(only[*appsv1.Deployment](t, chart)), "2Gi"},
		"chart bootstrap": {&only[*appsv1.DaemonSet](t, chart).Spec.Template.Spec, "512Mi"},
	} {
		limits := c.pod.Containers[0].Resources.Limits
		if want := (corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(c.want)}); !reflect.DeepEqual(limits, want) {
			t.Errorf("%s: limits are %v, want %v", name, limits, want)
		}
		// The server reads the limit of its cgroup, and uses a part of it.
		if slices.ContainsFunc(c.pod.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" }) {
			t.Errorf("%s: GOMEMLIMIT hides the limit from the server", name)
		}
	}
}

func TestNetworkPolicies(t *testing.T) {
	shipped := only[*networkingv1.NetworkPolicy](t,
		mustDecode(t, filledIn.Replace(read(t, deployFolder, "service/networkpolicy/networkpolicy.yaml"))))
	chart := rendered(t, image+"networkPolicy: {enabled: true, apiServers: [10.0.0.0/24]}")
	ofChart := only[*networkingv1.NetworkPolicy](t, chart)
	if !reflect.DeepEqual(shipped.Spec.Ingress, ofChart.Spec.Ingress) ||
		!reflect.DeepEqual(shipped.Spec.PolicyTypes, ofChart.Spec.PolicyTypes) {
		t.Errorf("they differ:\n%+v\n%+v", shipped.Spec, ofChart.Spec)
	}
	for name, c := range map[string]struct {
		policy *networkingv1.NetworkPolicy
		server *appsv1.Deployment
	}{
		"service": {shipped, only[*appsv1.Deployment](t, built(t, "service"))},
		"chart":   {ofChart, only[*appsv1.Deployment](t, chart)},
	} {
		selector, err := metav1.LabelSelectorAsSelector(&c.policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		pod := &c.server.Spec.Template
		if !selector.Matches(labels.Set(pod.Labels)) || c.policy.Namespace != c.server.Namespace {
			t.Errorf("%s: it does not select the server", name)
		}
		if pod.Spec.HostNetwork {
			t.Errorf("%s: no policy holds in the network of the node", name)
		}
		var ports []string
		for _, rule := range c.policy.Spec.Ingress {
			if len(rule.From) == 0 {
				t.Errorf("%s: a rule allows all sources", name)
			}
			for _, port := range rule.Ports {
				ports = append(ports, port.Port.String())
			}
		}
		var served []string
		for _, port := range pod.Spec.Containers[0].Ports {
			served = append(served, port.Name)
		}
		if !slices.Equal(ports, served) {
			t.Errorf("%s: ports %v, the server has %v", name, ports, served)
		}
	}
}

// A placeholder that is not replaced must not install a policy without API servers.
func TestNetworkPoliciesNameAPIServers(t *testing.T) {
	if _, err := render(image + "networkPolicy: {enabled: true}"); err == nil ||
		!strings.Contains(err.Error(), "networkPolicy.apiServers is empty") {
		t.Errorf("got %v", err)
	}
	if _, err := render(image + "networkPolicy: {enabled: true, apiServers: [everybody]}"); err == nil {
		t.Error("an invalid address is accepted")
	}
}
