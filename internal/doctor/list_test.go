package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// stub is the part of an API server that List reads: objects by path, in pages.
type stub struct {
	objects map[string][]map[string]any
	// refused are paths that may not be read, by their ends.
	refused []string
	// expire is how many second pages are answered with 410.
	expire int

	mu    sync.Mutex
	asked []string
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.String())
	query := r.URL.Query()
	switch {
	case slices.ContainsFunc(s.refused, func(end string) bool { return strings.HasSuffix(r.URL.Path, end) }):
		s.status(w, http.StatusForbidden, "Forbidden")
	case r.URL.Path == "/version":
		s.reply(w, map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	case strings.HasSuffix(r.URL.Path, "/configmaps/aws-auth"):
		list := s.objects["configmaps"]
		if len(list) == 0 {
			s.status(w, http.StatusNotFound, "NotFound")
			return
		}
		s.reply(w, list[0])
	case query.Get("continue") != "" && s.expire > 0:
		s.expire--
		s.status(w, http.StatusGone, "Expired")
	default:
		s.page(w, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], query.Get("limit"), query.Get("continue"))
	}
}

func (s *stub) page(w http.ResponseWriter, resource, limit, after string) {
	items := s.objects[resource]
	from, _ := strconv.Atoi(after)
	size, err := strconv.Atoi(limit)
	if err != nil {
		s.status(w, http.StatusBadRequest, "NoLimit")
		return
	}
	end, next := from+size, ""
	if end < len(items) {
		next = strconv.Itoa(end)
	} else {
		end = len(items)
	}
	list := map[string]any{"metadata": map[string]string{"continue": next}, "items": items[from:end]}
	if resource == "iamidentitymappings" {
		list["apiVersion"], list["kind"] = groupMappings+"/v1alpha1", "IAMIdentityMappingList"
	}
	s.reply(w, list)
}

func (s *stub) status(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason,
	})
}

func (s *stub) reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (s *stub) list(t *testing.T) (*Cluster, error) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return List(context.Background(), &rest.Config{Host: server.URL}, nil)
}

// objectsOf decodes test objects.
func objectsOf(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, doc := range strings.Split(text, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatal(err)
		}
		if object != nil {
			all = append(all, object)
		}
	}
	return all
}

func newStub(t *testing.T) *stub {
	t.Helper()
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-apiserver-a, namespace: kube-system}\n" +
		"spec: {containers: [{name: a, command: [kube-apiserver, '--authorization-mode=Node,RBAC']}]}\n"
	return &stub{objects: map[string][]map[string]any{
		"configmaps": objectsOf(t, awsAuthText(roleEntry("node", "WorkerNodeRole", bootstrap, nodes))),
		"nodes":      objectsOf(t, nodeText("worker-1", "i-00000000000000001", "worker-1")),
		"pods":       objectsOf(t, pod),
		"iamidentitymappings": objectsOf(t,
			"kind: IAMIdentityMapping\nmetadata: {name: ops}\n"+
				"spec: {arn: 'arn:aws:iam::111122223333:role/Ops', username: ops, groups: [ops]}\n"),
	}}
}

func TestListReadsACluster(t *testing.T) {
	s := newStub(t)
	c, err := s.list(t)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Live || !c.RBACKnown || len(c.Missing) > 0 || c.Version.String() != "1.36" {
		t.Errorf("live %t, RBAC known %t, version %s, missing %v", c.Live, c.RBACKnown, c.Version, c.Missing)
	}
	if len(c.Nodes) != 1 || len(c.APIServers) != 1 || len(c.IdentityMappings) != 1 || c.AWSAuth == nil {
		t.Errorf("read %+v", c)
	}
	wantPlace(t, Examine(c, Options{}), NodeRoleUsername, "ConfigMap kube-system/aws-auth: data.mapRoles[0].username, line 2")
	for _, url := range s.asked {
		if strings.Contains(url, "secrets") || strings.HasPrefix(url, "/api/v1/pods") || strings.HasSuffix(url, "/configmaps") {
			t.Errorf("asked for %s, which no check needs", url)
		}
	}
}

func wantPlace(t *testing.T, r *Report, code finding.Code, place string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Code == code {
			if f.Place.String() != place {
				t.Errorf("%s is at %q, want %q", code, f.Place, place)
			}
			return
		}
	}
	t.Errorf("%s was not found in %v", code, r.Findings)
}

// TestOwnCredential: the kubeconfig in use is one of the cluster's credentials.
func TestOwnCredential(t *testing.T) {
	l := &lister{cluster: &Cluster{RBAC: rbac.NewPolicy(), Live: true}}
	l.ownCredential(&rest.Config{
		ExecProvider: &api.ExecConfig{Command: "aws", Args: []string{"eks", "get-token", "--cluster-name", "blue"}},
	})
	wantPlace(t, Examine(l.cluster, Options{ClusterID: "shop"}), ClusterIDMismatch, "kubeconfig: user.exec")
}

func TestListReadsNodesInPages(t *testing.T) {
	s := newStub(t)
	s.objects["nodes"], s.expire = nil, 1
	for i := range 2*pageSize + 1 {
		s.objects["nodes"] = append(s.objects["nodes"], map[string]any{
			"metadata": map[string]any{"name": fmt.Sprintf("worker-%04d", i)},
			"spec":     map[string]any{"providerID": fmt.Sprintf("aws:///eu-west-1a/i-%017x", i)},
		})
	}
	c, err := s.list(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Nodes) != 2*pageSize+1 || c.Nodes[0].Name != "worker-0000" || c.Nodes[2*pageSize].Name != "worker-1000" {
		t.Errorf("%d nodes, though one page had expired", len(c.Nodes))
	}
}

func TestForbiddenResourcesAreMissing(t *testing.T) {
	s := newStub(t)
	s.refused = []string{"/aws-auth", "/clusterroles", "/nodes"}
	c, err := s.list(t)
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, m := range c.Missing {
		missing = append(missing, m.Resource)
	}
	if want := []string{"configmaps", "nodes", "clusterroles.rbac.authorization.k8s.io"}; !slices.Equal(missing, want) {
		t.Errorf("missing %v, want %v", missing, want)
	}
	if c.RBACKnown {
		t.Error("RBAC is known without the cluster roles")
	}
	report := Examine(c, Options{})
	if n := len(report.Missing); n < 3 {
		t.Errorf("the report misses %v", report.Missing)
	}
	seen := map[string]int{}
	for _, m := range report.Missing {
		if seen[m.Resource]++; seen[m.Resource] > 1 {
			t.Errorf("%s is missing twice: %v", m.Resource, report.Missing)
		}
	}
}

func TestListWithoutAnyRightIsAnError(t *testing.T) {
	s := newStub(t)
	s.refused = []string{"/aws-auth", "s"}
	c, err := s.list(t)
	if err == nil || !strings.Contains(err.Error(), "nothing of cluster") {
		t.Errorf("err = %v, cluster = %+v", err, c)
	}
}

func TestListWithoutCustomResources(t *testing.T) {
	s := newStub(t)
	delete(s.objects, "configmaps")
	c, err := s.list(t)
	if err != nil || c.AWSAuth != nil {
		t.Fatalf("err = %v, aws-auth = %v", err, c.AWSAuth)
	}
	report := Examine(c, Options{})
	if !slices.ContainsFunc(report.Roles, func(r RolePrediction) bool { return r.Source == resourceMappings }) {
		t.Errorf("roles are %+v", report.Roles)
	}
}

// TestListReturnsServerErrors: a failure never leads to a report with fewer findings.
func TestListReturnsServerErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"major":"1","minor":"36","gitVersion":"v1.36.3"}`))
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	if _, err := List(context.Background(), &rest.Config{Host: server.URL}, nil); err == nil ||
		!strings.Contains(err.Error(), "configmaps") {
		t.Errorf("err = %v", err)
	}
}
