package resources

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// BuiltIn returns the resources that kube-apiserver itself serves in Kubernetes
// 1.30 … 1.37, with any feature gate, in the order in which kubectl prefers them: the
// core group first, the preferred version of each group first.
//
// Source: the discovery documents published with each release
// (https://github.com/kubernetes/kubernetes/tree/v1.37.1/api/discovery).
func BuiltIn() []Resource {
	return []Resource{
		namespaced(corev1.GroupName, "v1", "bindings", "Binding"),
		clusterScoped(corev1.GroupName, "v1", "componentstatuses", "ComponentStatus", "cs"),
		namespaced(corev1.GroupName, "v1", "configmaps", "ConfigMap", "cm"),
		namespaced(corev1.GroupName, "v1", "endpoints", "Endpoints", "ep"),
		namespaced(corev1.GroupName, "v1", "events", "Event", "ev"),
		namespaced(corev1.GroupName, "v1", "limitranges", "LimitRange", "limits"),
		clusterScoped(corev1.GroupName, "v1", "namespaces", "Namespace", "ns"),
		clusterScoped(corev1.GroupName, "v1", "nodes", "Node", "no"),
		namespaced(corev1.GroupName, "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc"),
		clusterScoped(corev1.GroupName, "v1", "persistentvolumes", "PersistentVolume", "pv"),
		namespaced(corev1.GroupName, "v1", "pods", "Pod", "po"),
		namespaced(corev1.GroupName, "v1", "podtemplates", "PodTemplate"),
		namespaced(corev1.GroupName, "v1", "replicationcontrollers", "ReplicationController", "rc"),
		namespaced(corev1.GroupName, "v1", "resourcequotas", "ResourceQuota", "quota"),
		namespaced(corev1.GroupName, "v1", "secrets", "Secret"),
		namespaced(corev1.GroupName, "v1", "serviceaccounts", "ServiceAccount", "sa"),
		namespaced(corev1.GroupName, "v1", "services", "Service", "svc"),
		clusterScoped("apiregistration.k8s.io", "v1", "apiservices", "APIService"),
		namespaced("apps", "v1", "controllerrevisions", "ControllerRevision"),
		namespaced("apps", "v1", "daemonsets", "DaemonSet", "ds"),
		namespaced("apps", "v1", "deployments", "Deployment", "deploy"),
		namespaced("apps", "v1", "replicasets", "ReplicaSet", "rs"),
		namespaced("apps", "v1", "statefulsets", "StatefulSet", "sts"),
		namespaced("events.k8s.io", "v1", "events", "Event", "ev"),
		clusterScoped(authenticationv1.GroupName, "v1 v1beta1 v1alpha1", "selfsubjectreviews", "SelfSubjectReview"),
		clusterScoped(authenticationv1.GroupName, "v1", "tokenreviews", "TokenReview"),
		namespaced(authorizationv1.GroupName, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview"),
		clusterScoped(authorizationv1.GroupName, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
		clusterScoped(authorizationv1.GroupName, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
		clusterScoped(authorizationv1.GroupName, "v1", "subjectaccessreviews", "SubjectAccessReview"),
		namespaced("autoscaling", "v2 v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa"),
		namespaced("batch", "v1", "cronjobs", "CronJob", "cj"),
		namespaced("batch", "v1", "jobs", "Job"),
		clusterScoped(certificatesv1.GroupName, "v1", "certificatesigningrequests", "CertificateSigningRequest", "csr"),
		clusterScoped(certificatesv1.GroupName, "v1 v1beta1 v1alpha1", "clustertrustbundles", "ClusterTrustBundle"),
		namespaced(certificatesv1.GroupName, "v1 v1beta1 v1alpha1", "podcertificaterequests", "PodCertificateRequest"),
		clusterScoped("networking.k8s.io", "v1", "ingressclasses", "IngressClass"),
		namespaced("networking.k8s.io", "v1", "ingresses", "Ingress", "ing"),
		clusterScoped("networking.k8s.io", "v1 v1beta1 v1alpha1", "ipaddresses", "IPAddress", "ip"),
		namespaced("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", "netpol"),
		clusterScoped("networking.k8s.io", "v1 v1beta1 v1alpha1", "servicecidrs", "ServiceCIDR"),
		namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb"),
		clusterScoped(rbacv1.GroupName, "v1", "clusterrolebindings", "ClusterRoleBinding"),
		clusterScoped(rbacv1.GroupName, "v1", "clusterroles", "ClusterRole"),
		namespaced(rbacv1.GroupName, "v1", "rolebindings", "RoleBinding"),
		namespaced(rbacv1.GroupName, "v1", "roles", "Role"),
		clusterScoped(storagev1.GroupName, "v1", "csidrivers", "CSIDriver"),
		clusterScoped(storagev1.GroupName, "v1", "csinodes", "CSINode"),
		namespaced(storagev1.GroupName, "v1", "csistoragecapacities", "CSIStorageCapacity"),
		clusterScoped(storagev1.GroupName, "v1", "storageclasses", "StorageClass", "sc"),
		clusterScoped(storagev1.GroupName, "v1", "volumeattachments", "VolumeAttachment"),
		clusterScoped(storagev1.GroupName, "v1 v1beta1 v1alpha1", "volumeattributesclasses", "VolumeAttributesClass", "vac"),
		clusterScoped(admissionregistrationv1.GroupName, "v1 v1beta1 v1alpha1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
		clusterScoped(
			admissionregistrationv1.GroupName, "v1 v1beta1 v1alpha1",
			"mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding",
		),
		clusterScoped(admissionregistrationv1.GroupName, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
		clusterScoped(admissionregistrationv1.GroupName, "v1 v1beta1 v1alpha1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
		clusterScoped(
			admissionregistrationv1.GroupName, "v1 v1beta1 v1alpha1",
			"validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding",
		),
		clusterScoped(admissionregistrationv1.GroupName, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
		clusterScoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", "crd", "crds"),
		clusterScoped("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", "pc"),
		namespaced("scheduling.k8s.io", "v1beta1 v1alpha3 v1alpha2", "podgroups", "PodGroup"),
		namespaced("scheduling.k8s.io", "v1beta1 v1alpha3 v1alpha2 v1alpha1", "workloads", "Workload"),
		namespaced("scheduling.k8s.io", "v1alpha3", "compositepodgroups", "CompositePodGroup"),
		namespaced(coordinationv1.GroupName, "v1", "leases", "Lease"),
		namespaced(coordinationv1.GroupName, "v1beta1 v1alpha2 v1alpha1", "leasecandidates", "LeaseCandidate"),
		clusterScoped(nodev1.GroupName, "v1", "runtimeclasses", "RuntimeClass"),
		namespaced(discoveryv1.GroupName, "v1", "endpointslices", "EndpointSlice"),
		clusterScoped(resourcev1.GroupName, "v1 v1beta2 v1beta1 v1alpha3", "deviceclasses", "DeviceClass"),
		clusterScoped(resourcev1.GroupName, "v1 v1beta2 v1alpha3", "devicetaintrules", "DeviceTaintRule"),
		namespaced(resourcev1.GroupName, "v1 v1beta2 v1beta1 v1alpha3 v1alpha2", "resourceclaims", "ResourceClaim"),
		namespaced(resourcev1.GroupName, "v1 v1beta2 v1beta1 v1alpha3 v1alpha2", "resourceclaimtemplates", "ResourceClaimTemplate"),
		clusterScoped(resourcev1.GroupName, "v1 v1beta2 v1beta1 v1alpha3 v1alpha2", "resourceslices", "ResourceSlice"),
		clusterScoped(resourcev1.GroupName, "v1alpha3", "resourcepoolstatusrequests", "ResourcePoolStatusRequest"),
		clusterScoped("flowcontrol.apiserver.k8s.io", "v1 v1beta3", "flowschemas", "FlowSchema"),
		clusterScoped("flowcontrol.apiserver.k8s.io", "v1 v1beta3", "prioritylevelconfigurations", "PriorityLevelConfiguration"),
		clusterScoped("internal.apiserver.k8s.io", "v1alpha1", "storageversions", "StorageVersion"),
		clusterScoped("storagemigration.k8s.io", "v1 v1beta1 v1alpha1", "storageversionmigrations", "StorageVersionMigration"),
		namespaced("lifecycle.k8s.io", "v1alpha1", "evictionrequests", "EvictionRequest"),
		namespaced("lifecycle.k8s.io", "v1alpha1", "evictions", "Eviction"),
		namespaced(resourcev1.GroupName, "v1alpha3 v1alpha2", "podschedulingcontexts", "PodSchedulingContext"),
		namespaced(resourcev1.GroupName, "v1alpha2", "resourceclaimparameters", "ResourceClaimParameters"),
		clusterScoped(resourcev1.GroupName, "v1alpha2", "resourceclasses", "ResourceClass"),
		namespaced(resourcev1.GroupName, "v1alpha2", "resourceclassparameters", "ResourceClassParameters"),
	}
}

// namespaced returns a resource whose objects live in a namespace. The versions are
// separated by spaces, the preferred one first.
func namespaced(group, versions, name, kind string, shortNames ...string) Resource {
	r := clusterScoped(group, versions, name, kind, shortNames...)
	r.Namespaced = true
	return r
}

// clusterScoped returns a resource whose objects do not live in a namespace.
func clusterScoped(group, versions, name, kind string, shortNames ...string) Resource {
	return Resource{
		Group: group, Versions: strings.Fields(versions),
		Name: name, Singular: strings.ToLower(kind), Kind: kind, ShortNames: shortNames,
	}
}
