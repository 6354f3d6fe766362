package learn_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/learn"
)

const (
	account = "system:serviceaccount:kube-system:agent"
	onNode  = `"extra":{"authentication.kubernetes.io/node-name":["a"],"authentication.kubernetes.io/pod-name":["agent-1"]}`
)

func event(fields string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","requestURI":"/x",` + fields + "}\n"
}

// read reads events, and returns only requests of the account.
func read(t *testing.T, events ...string) (requests []learn.Request, pods []learn.PodOnNode) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(strings.Join(events, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &learn.Log{
		Concerns: func(namespace, name string) bool { return namespace == "kube-system" && name == "agent" },
		Request:  func(r *learn.Request) { requests = append(requests, *r) },
		Pod:      func(p learn.PodOnNode) { pods = append(pods, p) },
	}
	if _, err := log.Read(t.Context(), []auditlog.File{{Path: file}}, auditlog.Options{}); err != nil {
		t.Fatal(err)
	}
	return requests, pods
}

func TestRequestsOfAccounts(t *testing.T) {
	user := func(name, extra string) string {
		if extra != "" {
			extra = "," + extra
		}
		return fmt.Sprintf(`"verb":"get","user":{"username":%q%s}`, name, extra)
	}
	for _, tc := range []struct {
		rule, event string
		want        string // node, impersonated user, refused; empty for an event that is not wanted
	}{
		{"a token of a pod", user(account, onNode), "a  false"},
		{"a token without a node", user(account, ""), "  false"},
		{"two nodes", user(account, `"extra":{"authentication.kubernetes.io/node-name":["a","b"]}`), "  false"},
		{"another account", user(account+"2", onNode), ""},
		{"a node", user("system:node:a", ""), ""},
		{
			"refused", user(account, onNode) + `,"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}`,
			"a  true",
		},
		{"refused, without annotations", user(account, onNode) + `,"responseStatus":{"code":403}`, "a  true"},
		{"refused by admission", user(account, onNode) +
			`,"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"allow"}`, "a  false"},
		{"as another user", user(account, onNode) + `,"impersonatedUser":{"username":"ada"}`, "a ada false"},
		{"impersonated", user("ada", "") + fmt.Sprintf(`,"impersonatedUser":{"username":%q,%s}`, account, onNode), "a  false"},
		{"impersonated without a node", user("ada", onNode) + fmt.Sprintf(`,"impersonatedUser":{"username":%q}`, account), "  false"},
	} {
		requests, _ := read(t, event(tc.event))
		got := ""
		for _, r := range requests {
			got += fmt.Sprint(r.Node, " ", r.Impersonates, " ", r.Refused)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.rule, got, tc.want)
		}
	}
}

func TestRequestsThatWereNotAnswered(t *testing.T) {
	received := strings.Replace(event(`"verb":"get","user":{"username":"`+account+`"}`), "ResponseComplete", "RequestReceived", 1)
	if requests, _ := read(t, received); len(requests) > 0 {
		t.Errorf("got %+v", requests)
	}
}

func TestPodsOnNodes(t *testing.T) {
	pod := func(verb, user, sub, more string) string {
		return event(fmt.Sprintf(`"verb":%q,"user":{%s},"objectRef":{"resource":"pods","namespace":"shop","name":"web","subresource":%q}%s`,
			verb, user, sub, more))
	}
	node, scheduler := `"username":"system:node:a","groups":["system:nodes"]`, `"username":"system:kube-scheduler"`
	web := []learn.PodOnNode{{Namespace: "shop", Name: "web", Node: "a"}}
	for _, tc := range []struct {
		rule, event string
		want        []learn.PodOnNode
	}{
		{"a node wrote its status", pod("patch", node, "status", ""), web},
		{"a node tried to", pod("patch", node, "status", `,"responseStatus":{"code":403}`), nil},
		{"a node read it", pod("get", node, "status", ""), nil},
		{"a user outside system:nodes", pod("patch", `"username":"system:node:a"`, "status", ""), nil},
		{"somebody as a node", pod("patch", `"username":"ada"`, "status", `,"impersonatedUser":{`+node+`}`), nil},
		{"bound", pod("create", scheduler, "binding", `,"requestObject":{"target":{"kind":"Node","name":"a"}}`), web},
		{"bound, without the object", pod("create", scheduler, "binding", ""), nil},
		{
			"the pod of a token", event(`"verb":"get","user":{"username":"` + account + `",` + onNode + `}`),
			[]learn.PodOnNode{{Namespace: "kube-system", Name: "agent-1", Node: "a"}},
		},
	} {
		if _, pods := read(t, tc.event); !slices.Equal(pods, tc.want) {
			t.Errorf("%s: %v, want %v", tc.rule, pods, tc.want)
		}
	}
}
