package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/audit/replay"
	"github.com/node-authorizer/node-authorizer/internal/cli/attest"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/cli/contain"
	"github.com/node-authorizer/node-authorizer/internal/cli/paths"
	"github.com/node-authorizer/node-authorizer/internal/cli/query"
	"github.com/node-authorizer/node-authorizer/internal/cli/setup"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/learn"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/internal/testing/typeschema"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	modulePath    = "github.com/node-authorizer/node-authorizer"
	schemasFolder = "../../docs/reference/schemas/v1alpha1"
	schemasURL    = "https://raw.githubusercontent.com/node-authorizer/node-authorizer/main/docs/reference/schemas/v1alpha1/"
)

// documented is a document with the commands that write it.
type documented struct {
	result   render.Document
	commands []string
	says     string
}

// documents are all documents. A command that has -o json is in the row of each document that it writes.
func documents() []documented {
	return []documented{
		{query.CanIResult{}, []string{"can-i"}, "Whether a user may do something, with the reason."},
		{query.CanIList{}, []string{"can-i"}, "What a user may do, as rules."},
		{
			query.ExplainResult{},
			[]string{"explain"},
			"Why a user may do something or not: the answer of each authorizer and of NodeRestriction.",
		},
		{query.CodeResult{}, []string{"explain-code"}, "What a code means, and what to do about it."},
		{query.ReachResult{}, []string{"reach"}, "What a node's credential can read, write and request tokens for."},
		{
			render.Clusters{},
			[]string{"attack-paths", "can-i", "doctor", "reach", "who-can"},
			"The answers of several clusters to one command line, each with the document for the cluster alone.",
		},
		{command.NoAnswer{}, []string{"attack-paths", "doctor", "reach"}, "Why an answer of --watch could not be had."},
		{query.WhoCanResult{}, []string{"who-can"}, "The nodes that may do something."},
		{paths.AttackPathsResult{}, []string{"attack-paths"}, "What the holder of one node or credential can come to own."},
		{paths.AttackPathsResults{}, []string{"attack-paths"}, "What the holders of several nodes or credentials can come to own."},
		{paths.AttackPathsClasses{}, []string{"attack-paths"}, "Which nodes lead to cluster-admin, for all nodes of a cluster."},
		{
			&paths.AttackPathsTrend{},
			[]string{"attack-paths"},
			"What nodes and credentials reach now and did not in an earlier document, and the reverse.",
		},
		{&paths.DiffResult{}, []string{"diff"}, "What nodes and service accounts reach in one state of a cluster and not in another."},
		{&doctor.Report{}, []string{"doctor"}, "What the doctor found, and which checks could be made."},
		{&doctor.Plan{}, []string{"doctor"}, "The steps by which a cluster moves to Node authorization, with their status."},
		{
			&replay.Report{},
			[]string{"audit", "audit merge"},
			"Which requests of an audit log would be refused, and which kubelets do not conform.",
		},
		{&learn.Suggestion{}, []string{"scope suggest"}, "A NodeScope for a service account, with the evidence for each rule."},
		{&learn.Report{}, []string{"scope check"}, "Which requests of an audit log NodeScopes would have refused."},
		{
			&generate.Policies{},
			[]string{"scope admission-policy"},
			"ValidatingAdmissionPolicies that enforce NodeScopes, and what they do not enforce.",
		},
		{contain.ApprovalResult{}, []string{"approve"}, "The machine that was approved, and the machines that wait for approval."},
		{contain.RevokeResult{}, []string{"revoke"}, "Which machines of a node were revoked, and what remains valid."},
		{contain.QuarantineResult{}, []string{"quarantine"}, "What was quarantined, whether that has an effect, and what to do next."},
		{contain.QuarantinesResult{}, []string{"quarantine list"}, "The quarantines of a cluster."},
		{contain.ReleaseResult{}, []string{"release"}, "Which quarantines were ended."},
		{setup.VerifyResult{}, []string{"setup verify"}, "Whether the server of a control plane node works as its mode says."},
		{&attest.Result{}, []string{"attest test-provider"}, "How the program of a provider decides about changed and broken requests."},
		{command.VersionResult{}, []string{"version"}, "The version of the program."},
	}
}

// writeGolden writes or compares a file that a test makes.
func writeGolden(t *testing.T, file string, made []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, made) {
		t.Errorf("%s is not what the program says (%v): write it with UPDATE_GOLDEN=1 go test ./internal/cli -run %s", file, err, t.Name())
	}
}

func generator(t *testing.T) *typeschema.Generator {
	t.Helper()
	comments, err := typeschema.Read(repository, modulePath)
	if err != nil {
		t.Fatal(err)
	}
	return &typeschema.Generator{
		Source: comments,
		Enums: map[reflect.Type][]string{
			reflect.TypeFor[verdict.Decision]():      {"Allow", "Deny", "NoOpinion"},
			reflect.TypeFor[attackpaths.Certainty](): {"No", "Possible", "Certain"},
		},
		// Files of techniques add codes.
		Open:       map[reflect.Type]string{reflect.TypeFor[attackpaths.Code](): "^[A-Z][A-Za-z0-9]*$"},
		FieldEnums: fieldEnums(),
		FieldTexts: kubernetesFields(),
		TypeTexts: map[string]string{
			modulePath + "/verdict.Decision": "Allow grants the request. Deny refuses it, whatever later authorizers say. " +
				"NoOpinion leaves it to later authorizers; if none allows it, it is refused.",
			modulePath + "/attackpaths.Certainty": "No is not reached. Certain is reached. " +
				"Possible depends on something that the state does not show.",
			"k8s.io/api/rbac/v1.PolicyRule": "A rule of a role, as in the role itself.",
			"k8s.io/api/core/v1.Taint":      "A taint of a node, as in spec.taints.",
		},
		Nullable: map[string]bool{modulePath + "/internal/cli/query.ReachResult.RBAC": true},
	}
}

// TestSchemas compares the schemas with the types. UPDATE_GOLDEN=1 writes them.
func TestSchemas(t *testing.T) {
	g := generator(t)
	for _, d := range documents() {
		kind := d.result.DocumentKind()
		made, err := g.Schema(typeschema.Document{
			ID: schemasURL + kind + ".json", Description: d.says, APIVersion: render.DocumentVersion, Kind: kind,
			Type: reflect.TypeOf(d.result), Metadata: reflect.TypeFor[render.Metadata](),
		})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		writeGolden(t, filepath.Join(schemasFolder, kind+".json"), made)
	}
}

// fieldEnums are the values of fields of the type string.
func fieldEnums() map[string][]string {
	const cli, diff, log = "/internal/cli/", "/internal/cli/paths.", "/internal/audit/replay.Refusal."
	actions, evaluated := []string{source.Added, source.Replaced, source.Removed}, []string{"allow", "refuse", "undecided"}
	values := map[string][]string{
		cli + "query.answer.Answer":     {command.Yes, command.No, command.Unknown},
		cli + "contain.effect.Answer":   {command.Yes, command.No, command.Unknown},
		diff + "DiffResult.Verdict":     {paths.DiffWidened, paths.DiffNotWidened, paths.DiffUndecided},
		diff + "diffChange.Action":      actions,
		diff + "diffPlace.Action":       actions,
		diff + "diffRow.StartKind":      append([]string{attackpaths.Node, attackpaths.ServiceAccount}, paths.PlaceKinds[1]...),
		diff + "DiffResult.FailOn":      paths.DiffFailOns(),
		diff + "diffRow.Kind":           holdingKinds(),
		"/attackpaths.Count.Kind":       holdingKinds(),
		log + "AsNode":                  evaluated,
		log + "Evaluators":              evaluated,
		"/noderestriction.Condition.Of": {"object", "oldObject", "name", "namespace"},
		"/internal/doctor.Step.ID":      {"record", "authorize", "identify", "watch", "withdraw", "restrict", "clean-up"},
	}
	of := map[string][]string{}
	for field, all := range values {
		of[modulePath+field] = all
	}
	return of
}

func holdingKinds() []string {
	return []string{
		attackpaths.ClusterAdmin, attackpaths.Node, attackpaths.Pod, attackpaths.ServiceAccount, attackpaths.User, attackpaths.Group,
		attackpaths.Secret, attackpaths.Namespace,
	}
}

// kubernetesFields describe fields of Kubernetes' types, and our fields without a comment of their own.
func kubernetesFields() map[string]string {
	texts := map[string]string{}
	for of, fields := range map[reflect.Type]map[string]string{
		reflect.TypeFor[rbacv1.PolicyRule](): {
			"Verbs": "The verbs that the rule allows; * for all.", "APIGroups": "API groups of Resources; \"\" is the core group, * all.",
			"Resources":       "Resources, with a subresource after a slash; * for all.",
			"ResourceNames":   "The only names that the rule is for; absent for all.",
			"NonResourceURLs": "Paths of requests without a resource; * at the end of one stands for any rest.",
		},
		reflect.TypeFor[corev1.Taint](): {
			"Key": "The key of the taint.", "Value": "The value of the taint.",
			"Effect":    "What happens to pods that do not tolerate it: NoSchedule, PreferNoSchedule or NoExecute.",
			"TimeAdded": "When the taint was added.",
		},
		reflect.TypeFor[policyv1alpha1.Subject](): {"Namespace": "The namespace of the service account."},
		reflect.TypeFor[policyv1alpha1.PodRule](): {"Verbs": "The verbs, as in RBAC."},
	} {
		for field, text := range fields {
			texts[of.PkgPath()+"."+of.Name()+"."+field] = text
		}
	}
	return texts
}
