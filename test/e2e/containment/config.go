package containment

import "fmt"

// authorizationConfig returns the AuthorizationConfiguration of an API server.
func authorizationConfig(kubeconfig string) (string, error) {
	return fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: node-authorizer-containment
  webhook:
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    matchConditions:
    - expression: "request.user.startsWith('system:node:') || request.user.startsWith('system:serviceaccount:')"
    timeout: 3s
    failurePolicy: Deny
    cacheAuthorizedRequests: false
    cacheUnauthorizedRequests: false
- {type: Node, name: node}
- {type: RBAC, name: rbac}
`, kubeconfig), nil
}

func webhookConfig(url string) (string, error) {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: node-authorizer-containment}
webhooks:
- name: containment.node-authorizer.io
  admissionReviewVersions: [v1]
  clientConfig: {url: %q, caBundle: CA_BUNDLE}
  failurePolicy: Fail
  matchConditions:
  - name: users
    expression: "request.userInfo.username.startsWith('system:node:') || request.userInfo.username.startsWith('system:serviceaccount:')"
  matchPolicy: Exact
  rules:
  - {apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE, DELETE, CONNECT], resources: ["*/*"]}
  sideEffects: None
  timeoutSeconds: 3
`, url), nil
}
