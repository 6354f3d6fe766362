package authentication

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	prediction "github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

// The node for which the doctor predicts, and the users with random roles. No other test
// uses them.
const (
	predictedNode = "ip-10-9-9-9.eu-west-1.compute.internal"
	boundUser     = "prediction-kubelet"
	boundPod      = "system:serviceaccount:prediction:kubelet"
)

// TestPredictionsAgreeWithTheAPIServer maps roles at random, binds some of them to random
// roles of RBAC, and sends the requests of a kubelet to kube-apiserver.
func TestPredictionsAgreeWithTheAPIServer(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 37))
	config := rest.CopyConfig(blue.AdminConfig())
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	bindAtRandom(t, client, random)
	cluster, err := prediction.List(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Nodes = []prediction.Node{{
		Name: predictedNode, ProviderID: "aws:///eu-west-1a/i-0123456789abcdef9", Ready: corev1.ConditionTrue,
	}}
	cluster.Requests = nil
	text := mapAtRandom(random, 150)
	cluster.AWSAuth = &prediction.ConfigMap{
		Place: finding.Place{Object: "ConfigMap kube-system/aws-auth"}, Data: map[string]string{"mapRoles": text},
	}
	seen := map[prediction.Value]int{}
	for _, role := range prediction.Examine(cluster, prediction.Options{Region: Region}).Roles {
		if role.User == "" {
			continue
		}
		seen[role.Registers.Value]++
		said := mayOf(t, client, role)
		for what, is := range map[string]struct {
			predicted prediction.Outcome
			allowed   bool
		}{
			"registers": {role.Registers, said.registers},
			"Ready":     {role.Ready, said.registers && said.ready},
			"serving":   {role.Serving, said.requests && role.User == "system:node:"+role.Node},
		} {
			if want := map[bool]prediction.Value{true: prediction.Yes, false: prediction.No}[is.allowed]; is.predicted.Value != want {
				t.Errorf("%s as %s in %q: the doctor predicts %+v, kube-apiserver says %s", what, role.User, role.Groups, is.predicted,
					want)
			}
		}
	}
	if seen[prediction.Yes] < 20 || seen[prediction.No] < 20 {
		t.Errorf("of the roles %d register and %d do not: too few of one kind to compare", seen[prediction.Yes], seen[prediction.No])
	}
}

// said has the answers of kube-apiserver: whether a kubelet may register, become Ready and request certificates.
type said struct{ registers, ready, requests bool }

func mayOf(t *testing.T, client kubernetes.Interface, role prediction.RolePrediction) said {
	t.Helper()
	may := func(verb, group, resource, subresource, namespace, name string) bool {
		t.Helper()
		groups := []string{"system:authenticated"}
		for _, g := range role.Groups {
			groups = append(groups, strings.ReplaceAll(g, "{{AccountID}}", fakeaws.DefaultAccount))
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: role.User, Groups: groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Group: group, Version: "v1", Resource: resource, Subresource: subresource, Namespace: namespace, Name: name,
			},
		}}
		answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Allowed
	}
	const leases, coordination = "leases", "coordination.k8s.io"
	another := slices.Contains(role.Groups, "system:nodes") && strings.HasPrefix(role.User, "system:node:") &&
		role.User != "system:node:"+role.Node
	return said{
		// NodeRestriction runs after authorization, and does not let a node create another node.
		registers: may("create", "", "nodes", "", "", "") && !another,
		ready: may("patch", "", "nodes", "status", "", role.Node) &&
			may("create", coordination, leases, "", corev1.NamespaceNodeLease, "") &&
			may("update", coordination, leases, "", corev1.NamespaceNodeLease, role.Node),
		requests: may("create", "certificates.k8s.io", "certificatesigningrequests", "", "", ""),
	}
}

// mapAtRandom returns the text of mapRoles.
func mapAtRandom(random *rand.Rand, roles int) string {
	usernames := []string{
		"WorkerNodeRole", "system:node:{{EC2PrivateDNSName}}", "system:node:{{EC2PrivateDNSName}}", "system:node:{{SessionName}}",
		"system:node:fixed", "system:node:", "{{EC2PrivateDNSName}}", boundUser, boundPod, "system:bootstrap:abcdef",
		"system:kube-controller-manager",
	}
	groups := []string{
		"system:nodes", "system:nodes", "system:bootstrappers", "system:masters", "system:authenticated", "system:node-proxier",
		"system:serviceaccounts:prediction", "prediction:{{AccountID}}", boundGroup(0), boundGroup(1), boundGroup(2), boundGroup(3),
	}
	var text strings.Builder
	for i := range roles {
		var in []string
		for range random.IntN(4) {
			in = append(in, fmt.Sprintf("%q", groups[random.IntN(len(groups))]))
		}
		fmt.Fprintf(&text, "- rolearn: arn:aws:iam::%s:role/node-%d\n  username: %q\n  groups: [%s]\n",
			fakeaws.DefaultAccount, i, usernames[random.IntN(len(usernames))], strings.Join(in, ", "))
	}
	return text.String()
}

func boundGroup(i int) string { return fmt.Sprintf("prediction:%d", i) }

// bindAtRandom creates and binds roles with random rules.
func bindAtRandom(t *testing.T, client kubernetes.Interface, random *rand.Rand) {
	t.Helper()
	subjects := []rbacv1.Subject{
		{Kind: "User", APIGroup: rbacv1.GroupName, Name: boundUser},
		{Kind: "ServiceAccount", Namespace: "prediction", Name: "kubelet"},
		{Kind: "User", APIGroup: rbacv1.GroupName, Name: "system:node:" + predictedNode},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:prediction"},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "prediction:" + fakeaws.DefaultAccount},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: boundGroup(0)},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: boundGroup(1)},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: boundGroup(2)},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: boundGroup(3)},
	}
	ctx, rbac := t.Context(), client.RbacV1()
	for i, subject := range slices.Concat(subjects, subjects) {
		name := fmt.Sprintf("prediction-%d", i)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rulesAtRandom(random)}
		if _, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		var err error
		if random.IntN(3) == 0 {
			_, err = rbac.RoleBindings(corev1.NamespaceNodeLease).Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: role.ObjectMeta, RoleRef: ref, Subjects: []rbacv1.Subject{subject},
			}, metav1.CreateOptions{})
		} else {
			_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: role.ObjectMeta, RoleRef: ref, Subjects: []rbacv1.Subject{subject},
			}, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unbind(t, client, name) })
	}
}

func unbind(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_ = client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
	_ = client.RbacV1().RoleBindings(corev1.NamespaceNodeLease).Delete(ctx, name, metav1.DeleteOptions{})
	if err := client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func rulesAtRandom(random *rand.Rand) []rbacv1.PolicyRule {
	some := func(of ...string) []string {
		var list []string
		for _, one := range of {
			if random.IntN(2) == 0 {
				list = append(list, one)
			}
		}
		if len(list) == 0 {
			list = of[random.IntN(len(of)):][:1]
		}
		return list
	}
	var rules []rbacv1.PolicyRule
	for range 1 + random.IntN(5) {
		rule := rbacv1.PolicyRule{
			Verbs:     some("create", "patch", "update", "get"),
			APIGroups: some("", "coordination.k8s.io", "certificates.k8s.io"),
			Resources: some("nodes", "nodes/status", "leases", "certificatesigningrequests"),
		}
		switch random.IntN(6) {
		case 0:
			rule.Verbs = []string{"*"}
		case 1:
			rule.Resources = []string{"*"}
		case 2:
			rule.Resources = []string{"*/status", "nodes", "leases/*"}
		case 3:
			rule.APIGroups = []string{"*"}
		case 4:
			rule.ResourceNames = []string{predictedNode, "another"}
		}
		rules = append(rules, rule)
	}
	return rules
}
