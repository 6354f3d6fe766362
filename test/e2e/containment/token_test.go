package containment

import (
	"reflect"
	"strings"
	"testing"
)

// The API server itself says in the extra values of a token to which pod and node it is bound.
func TestTokensNameTheirNode(t *testing.T) {
	const account = "extra"
	for _, node := range []string{nodeA, nodeB} {
		c := agentOf(t, "kube-system", account, node)
		var review struct {
			Status struct {
				UserInfo struct {
					Username string
					Extra    map[string][]string
				}
			}
		}
		must(t, c.must(t.Context(), post("/apis/authentication.k8s.io/v1/selfsubjectreviews", object{}), &review))
		user := review.Status.UserInfo
		if user.Username != "system:serviceaccount:kube-system:"+account {
			t.Errorf("the user is %s", user.Username)
		}
		const prefix = "authentication.kubernetes.io/"
		want := map[string][]string{
			prefix + "node-name": {node}, prefix + "node-uid": {uidOf(t, "/api/v1/nodes/"+node)},
			prefix + "pod-name": {agentPod(account, node)},
			prefix + "pod-uid":  {uidOf(t, podsPath("kube-system")+"/"+agentPod(account, node))},
		}
		id := user.Extra[prefix+"credential-id"]
		if len(id) != 1 || !strings.HasPrefix(id[0], "JTI=") {
			t.Errorf("the id of the credential is %v", id)
		}
		want[prefix+"credential-id"] = id
		if !reflect.DeepEqual(user.Extra, want) {
			t.Errorf("the extra values are %v, want %v", user.Extra, want)
		}
	}
}

func uidOf(t *testing.T, path string) string {
	t.Helper()
	var o struct{ Metadata struct{ UID string } }
	must(t, plane.admin.must(t.Context(), get(path), &o))
	return o.Metadata.UID
}
