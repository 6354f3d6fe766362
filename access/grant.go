package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Grant returns the role and the binding that let the user by RBAC do what is requested and
// nothing else: one verb, on one object if the request names one, in one namespace if it has
// one. Roles cannot limit a create or a deletecollection to names, because an API server does
// not know the name when it authorizes them. Requests for the same get the same objects, and
// other requests get others.
func (req *Request) Grant() []verdict.Change {
	meta := metav1.ObjectMeta{Name: req.grantName()}
	role, binding := "ClusterRole", "ClusterRoleBinding"
	if req.ResourceRequest && req.Namespace != "" {
		role, binding, meta.Namespace = "Role", "RoleBinding", req.Namespace
	}
	rules := []rbacv1.PolicyRule{req.rule()}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role, Name: meta.Name}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: req.User}}
	if meta.Namespace == "" {
		return []verdict.Change{
			created(meta, &rbacv1.ClusterRole{TypeMeta: typeOf(role), ObjectMeta: meta, Rules: rules}, role),
			created(meta, &rbacv1.ClusterRoleBinding{
				TypeMeta: typeOf(binding), ObjectMeta: meta, RoleRef: ref, Subjects: subjects,
			}, binding),
		}
	}
	return []verdict.Change{
		created(meta, &rbacv1.Role{TypeMeta: typeOf(role), ObjectMeta: meta, Rules: rules}, role),
		created(meta, &rbacv1.RoleBinding{TypeMeta: typeOf(binding), ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, binding),
	}
}

func (req *Request) rule() rbacv1.PolicyRule {
	if !req.ResourceRequest {
		return rbacv1.PolicyRule{Verbs: []string{req.Verb}, NonResourceURLs: []string{req.Path}}
	}
	rule := rbacv1.PolicyRule{Verbs: []string{req.Verb}, APIGroups: []string{req.Group}, Resources: []string{req.Resource}}
	if req.Subresource != "" {
		rule.Resources[0] += "/" + req.Subresource
	}
	nameless := req.Verb == "deletecollection" || req.Verb == "create" && req.Subresource == ""
	if req.Name != "" && !nameless {
		rule.ResourceNames = []string{req.Name}
	}
	return rule
}

// grantName names the request for people, as far as names of roles allow, and has a hash of it.
func (req *Request) grantName() string {
	of := []string{req.User, req.Verb, req.Path}
	if req.ResourceRequest {
		of = []string{req.User, req.Verb, req.Group, req.Resource, req.Subresource, req.Namespace, req.Name}
	}
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	var words []string
	for _, text := range []string{strings.TrimPrefix(of[0], "system:"), req.Verb, req.Resource, req.Subresource, req.Name} {
		if text != "" {
			words = append(words, text)
		}
	}
	const longest = 100
	name := strings.Map(inName, strings.Join(words, ":"))
	return name[:min(longest, len(name))] + ":" + hex.EncodeToString(sum[:4])
}

// inName replaces characters that have a meaning in paths, shells or terminals.
func inName(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == ':', r == '-', r == '_':
		return r
	}
	return '-'
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func created(meta metav1.ObjectMeta, object any, kind string) verdict.Change {
	value, err := json.Marshal(object)
	if err != nil {
		panic("access: a role cannot be encoded: " + err.Error()) // it consists of strings
	}
	return verdict.Change{
		Of: verdict.OfObject, Op: verdict.Add, APIVersion: rbacv1.SchemeGroupVersion.String(),
		Object: verdict.Object{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}, Value: value,
	}
}
