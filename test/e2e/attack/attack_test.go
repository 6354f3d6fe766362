package attack

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

func fixture() *Fixture {
	uids := map[string]types.UID{}
	for _, name := range []string{
		"nodes/web-1", "nodes/pay-1", "pods/own", "pods/own-odd", "pods/foreign", "pods/foreign-odd", "pods/waiting", "pods/clock-web-1",
		"serviceaccounts/default", "serviceaccounts/own", "serviceaccounts/foreign", "secrets/own-secret",
	} {
		uids[name] = types.UID("uid of " + name)
	}
	return &Fixture{uids: uids}
}

func TestEveryRequestCanBeSent(t *testing.T) {
	fixture, seen := fixture(), map[string]bool{}
	for _, section := range Sections() {
		if section.Title == "" || section.About == "" || seen[section.Title] {
			t.Errorf("section %q has no title of its own, or says nothing", section.Title)
		}
		seen[section.Title] = true
		for _, request := range section.Requests {
			if request.Attack == "" || request.Method == "" || !strings.HasPrefix(request.Path, "/") {
				t.Errorf("%s: %+v is not complete", section.Title, request)
			}
			body, err := fixture.fill(request.Body)
			if err != nil {
				t.Errorf("%s: %s: %v", section.Title, request.Attack, err)
			}
			if _, err := yaml.YAMLToJSON([]byte(body)); err != nil {
				t.Errorf("%s: %s: %v in %s", section.Title, request.Attack, err, body)
			}
		}
	}
}

func TestASigningRequestHasABlockForEachPart(t *testing.T) {
	body, err := fixture().fill("CSR(system:node:a, system:node:b; system:nodes | system:node:c; system:nodes)")
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		blocks++
	}
	if blocks != 2 {
		t.Errorf("%d blocks", blocks)
	}
}

func TestAnUnknownUIDIsAnError(t *testing.T) {
	if got, err := fixture().fill("UID(pods/none)"); err == nil {
		t.Errorf("got %q", got)
	}
}

func TestReasonsComeFromTheAuditLog(t *testing.T) {
	reasons := ReasonsOf([]auditv1.Event{
		{AuditID: "a", Annotations: map[string]string{authorizationReason: "node-authorizer: NoPathToObject: no relationship found"}},
		{AuditID: "b", Annotations: map[string]string{authorizationReason: "PathToObject"}},
		{AuditID: "b", Annotations: map[string]string{admissionCode: "NotOwnPod"}},
		{AuditID: "c", Annotations: map[string]string{authorizationReason: "RBAC: allowed by a role"}},
	})
	for id, want := range map[string]string{"a": "NoPathToObject", "b": "PathToObject, NotOwnPod", "c": "RBAC", "d": ""} {
		if got := reasons[id].String(); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}

func TestMarkdownMarksWhatIsAnsweredDifferently(t *testing.T) {
	request := get("a secret", inStock("secrets/own"))
	row := Row{
		Request: request, InTree: Answer{Status: http.StatusForbidden}, Ours: Answer{Status: http.StatusOK},
		Reasons: Reasons{Authorization: "PathToObject"},
	}
	pages := Markdown([]Report{
		{Section: Section{Title: "Secrets", About: "They."}, Rows: []Row{row}},
		{Section: Section{Title: "Every verb: secrets", About: "They."}, Rows: []Row{row}},
	})
	for _, tc := range []struct{ page, want string }{
		{mainPage, "| [Secrets](#secrets) | 1 | 1 | 0 | 0 | 1 |"},
		{mainPage, "| [Every verb: secrets](every-verb.md#every-verb-secrets) | 1 | 1 | 0 | 0 | 1 |"},
		{mainPage, "| a secret | `GET secrets/own` | 403 | **200** | PathToObject |"},
		{everyVerbPage, "| a secret | `GET secrets/own` | 403 | **200** | PathToObject |"},
	} {
		if !strings.Contains(pages[tc.page], tc.want) {
			t.Errorf("no line %q in\n%s", tc.want, pages[tc.page])
		}
	}
}
