package doctor

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/node-authorizer/node-authorizer/finding"
)

// groupWindowsProxy is the EKS group with the rights of kube-proxy on Windows, where kube-proxy uses the
// credential of the node and not a service account.
//
// Source: https://docs.aws.amazon.com/eks/latest/userguide/windows-support.html
const groupWindowsProxy = "eks:kube-proxy-windows"

// windows checks the roles of Windows nodes.
func (e *examination) windows(f *rolePredictor) {
	var there []string
	for _, s := range f.nodes {
		if s.windows && s.kind == ForNodes {
			there = append(there, s.name)
		}
	}
	var candidates []*roleCheck
	served := false
	for i := range e.report.Roles {
		r := &roleCheck{examination: e, predicted: &e.report.Roles[i]}
		if r.predicted.Purpose != ForNodes || r.predicted.User == "" {
			continue
		}
		enough := slices.Contains(r.predicted.Groups, groupWindowsProxy) || f.readsSlices(r.predicted)
		served = served || enough
		users := f.users[strings.ToLower(r.predicted.ARN)]
		using := slices.DeleteFunc(slices.Clone(there), func(node string) bool { return !users[node] })
		switch {
		case enough:
		case len(using) > 0:
			r.withoutWindowsProxy(finding.Error, "Windows nodes use the role: "+some(using))
		case strings.Contains(strings.ToLower(roleName(r.predicted.ARN)), "windows"):
			r.withoutWindowsProxy(finding.Warning, "the role is called like one of Windows nodes")
		case len(users) == 0:
			candidates = append(candidates, r)
		}
	}
	if len(there) == 0 || served {
		return
	}
	for _, r := range candidates {
		r.withoutWindowsProxy(finding.Warning, "there are Windows nodes, and no role has the group: "+some(there))
	}
}

func (r *roleCheck) withoutWindowsProxy(severity finding.Severity, why string) {
	remedy := fmt.Sprintf("if Windows nodes use the role, write the groups %s, and %s", nodeGroups, groupWindowsProxy)
	if r.predicted.Source == accessEntrySourceName {
		remedy = "if Windows nodes use the role, replace its access entry by one of type EC2_WINDOWS"
	}
	r.say(WindowsWithoutKubeProxy, severity, "groups",
		fmt.Sprintf("the group %s is missing, and %s", groupWindowsProxy, why),
		"kube-proxy on Windows nodes has the credential of the node and may not read endpoint slices: "+
			"names of services are not resolved in pods, and services are not reached",
		remedy)
}

// readsSlices reports whether other bindings let a role's nodes read what kube-proxy needs, if all
// roles and bindings are known.
func (f *rolePredictor) readsSlices(prediction *RolePrediction) bool {
	if !f.cluster.RBACKnown {
		return prediction.ClusterAdmin
	}
	k := kubelet{user: prediction.User, groups: append(slices.Clone(prediction.Groups), groupAuthenticated), node: prediction.Node}
	for _, verb := range []string{"list", "watch"} {
		if ok, _ := f.may(k, kubeletRequest{verb: verb, group: discoveryv1.GroupName, resource: "endpointslices"}); !ok {
			return false
		}
	}
	return true
}
