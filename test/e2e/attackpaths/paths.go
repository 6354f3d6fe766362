package attackpaths

import (
	"slices"
	"strings"
)

// resource is a kind of object in the API.
type resource struct {
	group, version, name string
	namespaced           bool
}

var (
	pods            = resource{"", "v1", "pods", true}
	secrets         = resource{"", "v1", "secrets", true}
	serviceAccounts = resource{"", "v1", "serviceaccounts", true}
	configMaps      = resource{"", "v1", "configmaps", true}
	controllers     = resource{"", "v1", "replicationcontrollers", true}
	claims          = resource{"", "v1", "persistentvolumeclaims", true}
	volumes         = resource{"", "v1", "persistentvolumes", false}
	nodes           = resource{"", "v1", "nodes", false}
	namespaces      = resource{"", "v1", "namespaces", false}

	deployments  = resource{"apps", "v1", "deployments", true}
	daemonSets   = resource{"apps", "v1", "daemonsets", true}
	statefulSets = resource{"apps", "v1", "statefulsets", true}
	replicaSets  = resource{"apps", "v1", "replicasets", true}
	jobs         = resource{"batch", "v1", "jobs", true}
	cronJobs     = resource{"batch", "v1", "cronjobs", true}

	roles               = resource{rbacGroup, "v1", "roles", true}
	roleBindings        = resource{rbacGroup, "v1", "rolebindings", true}
	clusterRoles        = resource{rbacGroup, "v1", "clusterroles", false}
	clusterRoleBindings = resource{rbacGroup, "v1", "clusterrolebindings", false}

	signingRequests = resource{"certificates.k8s.io", "v1", "certificatesigningrequests", false}

	validatingWebhooks = resource{admissionGroup, "v1", "validatingwebhookconfigurations", false}
	mutatingWebhooks   = resource{admissionGroup, "v1", "mutatingwebhookconfigurations", false}
	policies           = resource{admissionGroup, "v1", "validatingadmissionpolicies", false}
	policyBindings     = resource{admissionGroup, "v1", "validatingadmissionpolicybindings", false}
	mutatingPolicies   = resource{admissionGroup, "v1", "mutatingadmissionpolicies", false}
	mutatingBindings   = resource{admissionGroup, "v1", "mutatingadmissionpolicybindings", false}
	apiServices        = resource{"apiregistration.k8s.io", "v1", "apiservices", false}

	customKinds      = resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions", false}
	identityMappings = resource{"iamauthenticator.k8s.aws", "v1alpha1", "iamidentitymappings", false}
)

const (
	rbacGroup      = "rbac.authorization.k8s.io"
	admissionGroup = "admissionregistration.k8s.io"
)

// workloads are the kinds whose controllers make pods.
var workloads = []resource{deployments, daemonSets, statefulSets, replicaSets, controllers, jobs, cronJobs}

// changing are the kinds that a case or a step can make or change.
var changing = slices.Concat(workloads, []resource{
	pods, secrets, serviceAccounts, configMaps, claims, volumes, nodes, namespaces, roles, roleBindings, clusterRoles,
	clusterRoleBindings, signingRequests, validatingWebhooks, mutatingWebhooks, policies, policyBindings, apiServices,
	mutatingPolicies, mutatingBindings, customKinds,
})

// in is the path of the resource in a namespace; empty is the whole cluster.
func (r resource) in(namespace string) string {
	path := "/api/" + r.version
	if r.group != "" {
		path = "/apis/" + r.group + "/" + r.version
	}
	if r.namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.name
}

// at is the path of an object, or of a subresource.
func (r resource) at(namespace, name string, subresource ...string) string {
	return strings.Join(append([]string{r.in(namespace), name}, subresource...), "/")
}

// workload finds a kind by the name of its resource.
func workload(name string) (resource, bool) {
	i := slices.IndexFunc(workloads, func(r resource) bool { return r.name == name })
	if i < 0 {
		return resource{}, false
	}
	return workloads[i], true
}

// dry makes a write change nothing.
func dry(path string) string { return path + "?dryRun=All" }
