package resources

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// BuiltIn lists the resources that kube-apiserver itself serves in Kubernetes
// 1.30 … 1.37, whatever their feature gates, in the order in which kubectl
// prefers them: the core group first, each group's preferred version first.
//
// Source: the discovery documents published with each release
// (https://github.com/kubernetes/kubernetes/tree/v1.37.1/api/discovery).
func BuiltIn() []Resource {
	return []Resource{
		{Versions: []string{"v1"}, Name: "bindings", Singular: "binding", Kind: "Binding", Namespaced: true},
		{Versions: []string{"v1"}, Name: "componentstatuses", Singular: "componentstatus", Kind: "ComponentStatus", ShortNames: []string{"cs"}},
		{Versions: []string{"v1"}, Name: "configmaps", Singular: "configmap", Kind: "ConfigMap", ShortNames: []string{"cm"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "endpoints", Singular: "endpoints", Kind: "Endpoints", ShortNames: []string{"ep"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "events", Singular: "event", Kind: "Event", ShortNames: []string{"ev"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "limitranges", Singular: "limitrange", Kind: "LimitRange", ShortNames: []string{"limits"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"}},
		{Versions: []string{"v1"}, Name: "nodes", Singular: "node", Kind: "Node", ShortNames: []string{"no"}},
		{Versions: []string{"v1"}, Name: "persistentvolumeclaims", Singular: "persistentvolumeclaim", Kind: "PersistentVolumeClaim", ShortNames: []string{"pvc"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "persistentvolumes", Singular: "persistentvolume", Kind: "PersistentVolume", ShortNames: []string{"pv"}},
		{Versions: []string{"v1"}, Name: "pods", Singular: "pod", Kind: "Pod", ShortNames: []string{"po"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "podtemplates", Singular: "podtemplate", Kind: "PodTemplate", Namespaced: true},
		{Versions: []string{"v1"}, Name: "replicationcontrollers", Singular: "replicationcontroller", Kind: "ReplicationController", ShortNames: []string{"rc"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "resourcequotas", Singular: "resourcequota", Kind: "ResourceQuota", ShortNames: []string{"quota"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "secrets", Singular: "secret", Kind: "Secret", Namespaced: true},
		{Versions: []string{"v1"}, Name: "serviceaccounts", Singular: "serviceaccount", Kind: "ServiceAccount", ShortNames: []string{"sa"}, Namespaced: true},
		{Versions: []string{"v1"}, Name: "services", Singular: "service", Kind: "Service", ShortNames: []string{"svc"}, Namespaced: true},
		{Group: "apiregistration.k8s.io", Versions: []string{"v1"}, Name: "apiservices", Singular: "apiservice", Kind: "APIService"},
		{Group: "apps", Versions: []string{"v1"}, Name: "controllerrevisions", Singular: "controllerrevision", Kind: "ControllerRevision", Namespaced: true},
		{Group: "apps", Versions: []string{"v1"}, Name: "daemonsets", Singular: "daemonset", Kind: "DaemonSet", ShortNames: []string{"ds"}, Namespaced: true},
		{Group: "apps", Versions: []string{"v1"}, Name: "deployments", Singular: "deployment", Kind: "Deployment", ShortNames: []string{"deploy"}, Namespaced: true},
		{Group: "apps", Versions: []string{"v1"}, Name: "replicasets", Singular: "replicaset", Kind: "ReplicaSet", ShortNames: []string{"rs"}, Namespaced: true},
		{Group: "apps", Versions: []string{"v1"}, Name: "statefulsets", Singular: "statefulset", Kind: "StatefulSet", ShortNames: []string{"sts"}, Namespaced: true},
		{Group: "events.k8s.io", Versions: []string{"v1"}, Name: "events", Singular: "event", Kind: "Event", ShortNames: []string{"ev"}, Namespaced: true},
		{Group: authenticationv1.GroupName, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "selfsubjectreviews", Singular: "selfsubjectreview", Kind: "SelfSubjectReview"},
		{Group: authenticationv1.GroupName, Versions: []string{"v1"}, Name: "tokenreviews", Singular: "tokenreview", Kind: "TokenReview"},
		{Group: authorizationv1.GroupName, Versions: []string{"v1"}, Name: "localsubjectaccessreviews", Singular: "localsubjectaccessreview", Kind: "LocalSubjectAccessReview", Namespaced: true},
		{Group: authorizationv1.GroupName, Versions: []string{"v1"}, Name: "selfsubjectaccessreviews", Singular: "selfsubjectaccessreview", Kind: "SelfSubjectAccessReview"},
		{Group: authorizationv1.GroupName, Versions: []string{"v1"}, Name: "selfsubjectrulesreviews", Singular: "selfsubjectrulesreview", Kind: "SelfSubjectRulesReview"},
		{Group: authorizationv1.GroupName, Versions: []string{"v1"}, Name: "subjectaccessreviews", Singular: "subjectaccessreview", Kind: "SubjectAccessReview"},
		{Group: "autoscaling", Versions: []string{"v2", "v1"}, Name: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler", Kind: "HorizontalPodAutoscaler", ShortNames: []string{"hpa"}, Namespaced: true},
		{Group: "batch", Versions: []string{"v1"}, Name: "cronjobs", Singular: "cronjob", Kind: "CronJob", ShortNames: []string{"cj"}, Namespaced: true},
		{Group: "batch", Versions: []string{"v1"}, Name: "jobs", Singular: "job", Kind: "Job", Namespaced: true},
		{Group: certificatesv1.GroupName, Versions: []string{"v1"}, Name: "certificatesigningrequests", Singular: "certificatesigningrequest", Kind: "CertificateSigningRequest", ShortNames: []string{"csr"}},
		{Group: certificatesv1.GroupName, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "clustertrustbundles", Singular: "clustertrustbundle", Kind: "ClusterTrustBundle"},
		{Group: certificatesv1.GroupName, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "podcertificaterequests", Singular: "podcertificaterequest", Kind: "PodCertificateRequest", Namespaced: true},
		{Group: "networking.k8s.io", Versions: []string{"v1"}, Name: "ingressclasses", Singular: "ingressclass", Kind: "IngressClass"},
		{Group: "networking.k8s.io", Versions: []string{"v1"}, Name: "ingresses", Singular: "ingress", Kind: "Ingress", ShortNames: []string{"ing"}, Namespaced: true},
		{Group: "networking.k8s.io", Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "ipaddresses", Singular: "ipaddress", Kind: "IPAddress", ShortNames: []string{"ip"}},
		{Group: "networking.k8s.io", Versions: []string{"v1"}, Name: "networkpolicies", Singular: "networkpolicy", Kind: "NetworkPolicy", ShortNames: []string{"netpol"}, Namespaced: true},
		{Group: "networking.k8s.io", Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "servicecidrs", Singular: "servicecidr", Kind: "ServiceCIDR"},
		{Group: "policy", Versions: []string{"v1"}, Name: "poddisruptionbudgets", Singular: "poddisruptionbudget", Kind: "PodDisruptionBudget", ShortNames: []string{"pdb"}, Namespaced: true},
		{Group: rbacv1.GroupName, Versions: []string{"v1"}, Name: "clusterrolebindings", Singular: "clusterrolebinding", Kind: "ClusterRoleBinding"},
		{Group: rbacv1.GroupName, Versions: []string{"v1"}, Name: "clusterroles", Singular: "clusterrole", Kind: "ClusterRole"},
		{Group: rbacv1.GroupName, Versions: []string{"v1"}, Name: "rolebindings", Singular: "rolebinding", Kind: "RoleBinding", Namespaced: true},
		{Group: rbacv1.GroupName, Versions: []string{"v1"}, Name: "roles", Singular: "role", Kind: "Role", Namespaced: true},
		{Group: storagev1.GroupName, Versions: []string{"v1"}, Name: "csidrivers", Singular: "csidriver", Kind: "CSIDriver"},
		{Group: storagev1.GroupName, Versions: []string{"v1"}, Name: "csinodes", Singular: "csinode", Kind: "CSINode"},
		{Group: storagev1.GroupName, Versions: []string{"v1"}, Name: "csistoragecapacities", Singular: "csistoragecapacity", Kind: "CSIStorageCapacity", Namespaced: true},
		{Group: storagev1.GroupName, Versions: []string{"v1"}, Name: "storageclasses", Singular: "storageclass", Kind: "StorageClass", ShortNames: []string{"sc"}},
		{Group: storagev1.GroupName, Versions: []string{"v1"}, Name: "volumeattachments", Singular: "volumeattachment", Kind: "VolumeAttachment"},
		{Group: storagev1.GroupName, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "volumeattributesclasses", Singular: "volumeattributesclass", Kind: "VolumeAttributesClass", ShortNames: []string{"vac"}},
		{Group: admissionregistrationv1.GroupName, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "mutatingadmissionpolicies", Singular: "mutatingadmissionpolicy", Kind: "MutatingAdmissionPolicy"},
		{Group: admissionregistrationv1.GroupName, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "mutatingadmissionpolicybindings", Singular: "mutatingadmissionpolicybinding", Kind: "MutatingAdmissionPolicyBinding"},
		{Group: admissionregistrationv1.GroupName, Versions: []string{"v1"}, Name: "mutatingwebhookconfigurations", Singular: "mutatingwebhookconfiguration", Kind: "MutatingWebhookConfiguration"},
		{Group: admissionregistrationv1.GroupName, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "validatingadmissionpolicies", Singular: "validatingadmissionpolicy", Kind: "ValidatingAdmissionPolicy"},
		{Group: admissionregistrationv1.GroupName, Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "validatingadmissionpolicybindings", Singular: "validatingadmissionpolicybinding", Kind: "ValidatingAdmissionPolicyBinding"},
		{Group: admissionregistrationv1.GroupName, Versions: []string{"v1"}, Name: "validatingwebhookconfigurations", Singular: "validatingwebhookconfiguration", Kind: "ValidatingWebhookConfiguration"},
		{Group: "apiextensions.k8s.io", Versions: []string{"v1"}, Name: "customresourcedefinitions", Singular: "customresourcedefinition", Kind: "CustomResourceDefinition", ShortNames: []string{"crd", "crds"}},
		{Group: "scheduling.k8s.io", Versions: []string{"v1"}, Name: "priorityclasses", Singular: "priorityclass", Kind: "PriorityClass", ShortNames: []string{"pc"}},
		{Group: "scheduling.k8s.io", Versions: []string{"v1beta1", "v1alpha3", "v1alpha2"}, Name: "podgroups", Singular: "podgroup", Kind: "PodGroup", Namespaced: true},
		{Group: "scheduling.k8s.io", Versions: []string{"v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"}, Name: "workloads", Singular: "workload", Kind: "Workload", Namespaced: true},
		{Group: "scheduling.k8s.io", Versions: []string{"v1alpha3"}, Name: "compositepodgroups", Singular: "compositepodgroup", Kind: "CompositePodGroup", Namespaced: true},
		{Group: coordinationv1.GroupName, Versions: []string{"v1"}, Name: "leases", Singular: "lease", Kind: "Lease", Namespaced: true},
		{Group: coordinationv1.GroupName, Versions: []string{"v1beta1", "v1alpha2", "v1alpha1"}, Name: "leasecandidates", Singular: "leasecandidate", Kind: "LeaseCandidate", Namespaced: true},
		{Group: nodev1.GroupName, Versions: []string{"v1"}, Name: "runtimeclasses", Singular: "runtimeclass", Kind: "RuntimeClass"},
		{Group: discoveryv1.GroupName, Versions: []string{"v1"}, Name: "endpointslices", Singular: "endpointslice", Kind: "EndpointSlice", Namespaced: true},
		{Group: resourcev1.GroupName, Versions: []string{"v1", "v1beta2", "v1beta1", "v1alpha3"}, Name: "deviceclasses", Singular: "deviceclass", Kind: "DeviceClass"},
		{Group: resourcev1.GroupName, Versions: []string{"v1", "v1beta2", "v1alpha3"}, Name: "devicetaintrules", Singular: "devicetaintrule", Kind: "DeviceTaintRule"},
		{Group: resourcev1.GroupName, Versions: []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}, Name: "resourceclaims", Singular: "resourceclaim", Kind: "ResourceClaim", Namespaced: true},
		{Group: resourcev1.GroupName, Versions: []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}, Name: "resourceclaimtemplates", Singular: "resourceclaimtemplate", Kind: "ResourceClaimTemplate", Namespaced: true},
		{Group: resourcev1.GroupName, Versions: []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"}, Name: "resourceslices", Singular: "resourceslice", Kind: "ResourceSlice"},
		{Group: resourcev1.GroupName, Versions: []string{"v1alpha3"}, Name: "resourcepoolstatusrequests", Singular: "resourcepoolstatusrequest", Kind: "ResourcePoolStatusRequest"},
		{Group: "flowcontrol.apiserver.k8s.io", Versions: []string{"v1", "v1beta3"}, Name: "flowschemas", Singular: "flowschema", Kind: "FlowSchema"},
		{Group: "flowcontrol.apiserver.k8s.io", Versions: []string{"v1", "v1beta3"}, Name: "prioritylevelconfigurations", Singular: "prioritylevelconfiguration", Kind: "PriorityLevelConfiguration"},
		{Group: "internal.apiserver.k8s.io", Versions: []string{"v1alpha1"}, Name: "storageversions", Singular: "storageversion", Kind: "StorageVersion"},
		{Group: "storagemigration.k8s.io", Versions: []string{"v1", "v1beta1", "v1alpha1"}, Name: "storageversionmigrations", Singular: "storageversionmigration", Kind: "StorageVersionMigration"},
		{Group: "lifecycle.k8s.io", Versions: []string{"v1alpha1"}, Name: "evictionrequests", Singular: "evictionrequest", Kind: "EvictionRequest", Namespaced: true},
		{Group: "lifecycle.k8s.io", Versions: []string{"v1alpha1"}, Name: "evictions", Singular: "eviction", Kind: "Eviction", Namespaced: true},
		{Group: resourcev1.GroupName, Versions: []string{"v1alpha3", "v1alpha2"}, Name: "podschedulingcontexts", Singular: "podschedulingcontext", Kind: "PodSchedulingContext", Namespaced: true},
		{Group: resourcev1.GroupName, Versions: []string{"v1alpha2"}, Name: "resourceclaimparameters", Singular: "resourceclaimparameters", Kind: "ResourceClaimParameters", Namespaced: true},
		{Group: resourcev1.GroupName, Versions: []string{"v1alpha2"}, Name: "resourceclasses", Singular: "resourceclass", Kind: "ResourceClass"},
		{Group: resourcev1.GroupName, Versions: []string{"v1alpha2"}, Name: "resourceclassparameters", Singular: "resourceclassparameters", Kind: "ResourceClassParameters", Namespaced: true},
	}
}
