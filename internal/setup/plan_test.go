package setup

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/client-go/util/cert"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// controlPlane has the files of a node that kubeadm set up, by their names in the folder of kubeadm.
type controlPlane map[string]string

func (c controlPlane) read(name string) ([]byte, error) {
	text, ok := c[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// with returns the files with others.
func (c controlPlane) with(files ...string) controlPlane {
	changed := controlPlane{}
	for name, text := range c {
		changed[name] = text
	}
	for i := 0; i < len(files); i += 2 {
		changed[files[i]] = files[i+1]
	}
	return changed
}

// manifest returns the files with a replaced text in kube-apiserver's manifest.
func (c controlPlane) manifest(old, replaced string) controlPlane {
	return c.with(apiServerManifest, strings.Replace(c[apiServerManifest], old, replaced, 1))
}

func kubeadm(t *testing.T) controlPlane {
	t.Helper()
	text, err := os.ReadFile("testdata/kube-apiserver.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := newPair(&x509.Certificate{Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign},
		nil, now.Add(-time.Hour), authorityLife)
	if err != nil {
		t.Fatal(err)
	}
	return controlPlane{apiServerManifest: string(text), "pki/ca.crt": string(ca.certPEM), "pki/ca.key": string(ca.keyPEM)}
}

func options(mode Mode) Options {
	return Options{Mode: mode, Image: "registry.example.com/node-authorizer:v1", Dir: "/etc/kubernetes", Port: 10270, Now: now}
}

func plan(t *testing.T, o Options, files controlPlane, j *Journal) *Plan {
	t.Helper()
	p, err := Kubeadm(o, files.read, j)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// installed returns the files of a node after a plan.
func (c controlPlane) installed(p *Plan) controlPlane {
	after := c.with()
	for _, f := range p.Files {
		after[strings.TrimPrefix(f.Path, p.Dir+"/")] = string(f.Content)
	}
	return after
}

// shownFile returns a file without what differs in each run.
func shownFile(t *testing.T, f *File) string {
	t.Helper()
	if f.Secret {
		return "(a private key)\n"
	}
	certificates, err := cert.ParseCertsPEM(f.Content)
	if err != nil {
		return string(f.Content)
	}
	c := certificates[0]
	return fmt.Sprintf("(a certificate of %s by %s until %s for %v %v)\n", c.Subject, c.Issuer, c.NotAfter.Format(time.DateOnly),
		c.ExtKeyUsage, c.IPAddresses)
}

// TestFilesOfEachMode compares all files with testdata/MODE.txtar.
func TestFilesOfEachMode(t *testing.T) {
	for _, tc := range []struct {
		golden string
		change func(*Options)
	}{
		{"observe", func(*Options) {}},
		{"beside", func(o *Options) { o.Mode = Beside }},
		{"replace", func(o *Options) { o.Mode = Replace }},
		{"containment", func(o *Options) { o.Mode, o.Containment, o.Port = Replace, true, 20000 }},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			o := options(Observe)
			tc.change(&o)
			archive := &txtar.Archive{}
			files, err := plan(t, o, kubeadm(t), &Journal{}).Output()
			if err != nil {
				t.Fatal(err)
			}
			for i := range files {
				f := &files[i]
				same := []string{"cluster.yaml", "webhook.yaml", "ca.crt", "client.crt", "tls.crt"}
				if tc.golden != "observe" && slices.Contains(same, filepath.Base(f.Path)) {
					continue // as in the other modes, or about keys
				}
				archive.Files = append(archive.Files, txtar.File{
					Name: fmt.Sprintf("%s %o %d", f.Path, f.Mode, f.Owner), Data: []byte(withoutBundle(shownFile(t, f))),
				})
			}
			golden(t, filepath.Join("testdata", tc.golden+".txtar"), string(txtar.Format(archive)))
		})
	}
}

// TestFilesOfDistributions compares what differs from kubeadm with testdata/DISTRIBUTION.txtar.
func TestFilesOfDistributions(t *testing.T) {
	files := kubeadm(t)
	for _, of := range []struct{ from, to string }{
		{"pki/ca.crt", "server-ca.crt"},
		{"pki/ca.crt", "client-ca.crt"},
		{"pki/ca.key", "client-ca.key"},
		{"pki/ca.crt", "ca.crt"},
		{"pki/ca.key", "ca.key"},
	} {
		files[of.to] = files[of.from]
	}
	for distribution, mode := range map[string]Mode{"k3s": Replace, "rke2": Observe, "talos": Beside} {
		t.Run(distribution, func(t *testing.T) {
			p, err := For(distribution, options(mode), files.read)
			if err != nil {
				t.Fatal(err)
			}
			archive := &txtar.Archive{}
			for i := range p.Files {
				f := &p.Files[i]
				shown := []string{"admission.yaml", "node-authorizer.yaml", "pods.yaml", "apiserver.yaml"}
				if slices.Contains(shown, filepath.Base(f.Path)) {
					archive.Files = append(archive.Files, txtar.File{Name: f.Path, Data: f.Content})
				}
			}
			golden(t, filepath.Join("testdata", distribution+".txtar"), string(txtar.Format(archive)))
		})
	}
	if _, err := For("talos", options(Replace), files.read); err == nil || !strings.Contains(err.Error(), "--mode=observe") {
		t.Errorf("replace on Talos: %v", err)
	}
	p, err := For("talos", options(Observe), files.read)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Diff(t.TempDir(), p.Files)
	if err != nil || strings.Contains(text, "PRIVATE KEY") {
		t.Errorf("the diff of Talos shows a key: %v", err)
	}
}

// withoutBundle replaces the value of caBundle.
func withoutBundle(text string) string {
	before, after, found := strings.Cut(text, "caBundle: ")
	if !found {
		return text
	}
	_, rest, _ := strings.Cut(after, "\n")
	return before + "caBundle: (the authority)\n" + rest
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s is not what the plan has (%v):\n%s", path, err, got)
	}
}

func TestNodesThatArePlanned(t *testing.T) {
	files := kubeadm(t)
	const authorization = folder + "/apiserver/authorization-observe.yaml"
	const flag = "    - --enable-admission-plugins=NodeRestriction\n"
	merged := files.manifest(flag, flag+"    - --admission-control-config-file=/etc/kubernetes/pki/admission.yaml\n").with(
		"pki/admission.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"+
			"plugins:\n- {name: PodSecurity, path: ps.yaml}\n")
	for _, tc := range []struct {
		rule       string
		files      controlPlane
		mode       Mode
		file, want string
	}{
		{"an order of the modes", files.manifest("Node,RBAC", "RBAC,Node"), Observe, apiServerManifest, "authorization-observe.yaml"},
		{
			"other plugins stay", files.manifest("NodeRestriction", "NodeRestriction,AlwaysPullImages"), Replace, apiServerManifest,
			"- --enable-admission-plugins=AlwaysPullImages\n",
		},
		{
			"Kubernetes before 1.32 reads v1beta1", files.manifest("v1.34.2", "v1.31.0"), Observe, authorization,
			"apiVersion: apiserver.config.k8s.io/v1beta1\n",
		},
		{
			"an image without a version reads v1", files.manifest(":v1.34.2", "@sha256:0"), Observe, authorization,
			"apiVersion: apiserver.config.k8s.io/v1\n",
		},
		{
			"an address", files.manifest("--secure-port=6443", "--secure-port=8443\n    - --bind-address=192.0.2.10"), Observe,
			folder + "/server/kubeconfig", "server: https://192.0.2.10:8443\n",
		},
		{
			"plugins that are configured stay, with their paths", merged, Observe, folder + "/apiserver/admission.yaml",
			"- name: PodSecurity\n  path: /etc/kubernetes/pki/ps.yaml\n",
		},
		{
			"and get the client certificate for webhooks", merged, Observe, folder + "/apiserver/admission.yaml",
			"kubeConfigFile: /etc/kubernetes/node-authorizer/apiserver/admission.kubeconfig\n",
		},
		{
			"and the flag changes", merged, Observe, apiServerManifest,
			"- --admission-control-config-file=/etc/kubernetes/node-authorizer/apiserver/admission.yaml\n",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got := tc.files.installed(plan(t, options(tc.mode), tc.files, &Journal{}))[tc.file]
			if !strings.Contains(got, tc.want) {
				t.Errorf("%s lacks %q:\n%s", tc.file, tc.want, got)
			}
		})
	}
}

func TestNodesThatAreRefused(t *testing.T) {
	files := kubeadm(t)
	const flag = "    - --enable-admission-plugins=NodeRestriction\n"
	configured := files.manifest(flag, flag+"    - --admission-control-config-file=/etc/kubernetes/pki/admission.yaml\n")
	for _, tc := range []struct {
		rule  string
		files controlPlane
		want  string
	}{
		{"no manifest", controlPlane{}, "run this on a control plane node, or name its folder with --kubernetes-dir"},
		{"no YAML", files.with(apiServerManifest, "a: [b"), "manifests/kube-apiserver.yaml: line 1 is not valid YAML"},
		{"no pod", files.with(apiServerManifest, "kind: Service\n"), "is not a Pod with one container"},
		{"a command of numbers", files.manifest("- kube-apiserver\n", "- 5\n"), "is not a Pod with one container"},
		{"no command", files.with(apiServerManifest, "kind: Pod\nspec: {containers: [{name: a}]}"), "instead of Node,RBAC"},
		{"too old", files.manifest("v1.34.2", "v1.29.9"), "has the version 1.29, and --authorization-config needs Kubernetes 1.30"},
		{
			"a configuration of others", files.manifest("--authorization-mode=Node,RBAC", "--authorization-config=/etc/a.yaml"),
			"has --authorization-config=/etc/a.yaml, which setup does not change",
		},
		{"other authorizers", files.manifest("Node,RBAC", "Node,RBAC,Webhook"), "Node,RBAC,Webhook instead of Node,RBAC"},
		{
			"a flag of two arguments", files.manifest("--authorization-mode=Node,RBAC", "--authorization-mode\n    - Node,RBAC"),
			"write them as one, --authorization-mode=VALUE",
		},
		{
			"a flag with an underscore", files.manifest("--authorization-mode=", "--authorization_mode="),
			"has --authorization_mode: write it as --authorization-mode",
		},
		{
			"a flag that is given twice, whose values kube-apiserver joins",
			files.manifest("Node,RBAC\n", "Node,RBAC\n    - --authorization-mode=Webhook\n"), "has --authorization-mode twice",
		},
		{
			"plugins that are given twice", files.manifest(flag, "    - --enable-admission-plugins=AlwaysPullImages\n"+flag),
			"has --enable-admission-plugins twice",
		},
		{
			"flags of a webhook for authorization, which kube-apiserver refuses beside a configuration",
			files.manifest(flag, flag+"    - --authorization-webhook-version=v1\n"),
			"has --authorization-webhook-version, which it refuses",
		},
		{
			"flags in args", files.manifest("    image:", "    args: [--admission-control-config-file=/a]\n    image:"),
			"has arguments in args: write them in command",
		},
		{"an empty argument", files.manifest("- kube-apiserver\n", "- kube-apiserver\n    -\n"), "has an empty argument: remove it"},
		{"no NodeRestriction", files.manifest("NodeRestriction", "AlwaysPullImages"), "runs without the admission plugin NodeRestriction"},
		{
			"plugins of a file that is not mounted", files.manifest(flag, flag+"    - --admission-control-config-file=/other/a.yaml\n"),
			"which is not mounted from /etc/kubernetes",
		},
		{"plugins of a file that is missing", configured, "read kube-apiserver's --admission-control-config-file"},
		{
			"a client certificate of others", configured.with("pki/admission.yaml", "plugins: [{name: MutatingAdmissionWebhook}]"),
			"has a configuration of the plugin MutatingAdmissionWebhook, which setup does not change",
		},
		{"no authority", files.with("pki/ca.crt", ""), "the key pki/ca.key does not belong to the certificate pki/ca.crt"},
		{
			"the manifest was changed after setup", files.manifest(flag, flag+"    - --a=/etc/kubernetes/node-authorizer/b\n"),
			"was changed since setup wrote it",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if _, err := Kubeadm(options(Observe), tc.files.read, &Journal{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
	o := options(Observe)
	o.Image = ""
	if _, err := Kubeadm(o, files.read, &Journal{}); err == nil || !strings.Contains(err.Error(), "set --image") {
		t.Errorf("without an image: %v", err)
	}
}

// TestAnotherModeBeginsWithTheOriginal: the manifest is made from the one that setup found, not from its own.
func TestAnotherModeBeginsWithTheOriginal(t *testing.T) {
	files := kubeadm(t)
	observe := plan(t, options(Observe), files, &Journal{})
	last := observe.Files[len(observe.Files)-1]
	journal := &Journal{Files: []Entry{{
		Path: last.Path, Existed: true, Before: []byte(files[apiServerManifest]), Written: []string{sum(last.Content)},
	}}}
	after := files.installed(observe)
	replaced := after.installed(plan(t, options(Replace), after, journal))
	fresh := files.installed(plan(t, options(Replace), files, &Journal{}))
	if replaced[apiServerManifest] != fresh[apiServerManifest] {
		t.Errorf("the manifest is\n%s\nwant\n%s", replaced[apiServerManifest], fresh[apiServerManifest])
	}
	o := options("")
	o.Mode, o.Image = Observe, ""
	if again := after.installed(plan(t, o, after, journal)); again[serverManifest] != after[serverManifest] {
		t.Errorf("without an image the installed one is not kept:\n%s", again[serverManifest])
	}
}

func TestCertificatesAreRenewed(t *testing.T) {
	files := kubeadm(t)
	after := files.installed(plan(t, options(Observe), files, &Journal{}))
	journal := &Journal{Files: []Entry{{
		Path: "/etc/kubernetes/" + apiServerManifest, Existed: true, Before: []byte(files[apiServerManifest]),
		Written: []string{sum([]byte(after[apiServerManifest]))},
	}}}
	names := []string{"/server/tls", "/server/client", "/apiserver/client"}
	for _, tc := range []struct {
		rule  string
		after time.Duration
		files controlPlane
		want  []string
	}{
		{"young ones stay", 0, after, nil},
		{"they stay for two thirds of their life", certificateLife * 6 / 10, after, nil},
		{"and are renewed then", certificateLife * 7 / 10, after, names},
		{"a key of another certificate", 0, after.with(folder+"/server/tls.key", after[folder+"/server/client.key"]), names[:1]},
		{"the cluster has another authority", 0, after.with("pki/ca.crt", kubeadm(t)["pki/ca.crt"], "pki/ca.key", ""), nil},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			o := options(Observe)
			o.Now = now.Add(tc.after)
			p, err := Kubeadm(o, tc.files.read, journal)
			if tc.files["pki/ca.key"] == "" {
				if err == nil {
					t.Error("a key that does not belong to the authority is accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			renewed := tc.files.installed(p)
			var got []string
			for _, name := range names {
				if renewed[folder+name+".crt"] != after[folder+name+".crt"] {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != strings.Join(tc.want, " ") {
				t.Errorf("renewed are %v, want %v", got, tc.want)
			}
			if renewed[folder+"/setup/ca.crt"] != after[folder+"/setup/ca.crt"] {
				t.Error("the authority is another one")
			}
		})
	}
	t.Run("without the key of the cluster's authority, valid ones stay", func(t *testing.T) {
		without := after.with()
		delete(without, "pki/ca.key")
		o := options(Observe)
		o.Now = now.Add(certificateLife * 9 / 10)
		if got := without.installed(plan(t, o, without, journal)); got[folder+"/server/client.crt"] != after[folder+"/server/client.crt"] {
			t.Error("the certificate is another one")
		}
		o.Now = now.Add(certificateLife * 2)
		if _, err := Kubeadm(o, without.read, journal); err == nil || !strings.Contains(err.Error(), "server/client.crt") {
			t.Errorf("an expired one: %v", err)
		}
	})
	t.Run("the authority is not renewed", func(t *testing.T) {
		o := options(Observe)
		o.Now = now.Add(authorityLife - time.Hour)
		if _, err := Kubeadm(o, after.read, journal); err == nil || !strings.Contains(err.Error(), "run node-authorizer setup undo") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a broken authority is an error", func(t *testing.T) {
		if _, err := Kubeadm(options(Observe), after.with(folder+"/setup/ca.key", "x").read, journal); err == nil {
			t.Error("it is replaced")
		}
	})
}

// TestWebhookFitsAllNodes: a write fails without an answer only if a node has no NodeRestriction.
func TestWebhookFitsAllNodes(t *testing.T) {
	for _, tc := range []struct {
		modes        []Mode
		path, policy string
	}{
		{[]Mode{Observe}, "/observe/admit", "Ignore"},
		{[]Mode{Observe, Beside}, "/admit", "Ignore"},
		{[]Mode{Replace, Observe}, "/admit", "Fail"},
		{[]Mode{Beside, Replace}, "/admit", "Fail"},
	} {
		t.Run(fmt.Sprint(tc.modes), func(t *testing.T) {
			members := map[string]Member{}
			for i, m := range tc.modes {
				members[fmt.Sprint(i)] = Member{Mode: m, Authority: fmt.Sprintf("authority %d\n", i)}
			}
			o := options(Observe)
			object, err := o.webhookFor(members)
			if err != nil {
				t.Fatal(err)
			}
			webhook := object.Object["webhooks"].([]any)[0].(map[string]any)
			client := webhook["clientConfig"].(map[string]any)
			if webhook["failurePolicy"] != tc.policy || client["url"] != "https://127.0.0.1:10270"+tc.path {
				t.Errorf("%v %v", webhook["failurePolicy"], client["url"])
			}
		})
	}
}

func TestDiffShowsNoKeys(t *testing.T) {
	p := plan(t, options(Observe), kubeadm(t), &Journal{})
	text, err := Diff(t.TempDir(), p.Files)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "PRIVATE KEY") || strings.Count(text, "(a private key, not shown)") != 4 {
		t.Error(text)
	}
}

func TestReadFrom(t *testing.T) {
	written, dir := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(written, folder, "a"): "written", filepath.Join(dir, folder, "a"): "here", filepath.Join(dir, folder, "b"): "here",
		filepath.Join(written, "manifests", "a"): "written", filepath.Join(dir, "manifests", "a"): "here",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	read := ReadFrom(written, dir)
	for name, want := range map[string]string{folder + "/a": "written", folder + "/b": "here", "manifests/a": "here"} {
		if got, err := read(name); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
