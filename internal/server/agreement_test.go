package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/internal/cli"
	"github.com/node-authorizer/node-authorizer/internal/server"
)

// sharedCluster returns the objects of the cluster for both: pod web of shop on node a, with a
// secret, a volume and a volume of a CSI driver.
func sharedCluster() map[string][]string {
	const bound = `"claimRef": {"namespace": "shop", "name": %q}`
	return map[string][]string{
		"nodes": {`{"metadata": {"name": "a", "uid": "uid-a"}}`, `{"metadata": {"name": "b", "uid": "uid-b"}}`},
		"pods": {`{"metadata": {"namespace": "shop", "name": "web", "uid": "uid-web"},
			"spec": {"nodeName": "a", "serviceAccountName": "default", "volumes": [
				{"name": "s", "secret": {"secretName": "db"}},
				{"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
				{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "vault"}}]}}]}}`},
		"serviceaccounts":        {`{"metadata": {"namespace": "shop", "name": "default", "uid": "uid-default"}}`},
		"persistentvolumeclaims": {`{"metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "pv"}}`},
		"persistentvolumes": {`{"metadata": {"name": "pv"}, "spec": {` + fmt.Sprintf(bound, "data") + `,
			"csi": {"driver": "disk.example", "volumeHandle": "1", "nodePublishSecretRef": {"namespace": "shop", "name": "disk"}}}}`},
		"csidrivers": {`{"metadata": {"name": "disk.example"}, "spec": {"tokenRequests": [{"audience": "disk"}]}}`},
		"volumeattachments": {`{"metadata": {"name": "va"},
			"spec": {"nodeName": "a", "attacher": "disk.example", "source": {"persistentVolumeName": "pv"}}}`},
		"resourceslices": {`{"metadata": {"name": "slice"}, "spec": {"nodeName": "a", "driver": "gpu.example", "pool": {"name": "a"}}}`},
		"clusterroles": {`{"metadata": {"name": "reader"},
			"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]}`},
		"clusterrolebindings": {`{"metadata": {"name": "reader"},
			"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
			"subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]}`},
		"roles": {`{"metadata": {"namespace": "shop", "name": "reader"},
			"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}`},
		"rolebindings": {`{"metadata": {"namespace": "shop", "name": "reader"},
			"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
			"subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}]}`},
	}
}

// sharedReviews returns reviews for both, by description.
func sharedReviews() map[string]string {
	reviews := map[string]string{}
	for _, user := range []string{"system:node:a", "system:node:b", "alice"} {
		groups := `["system:nodes", "system:authenticated"]`
		if user == "alice" {
			groups = `["system:authenticated"]`
		}
		for _, asked := range []string{
			"get secrets shop db", "get secrets shop disk", "get secrets shop other", "list secrets shop -",
			"get configmaps shop kube-root-ca.crt", "get configmaps shop other", "get pods shop web", "get pods shop other",
			"get persistentvolumeclaims shop data", "get persistentvolumes - pv", "get persistentvolumes - other",
			"get serviceaccounts shop default", "get serviceaccounts shop other",
			"create serviceaccounts/token shop default", "create serviceaccounts/token shop other",
			"get nodes - a", "get services shop web",
			"get volumeattachments.storage.k8s.io - va", "get volumeattachments.storage.k8s.io - other",
			"get resourceslices.resource.k8s.io - slice", "delete resourceslices.resource.k8s.io - other",
			"get resourceclaims.resource.k8s.io shop other", "get podcertificaterequests.certificates.k8s.io shop other",
		} {
			reviews[user+": "+asked] = accessReview(user, groups, strings.Fields(asked))
		}
		for _, audience := range []string{"vault", "disk", "other"} {
			for _, pod := range []string{"web", "other"} {
				review := user + ": token for " + audience + " of pod " + pod
				reviews[review] = admissionReview(user, groups, "CREATE", "serviceaccounts", "token", "default",
					`"kind": {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}`,
					fmt.Sprintf(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
						"metadata": {"namespace": "shop", "name": "default"}, "spec": {"audiences": [%q],
						"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": %q, "uid": "uid-%s"}}}`, audience, pod, pod))
			}
		}
		for _, pod := range []string{"web", "other"} {
			reviews[user+": eviction of pod "+pod] = admissionReview(user, groups, "CREATE", "pods", "eviction", pod,
				`"kind": {"group": "policy", "version": "v1", "kind": "Eviction"}`,
				fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "shop", "name": %q}}`, pod))
			reviews[user+": deletion of pod "+pod] = admissionReview(user, groups, "DELETE", "pods", "", pod,
				`"kind": {"version": "v1", "kind": "Pod"}`, "null")
		}
		reviews[user+": mirror pod"] = admissionReview(user, groups, "CREATE", "pods", "", "mirror",
			`"kind": {"version": "v1", "kind": "Pod"}`,
			`{"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "a"},
			"metadata": {"namespace": "shop", "name": "mirror", "annotations": {"kubernetes.io/config.mirror": "1"},
			"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "uid-a", "controller": true}]}}`)
	}
	return reviews
}

func accessReview(user, groups string, asked []string) string {
	resource, group, _ := strings.Cut(asked[1], ".")
	resource, subresource, _ := strings.Cut(resource, "/")
	empty := strings.NewReplacer("-", "")
	namespace, name := asked[2], asked[3]
	if namespace == "-" {
		namespace = empty.Replace(namespace)
	}
	if name == "-" {
		name = ""
	}
	return fmt.Sprintf(`{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": {"user": %q, "groups": %s, "resourceAttributes":
		{"verb": %q, "group": %q, "version": "v1", "resource": %q, "subresource": %q, "namespace": %q, "name": %q}}}`,
		user, groups, asked[0], group, resource, subresource, namespace, name)
}

func admissionReview(user, groups, operation, resource, subresource, name, kind, object string) string {
	return fmt.Sprintf(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u1", %s,
		"resource": {"version": "v1", "resource": %q}, "subResource": %q, "name": %q, "namespace": "shop", "operation": %q,
		"userInfo": {"username": %q, "groups": %s}, "object": %s, "oldObject": null}}`,
		kind, resource, subresource, name, operation, user, groups, object)
}

// outcome returns the outcome in an answer: allowed, refused, or not decided.
func outcome(t *testing.T, answer string) string {
	t.Helper()
	if strings.Contains(answer, `"AdmissionReview"`) {
		var review admissionv1.AdmissionReview
		decode(t, answer, &review)
		switch {
		case review.Response.Allowed:
			return "allowed"
		case review.Response.Result.Code >= 500:
			return "not decided"
		}
		return "refused"
	}
	var review authorizationv1.SubjectAccessReview
	decode(t, answer, &review)
	switch {
	case review.Status.Allowed:
		return "allowed"
	case review.Status.EvaluationError != "":
		return "not decided"
	}
	return "refused"
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// The webhooks of a server and the command review give the same answers about the same cluster,
// with each right to read missing in one of the runs.
func TestServerAndCommandLineAgree(t *testing.T) {
	t.Parallel()
	missing := []string{"none"}
	for resource := range sharedCluster() {
		missing = append(missing, resource)
	}
	const chain = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n" +
		"authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]\n"
	for mode, authorization := range map[string]string{"Node": "", "Chain": chain} {
		for _, resource := range missing {
			t.Run(mode+" without "+resource, func(t *testing.T) {
				t.Parallel()
				s := server.Serve(t, sharedCluster(), []string{resource}, authorization)
				var asked, documents []string
				for question, document := range sharedReviews() {
					if isAdmission(document) && strings.Contains(resource, "role") {
						continue // the server asks the API server, the command line asks RBAC
					}
					asked, documents = append(asked, question), append(documents, document)
				}
				counts := map[string]int{}
				for i, line := range commandLine(t, s, documents) {
					web := s.Review(documents[i])
					if outcome(t, web) != outcome(t, line) {
						t.Errorf("%s\nserver:       %s\ncommand line: %s", asked[i], web, line)
					}
					counts[outcome(t, web)]++
				}
				if counts["allowed"] == 0 || counts["refused"]+counts["not decided"] == 0 {
					t.Errorf("outcomes: %v", counts)
				}
			})
		}
	}
}

func isAdmission(document string) bool { return strings.Contains(document, `"AdmissionReview"`) }

// asCommandLine is set in the environment of child processes that run the command line. They are
// processes because the logger of client-go is global.
const asCommandLine = "NODE_AUTHORIZER_TEST_COMMAND_LINE"

func TestMain(m *testing.M) {
	if os.Getenv(asCommandLine) != "" {
		os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// commandLine runs the command review and returns its answer to each document.
func commandLine(t *testing.T, s *server.TestedServer, documents []string) []string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, s.API), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"node-authorizer", "review", "--kubeconfig", kubeconfig}
	if s.AuthorizationConfig != "" {
		args = append(args, "--authorization-config", s.AuthorizationConfig)
	}
	var out, errs bytes.Buffer
	command := exec.CommandContext(t.Context(), os.Args[0], args[1:]...)
	command.Env = append(os.Environ(), asCommandLine+"=1")
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(strings.Join(documents, "\n")), &out, &errs
	if err := command.Run(); command.ProcessState == nil || command.ProcessState.ExitCode() > 1 {
		t.Fatalf("%v: %v: %s", args, err, errs.String())
	}
	var answers []string
	for decoder := json.NewDecoder(&out); ; {
		var answer json.RawMessage
		err := decoder.Decode(&answer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("answer %d: %v", len(answers), err)
		}
		answers = append(answers, string(answer))
	}
	if len(answers) != len(documents) {
		t.Fatalf("%d answers to %d documents: %s", len(answers), len(documents), errs.String())
	}
	return answers
}
