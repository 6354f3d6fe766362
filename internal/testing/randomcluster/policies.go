package randomcluster

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// randomExpressions are the conditions of policies.
var randomExpressions = []string{
	"false", "true", "request.operation != 'CREATE'", "request.userInfo.username == 'alice'", "request.namespace != 'a'",
	"namespaceObject.metadata.labels.env != 'prod'", "object.missing.field == 1",
	"request.kind.kind != 'Pod' || !has(object.spec.containers) || object.spec.containers.all(c, !has(c.securityContext.privileged))",
	"request.kind.kind != 'Pod' || object.spec.serviceAccountName != 'x'",
	"request.kind.kind != 'Pod' || !has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.secret) && !has(v.hostPath))",
	"request.kind.kind != 'Pod' || !has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.persistentVolumeClaim))",
	"request.kind.kind != 'Pod' || object.spec.containers.all(c, has(c.securityContext.runAsNonRoot) && c.securityContext.runAsNonRoot)",
	"!has(object.spec.nodeName) && !has(object.spec.template.spec.nodeName)",
	"!has(object.spec.template) || object.spec.template.spec.serviceAccountName == 'y'",
	"!has(object.spec.ephemeralContainers) || object.spec.ephemeralContainers.all(c, !has(c.securityContext.privileged))",
	"!has(object.roleRef) || object.roleRef.name in ['r1', 'r2']", "!has(object.rules) || object.rules.size() < 2",
	"request.kind.kind != 'Namespace' || 'pod-security.kubernetes.io/enforce' in object.metadata.labels",
	"!has(object.type) || object.type != 'kubernetes.io/service-account-token'", "object.metadata.labels.team != ''",
}

// addPolicies adds admission policies with bindings.
func (rc *Cluster) addPolicies() {
	for i := range 1 + rc.IntN(2) {
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("policy", i)}}
		p.Spec.MatchConstraints = rc.matchResources()
		rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: rc.webhooks().Webhooks[0].Rules[0]}
		if rc.chance(2) {
			rule.Operations, rule.Resources, rule.Scope = []admissionv1.OperationType{"CREATE"}, []string{"pods"}, nil
		}
		p.Spec.MatchConstraints.ResourceRules = []admissionv1.NamedRuleWithOperations{rule}
		p.Spec.Validations = []admissionv1.Validation{{Expression: pick(rc, randomExpressions)}}
		if rc.chance(4) {
			p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "c", Expression: pick(rc, randomExpressions)}}
		}
		if rc.chance(3) {
			ignore := admissionv1.Ignore
			p.Spec.FailurePolicy = &ignore
		}
		b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("binding", i)}}
		b.Spec.PolicyName, b.Spec.ValidationActions = p.Name, []admissionv1.ValidationAction{admissionv1.Deny}
		if rc.chance(4) {
			b.Spec.MatchResources = rc.matchResources()
		}
		if rc.chance(10) {
			b.Spec.ParamRef = &admissionv1.ParamRef{Name: "x"}
		}
		rc.add(p)
		rc.add(b)
	}
}

func (rc *Cluster) matchResources() *admissionv1.MatchResources {
	m := &admissionv1.MatchResources{}
	if rc.chance(4) {
		m.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	}
	if rc.chance(6) {
		m.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	return m
}
