package paths

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// The example files lead from a right on a resource to what their pages say.
func TestExamplesOfTechniques(t *testing.T) {
	const system = "Possible Group system:masters: "
	cases := map[string][]struct{ rule, cluster, want string }{
		"argo-cd.yaml": {
			{
				"an application", grant("argocd", "argoproj.io", "applications"),
				"Possible ClusterAdmin : ArgoCDApplication Masters",
			},
			{"an application elsewhere", grant("dev", "argoproj.io", "applications"), ""},
			{"a project alone", grant("argocd", "argoproj.io", "appprojects"), ""},
			{
				"a project and an application",
				grant("argocd", "argoproj.io", "appprojects") + grant("argocd", "argoproj.io", "applications"),
				"Possible ClusterAdmin : ArgoCDProject Masters",
			},
			{
				"an application set", grant("argocd", "argoproj.io", "applicationsets"),
				"Possible ClusterAdmin : ArgoCDApplicationSet Masters",
			},
			{"the policy", grant("argocd", "", "configmaps", "argocd-rbac-cm"), "Possible ClusterAdmin : ArgoCDPolicy Masters"},
			{"another config map", grant("argocd", "", "configmaps", "other"), ""},
		},
		"flux.yaml": {
			{
				"a Kustomization", grant("dev", "kustomize.toolkit.fluxcd.io", "kustomizations"),
				"Possible ServiceAccount flux-system/kustomize-controller: FluxKustomization",
			},
			{
				"a Kustomization of another account", grant("dev", "kustomize.toolkit.fluxcd.io", "kustomizations"),
				"Possible ServiceAccount dev/deployer: FluxKustomizationAccount",
			},
			{
				"a HelmRelease", grant("dev", "helm.toolkit.fluxcd.io", "helmreleases"),
				"Possible ServiceAccount flux-system/helm-controller: FluxHelmRelease",
			},
			{
				"a HelmRelease of another account", grant("dev", "helm.toolkit.fluxcd.io", "helmreleases"),
				"Possible ServiceAccount dev/deployer: FluxHelmReleaseAccount",
			},
			{
				"a source", grant("dev", "source.toolkit.fluxcd.io", "ocirepositories"),
				"Possible ServiceAccount flux-system/helm-controller: FluxSource",
			},
			{
				"a source by name", grant("dev", "source.toolkit.fluxcd.io", "gitrepositories", "apps"),
				"Possible ServiceAccount flux-system/kustomize-controller: FluxSource",
			},
		},
		"cert-manager.yaml": {
			{"an issuer", grant("dev", "cert-manager.io", "issuers"), "Possible Secret dev/password: CertManagerIssuer"},
			{
				"an issuer of the cluster", grant("", "cert-manager.io", "clusterissuers"),
				"Possible Secret cert-manager/ca: CertManagerClusterIssuer",
			},
			{"an issuer of the cluster, in a namespace", grant("dev", "cert-manager.io", "clusterissuers"), ""},
			{"a certificate that is not read", grant("dev", "cert-manager.io", "certificates"), ""},
			{"a certificate", grant("dev", "cert-manager.io", "certificates") + read("dev"), system + "CertManagerCertificate"},
			{"a certificate that is read elsewhere", grant("dev", "cert-manager.io", "certificates") + read("other"), ""},
			{"a request", grant("dev", "cert-manager.io", "certificaterequests"), system + "CertManagerCertificateRequest"},
		},
		"external-secrets.yaml": {
			{
				"a store", grant("dev", "external-secrets.io", "secretstores"),
				"Possible ServiceAccount dev/deployer: ExternalSecretsStore",
			},
			{
				"the secrets of a store", grant("dev", "external-secrets.io", "secretstores"),
				"Possible Secret dev/password: ExternalSecretsStore",
			},
			{
				"a store of the cluster", grant("", "external-secrets.io", "clustersecretstores"),
				"Possible ServiceAccount argocd/argocd-application-controller: ExternalSecretsClusterStore",
			},
			{
				"the secrets of a store of the cluster", grant("", "external-secrets.io", "clustersecretstores"),
				"Possible Secret cert-manager/ca: ExternalSecretsClusterStore",
			},
			{
				"a secret with a token", grant("dev", "external-secrets.io", "externalsecrets") + read("dev"),
				"Possible ServiceAccount dev/deployer: ExternalSecretsTokenSecret",
			},
			{"a secret that is not read", grant("dev", "external-secrets.io", "externalsecrets"), ""},
		},
		"crossplane.yaml": {
			{
				"an object", grant("", "kubernetes.crossplane.io", "objects"),
				"Possible ServiceAccount crossplane-system/provider-kubernetes-1a2b3c: CrossplaneObject",
			},
			{
				"an object of a namespace", grant("dev", "kubernetes.m.crossplane.io", "objects"),
				"Possible ServiceAccount crossplane-system/provider-kubernetes-1a2b3c: CrossplaneObject",
			},
			{
				"an object and the provider's configuration",
				grant("", "kubernetes.crossplane.io", "objects") + grant("", "kubernetes.crossplane.io", "providerconfigs"),
				"Certain ServiceAccount crossplane-system/provider-kubernetes-1a2b3c: CrossplaneProviderConfig",
			},
			{
				"a composition", grant("", "apiextensions.crossplane.io", "compositions"),
				"Possible ServiceAccount crossplane-system/crossplane: CrossplaneComposition",
			},
			{
				"a package", grant("", "pkg.crossplane.io", "functions") + grant("", "pkg.crossplane.io", "deploymentruntimeconfigs"),
				"Possible Namespace crossplane-system: CrossplanePackage",
			},
		},
	}
	files, err := filepath.Glob("../../../examples/techniques/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		custom := readExample(t, file)
		used := map[attackpaths.Code]bool{}
		for _, c := range cases[name] {
			t.Run(name+"/"+c.rule, func(t *testing.T) {
				// Of techniques that lead to the same, a path has any: without the others it is this one.
				expected := slices.DeleteFunc(slices.Clone(custom), func(x attackpaths.CustomTechnique) bool {
					return c.want != "" && !slices.Contains(strings.Fields(c.want), string(x.Code))
				})
				got := reachedBy(t, expected, c.cluster)
				if c.want == "" && len(got) > 0 || c.want != "" && !slices.Contains(got, c.want) {
					t.Errorf("reached\n\t%s\nwant %q", strings.Join(got, "\n\t"), c.want)
				}
				for i := range expected {
					used[expected[i].Code] = used[expected[i].Code] || c.want != ""
				}
			})
		}
		for i := range custom {
			if code := custom[i].Code; !used[code] {
				t.Errorf("%s: no case is about %s", name, code)
			}
		}
	}
}

func readExample(t *testing.T, file string) []attackpaths.CustomTechnique {
	t.Helper()
	a := &command.App{Streams: command.NewStreams(nil, io.Discard, io.Discard)}
	custom, err := readTechniques(a, []string{file})
	if err != nil {
		t.Fatal(err)
	}
	return custom
}

// reachedBy lists the holdings that the user dev reaches in a cluster with the operators' accounts.
func reachedBy(t *testing.T, custom []attackpaths.CustomTechnique, roles string) []string {
	t.Helper()
	objects := account("dev", "deployer") + account("argocd", "argocd-application-controller") +
		account("flux-system", "kustomize-controller") + account("flux-system", "helm-controller") +
		account("crossplane-system", "crossplane") + account("crossplane-system", "provider-kubernetes-1a2b3c") +
		object("v1", "Secret", "dev", "password", "") + object("v1", "Secret", "cert-manager", "ca", "") +
		object("v1", "Namespace", "", "other", "") +
		object(rbacAPI, "ClusterRole", "", "everything", `rules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"]}]`) +
		object(rbacAPI, "ClusterRoleBinding", "", "argocd", "roleRef: {kind: ClusterRole, name: everything}\n"+
			"subjects: [{kind: ServiceAccount, namespace: argocd, name: argocd-application-controller}]")
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(objects+roles), 0o600); err != nil {
		t.Fatal(err)
	}
	start := attackpaths.Holding{Kind: attackpaths.User, Name: "dev"}
	state, err := source.LoadFiles(t.Context(), []string{file}, source.FileOptions{Inventory: true})
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := evaluate.New(t.Context(), state, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		t.Fatal(err)
	}
	g, err := AttackGraph((&command.Session{Evaluator: evaluator}), &AttackPathsFlags{custom: custom, starts: []attackpaths.Holding{start}})
	if err != nil {
		t.Fatal(err)
	}
	if gaps := g.Gaps(); len(gaps) > 0 {
		t.Errorf("the cluster lacks %v", gaps)
	}
	result, err := g.From(start)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range result.Reached {
		if r.Path[len(r.Path)-1].Technique == attackpaths.SecretRead {
			continue
		}
		line := fmt.Sprintf("%s %s %s:", r.Certainty, r.Kind, strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
		for _, step := range r.Path {
			line += " " + string(step.Technique)
		}
		all = append(all, line)
	}
	return all
}

const rbacAPI = "rbac.authorization.k8s.io/v1"

func object(apiVersion, kind, namespace, name, fields string) string {
	meta := "name: " + name
	if namespace != "" {
		meta += ", namespace: " + namespace
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {%s}\n%s\n---\n", apiVersion, kind, meta, fields)
}

func account(namespace, name string) string {
	return object("v1", "ServiceAccount", namespace, name, "")
}

// grant lets the user dev write a resource, and read it; with names, only the objects of these names.
func grant(namespace, group, resource string, names ...string) string {
	return bind(namespace, group, resource, "create, update, patch, get", strings.Join(names, ", "))
}

// read lets the user dev read secrets.
func read(namespace string) string { return bind(namespace, "", "secrets", "get, list", "") }

func bind(namespace, group, resource, verbs, names string) string {
	kind := map[bool]string{true: "ClusterRole", false: "Role"}[namespace == ""]
	rules := fmt.Sprintf("rules: [{verbs: [%s], apiGroups: [%q], resources: [%s], resourceNames: [%s]}]", verbs, group, resource, names)
	return object(rbacAPI, kind, namespace, resource, rules) + object(rbacAPI, kind+"Binding", namespace, resource,
		fmt.Sprintf("roleRef: {kind: %s, name: %s}\nsubjects: [{kind: User, name: dev}]", kind, resource))
}
