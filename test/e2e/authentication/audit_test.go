package authentication

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// request is a request as an authorizer sees it.
type request struct {
	User, Verb, Group, Resource, Subresource, Namespace, Name, Path string
}

func (r request) compare(o request) int { return cmp.Compare(fmt.Sprint(r), fmt.Sprint(o)) }

// TestAuditNamesWhatTheNodeAuthorizerRefuses runs nodes in a cluster that RBAC alone
// authorizes, and sends requests for foreign objects as one of them. The report on the
// audit log names exactly the requests that kube-apiserver refuses once it has the Node
// authorizer and the binding is deleted.
func TestAuditNamesWhatTheNodeAuthorizerRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, pod := range []struct{ node, name, secret string }{{"worker-1", "shop", "shop-db"}, {"worker-2", "bank", "bank-db"}} {
		if err := old.Run(ctx, pod.node, pod.name, pod.secret); err != nil {
			t.Fatal(err)
		}
	}
	readAsNode(t, old.Worker)
	for _, node := range []string{"worker-1", "worker-2"} {
		renewsLease(t, node)
	}
	log, events := logNow(t)
	report := auditReport(t, log)
	t.Run("the legacy kubelet does not conform", func(t *testing.T) {
		if len(report.Nonconforming) != 1 || report.Nonconforming[0].Username != legacyUser ||
			!slices.Equal(report.Nonconforming[0].Nodes, []string{"worker-2"}) {
			t.Errorf("nonconforming are %+v", report.Nonconforming)
		}
		if never := report.Nodes.NeverConforming; len(never) != 1 || never[0].Name != "worker-2" {
			t.Errorf("nodes that never conform are %+v", never)
		}
	})
	if err := old.Client.RbacV1().ClusterRoleBindings().Delete(ctx, systemNode, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := old.AuthorizeBy(ctx, localplane.InTree); err != nil {
		t.Fatal(err)
	}
	related(t)
	t.Run("the report matches the refusals", func(t *testing.T) {
		want, got := refusedNow(t, events), map[request]bool{}
		for _, r := range report.WouldBeRefused {
			if r.By == "authorization" {
				got[request{r.Identity, r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name, r.Path}] = true
			}
		}
		for _, r := range slices.SortedFunc(maps.Keys(want), request.compare) {
			if !got[r] {
				t.Errorf("the report lacks %+v", r)
			}
		}
		for _, r := range slices.SortedFunc(maps.Keys(got), request.compare) {
			if !want[r] {
				t.Errorf("the report names %+v, which is allowed", r)
			}
		}
		users := map[string]int{}
		for r := range want {
			users[r.User]++
		}
		t.Logf("refused requests by user: %v", users)
		if users["system:node:worker-1"] < 4 || users[legacyUser] < 4 {
			t.Error("there are too few refusals")
		}
	})
}

// readAsNode sends requests with a node's credential, for objects that are related to the
// node and for others.
func readAsNode(t *testing.T, node *localplane.Node) {
	t.Helper()
	ctx := t.Context()
	config, err := node.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	core := client.CoreV1()
	for _, try := range []struct {
		what string
		do   func() error
	}{
		{"its own pod's secret", func() error {
			_, err := core.Secrets("default").Get(ctx, "shop-db", metav1.GetOptions{})
			return err
		}},
		{"another node's pod's secret", func() error {
			_, err := core.Secrets("default").Get(ctx, "bank-db", metav1.GetOptions{})
			return err
		}},
		{"all secrets", func() error { _, err := core.Secrets("").List(ctx, metav1.ListOptions{}); return err }},
		{"all pods", func() error { _, err := core.Pods("").List(ctx, metav1.ListOptions{}); return err }},
		{"its own pods", func() error {
			_, err := core.Pods("").List(ctx,
				metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name()).String()})
			return err
		}},
		{"the status of another node", func() error {
			_, err := core.Nodes().Patch(ctx, "worker-2", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
			return err
		}},
		{"another node's pod", func() error { _, err := core.Pods("default").Get(ctx, "bank", metav1.GetOptions{}); return err }},
		{"an unused config map", func() error {
			_, err := core.ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
			return err
		}},
	} {
		if err := try.do(); err != nil && !apierrors.IsForbidden(err) {
			t.Fatalf("%s: %v", try.what, err)
		}
	}
}

func renewsLease(t *testing.T, node string) {
	t.Helper()
	eventually(t, node+" renews its lease", func(ctx context.Context) error {
		lease, err := old.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		if err == nil && (lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Equal(lease.CreationTimestamp.Time)) {
			err = errors.New("it has not")
		}
		return err
	})
}

// related waits until the Node authorizer has read the pods.
func related(t *testing.T) {
	t.Helper()
	eventually(t, "the Node authorizer knows the pods", func(ctx context.Context) error {
		if allowed, err := ask(ctx, authorizationv1.SubjectAccessReviewSpec{
			User: "system:node:worker-1", Groups: []string{"system:nodes"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Resource: "secrets", Namespace: "default", Name: "shop-db",
			},
		}); err != nil || !allowed {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
}

func ask(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	review, err := old.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec},
		metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// refusedNow sends kube-apiserver a SubjectAccessReview for each request that was allowed
// in the log. Requests that differ only in their selectors are one, which is refused if
// any of them is.
func refusedNow(t *testing.T, events []auditv1.Event) map[request]bool {
	t.Helper()
	asked, refused := map[string]bool{}, map[request]bool{}
	for _, event := range events {
		if event.Stage != auditv1.StageResponseComplete && event.Stage != auditv1.StageResponseStarted ||
			event.Annotations["authorization.k8s.io/decision"] != "allow" {
			continue
		}
		key, spec := question(t, &event)
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		if asked[string(text)] {
			continue
		}
		asked[string(text)] = true
		allowed, err := ask(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if !allowed {
			refused[key] = true
		}
	}
	return refused
}

// question returns the request that kube-apiserver put to its authorizers for an event.
func question(t *testing.T, event *auditv1.Event) (request, authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	asked, err := url.Parse(event.RequestURI)
	if err != nil {
		t.Fatal(err)
	}
	spec := authorizationv1.SubjectAccessReviewSpec{User: event.User.Username, Groups: event.User.Groups}
	o := event.ObjectRef
	if o == nil {
		verb := event.Verb
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: asked.Path, Verb: verb}
		return request{User: event.User.Username, Verb: verb, Path: asked.Path}, spec
	}
	name := o.Name
	if event.Verb == "create" && o.Subresource == "" {
		// The authorizer does not get the name of a created object.
		name = ""
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: event.Verb, Group: o.APIGroup, Version: o.APIVersion, Resource: o.Resource, Subresource: o.Subresource,
		Namespace: o.Namespace, Name: name,
	}
	if selector := asked.Query().Get("fieldSelector"); selector != "" &&
		slices.Contains([]string{"list", "watch", "deletecollection"}, event.Verb) {
		spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: selector}
	}
	return request{event.User.Username, event.Verb, o.APIGroup, o.Resource, o.Subresource, o.Namespace, name, ""}, spec
}

// report has the fields of the report that the test needs.
type report struct {
	WouldBeRefused []struct {
		Identity, Verb, Group, Resource, Subresource, Namespace, Name, Path, By string
	}
	Nonconforming []struct {
		Username string
		Nodes    []string
	}
	Nodes struct {
		NeverConforming []struct{ Name string }
	}
}

// logNow returns the current log without an incomplete last line, and its events.
func logNow(t *testing.T) (path string, events []auditv1.Event) {
	t.Helper()
	text, err := os.ReadFile(old.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	path = filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return path, events
}

func auditReport(t *testing.T, log string) (r report) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, blue.Program, "audit", log, "--kubeconfig", old.AdminKubeconfig(), "-o", "json")
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if failed := new(exec.ExitError); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 1) {
		t.Fatalf("%v: %v\n%s", command, err, stderr.String())
	}
	if err := json.Unmarshal(output, &r); err != nil {
		t.Fatal(err)
	}
	return r
}
