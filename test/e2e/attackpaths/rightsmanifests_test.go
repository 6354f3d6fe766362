package attackpaths

import "github.com/node-authorizer/node-authorizer/attackpaths"

// podLogs is the pod of mountedLogs.
var podLogs = holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "logs"}

// mountedLogs is a pod of the account web with the folder of logs of its node.
var mountedLogs = replaced(
	podOf("shop", "logs", web1, "web", "  - {name: host, hostPath: {path: /var/log}}"),
	"image: i,", "image: i, volumeMounts: [{name: host, mountPath: /host}],")

// someCronJob is a cron job of restricted pods.
const someCronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {namespace: shop, name: web}
spec: {schedule: 0 0 1 1 *, jobTemplate: {spec: {template: {metadata: {labels: {app: web}}, spec: {
  restartPolicy: Never, automountServiceAccountToken: false,
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}},
  containers: [{name: c, image: i, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}}}}
---`

// somePolicy is a mutating admission policy that changes nothing, with its binding.
const somePolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: some}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: nowhere}}
    resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "test", path: "/spec", value: object.spec}]'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: some}
spec: {policyName: some}
---`

// someMappings are the identity mappings of an EKS cluster.
const someMappings = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: aws-auth}
data: {mapUsers: "[]"}
---`

// mappingsKind is the kind of identity mappings of aws-iam-authenticator, and one of them.
const mappingsKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: iamidentitymappings.iamauthenticator.k8s.aws}
spec:
  group: iamauthenticator.k8s.aws
  scope: Cluster
  names: {plural: iamidentitymappings, singular: iamidentitymapping, kind: IAMIdentityMapping, listKind: IAMIdentityMappingList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
apiVersion: iamauthenticator.k8s.aws/v1alpha1
kind: IAMIdentityMapping
metadata: {name: some}
spec: {arn: "arn:aws:iam::000000000000:user/nobody", username: nobody, groups: []}
---`

// dataClaim claims the volume of a driver.
const dataClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: shop, name: data}
spec: {accessModes: [ReadWriteMany], volumeName: data, storageClassName: "", resources: {requests: {storage: 1Gi}}}
---`
