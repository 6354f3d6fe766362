// Package setup installs the server beside the kube-apiserver of a control plane node, and removes it again. A Plan says
// which files and objects change: it is made from files and facts about the cluster, and changes nothing. Node applies it,
// keeps the former content of each file in a journal, and restores it.
//
// kube-apiserver's manifest is replaced last, and put back if kube-apiserver does not become healthy with it. So before
// that step, a failure leaves kube-apiserver as it was.
package setup

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/node-authorizer/node-authorizer/deploy"
)

// Mode says what kube-apiserver does with the server's answers.
type Mode string

// The modes, each stronger than the one before.
const (
	// Observe uses no answer: the server counts and logs where it differs from the in-tree authorizer and plugin.
	Observe Mode = "observe"
	// Beside keeps the in-tree authorizer and plugin: a request is allowed if one authorizer allows it, and a write is
	// refused if one admission refuses it.
	Beside Mode = "beside"
	// Replace removes the in-tree authorizer and plugin.
	Replace Mode = "replace"
)

// Modes returns all modes, the weakest first.
func Modes() []Mode { return []Mode{Observe, Beside, Replace} }

// enforces reports whether answers of the server count.
func (m Mode) enforces() bool { return m == Beside || m == Replace }

// Options say what to install.
type Options struct {
	Mode Mode
	// Image is the server's image; it may be empty if the server is installed already.
	Image string
	// Root is the folder of kubeadm on the node, /etc/kubernetes.
	Root string
	// Port is the server's port on 127.0.0.1. The next one is for metrics and health.
	Port int
	// Containment enables NodeScopes and Quarantines.
	Containment bool
	// Renew makes new certificates, even if the old ones are valid for long.
	Renew bool
	Now   time.Time
}

// File is a file with its whole content.
type File struct {
	Path    string
	Content []byte
	Mode    fs.FileMode
	// Owner is the user ID and group ID.
	Owner int
	// Secret content is never shown.
	Secret bool
}

// Plan is what an installation changes.
type Plan struct {
	Options
	// Files are written before the server starts.
	Files []File
	// Server is the static pod of the server, and APIServer the manifest of kube-apiserver.
	Server, APIServer File
	// Original is kube-apiserver's manifest without the server.
	Original []byte
	// Objects are created before the server starts.
	Objects []*unstructured.Unstructured
	// Authority is the authority of the server's certificate, PEM.
	Authority []byte
	// Command is the command of kube-apiserver, and Address where it listens on this node.
	Command []string
	Address string
}

// All returns all files in the order in which they are written.
func (p *Plan) All() []File { return append(slices.Clone(p.Files), p.Server, p.APIServer) }

const (
	// serverUser is the user that the server's container runs as.
	serverUser        = 65532
	folder            = "node-authorizer"
	apiServerManifest = "manifests/kube-apiserver.yaml"
	serverManifest    = "manifests/node-authorizer.yaml"
)

func (o *Options) path(name ...string) string {
	return filepath.Join(append([]string{o.Root, folder}, name...)...)
}

func (o *Options) webhook() string { return fmt.Sprintf("127.0.0.1:%d", o.Port) }
func (o *Options) metrics() string { return fmt.Sprintf("127.0.0.1:%d", o.Port+1) }

// Read returns the content of a file below the folder of kubeadm. A file that does not exist is [fs.ErrNotExist].
type Read func(name string) ([]byte, error)

// Kubeadm plans an installation on a node that kubeadm set up.
func Kubeadm(o Options, read Read, journal *Journal) (*Plan, error) {
	current, err := read(apiServerManifest)
	if err != nil {
		return nil, fmt.Errorf("read kube-apiserver's manifest: %w; run this on a control plane node, or name its files with "+
			"--kubernetes-dir", err)
	}
	original, err := journal.original(filepath.Join(o.Root, apiServerManifest), current, o.path())
	if err != nil {
		return nil, err
	}
	pod, err := parsePod(original)
	if err != nil {
		return nil, err
	}
	p := &Plan{Options: o, Original: original, Address: pod.address()}
	api, err := p.editAPIServer(pod, read)
	if err != nil {
		return nil, err
	}
	authorities, err := readAuthorities(read, "pki/ca.crt", "pki/ca.crt", "pki/ca.key")
	if err != nil {
		return nil, err
	}
	if err := p.addCommon(read, pod.beta(), authorities); err != nil {
		return nil, err
	}
	p.APIServer = File{Path: filepath.Join(o.Root, apiServerManifest), Content: api, Mode: 0o600}
	p.Server.Path = filepath.Join(o.Root, serverManifest)
	p.add(File{Path: o.path("setup", "kubeadm.yaml"), Content: p.clusterConfiguration(), Mode: 0o644})
	return p, nil
}

// addCommon adds what all platforms have: the files of the server and of kube-apiserver, and the objects.
func (p *Plan) addCommon(read Read, beta bool, authorities *authorities) error {
	image, err := p.image(read)
	if err != nil {
		return err
	}
	if err := p.addCertificates(read, authorities); err != nil {
		return err
	}
	config := "static-pod/server/config.yaml"
	if p.Containment {
		config = "containment/static-pod/config.yaml"
	}
	p.addServer("config.yaml", p.text(config), false)
	p.addServer("kubeconfig", strings.Replace(p.text("static-pod/server/kubeconfig"), "127.0.0.1:6443", p.Address, 1), false)
	p.Server = File{
		Path: p.path("manifests", "node-authorizer.yaml"), Mode: 0o600,
		Content: []byte(strings.ReplaceAll(p.text("static-pod/server/node-authorizer.yaml"), "IMAGE", image)),
	}
	p.addAPIServer(p.authorizationFile(), p.authorization(beta), false)
	if p.Mode == Observe {
		for _, name := range []string{"authorize", "behind"} {
			p.addAPIServer("observe-"+name+".kubeconfig",
				strings.Replace(p.text("static-pod/apiserver/authorize.kubeconfig"), "/authorize", "/observe/"+name, 1), false)
		}
	} else {
		p.addAPIServer("authorize.kubeconfig", p.text("static-pod/apiserver/authorize.kubeconfig"), false)
	}
	p.addAPIServer("admission.kubeconfig", p.text("static-pod/apiserver/admission.kubeconfig"), false)
	names := []string{"rbac/role.yaml", "static-pod/rbac.yaml"}
	if p.Containment {
		names = append(names, "containment/nodescopes.yaml", "containment/quarantines.yaml", "containment/quarantinednodes.yaml",
			"containment/role.yaml")
	}
	for _, name := range names {
		objects, err := decode(p.text(name))
		if err != nil {
			return fmt.Errorf("decode %s: %w", name, err)
		}
		p.Objects = append(p.Objects, objects...)
	}
	return nil
}

// image returns the image of the options, or else of the server that is installed.
func (p *Plan) image(read Read) (string, error) {
	if p.Image != "" {
		return p.Image, nil
	}
	if text, err := read(serverManifest); err == nil {
		if pod, err := parsePod(text); err == nil {
			return pod.Spec.Containers[0].Image, nil
		}
	}
	return "", fmt.Errorf("no image of the server is given: set --image, with an image that this node can pull")
}

func (p *Plan) add(f File) { p.Files = append(p.Files, f) }

func (p *Plan) addServer(name, content string, secret bool) {
	p.add(File{Path: p.path("server", name), Content: []byte(content), Mode: 0o600, Owner: serverUser, Secret: secret})
}

func (p *Plan) addAPIServer(name, content string, secret bool) {
	p.add(File{Path: p.path("apiserver", name), Content: []byte(content), Mode: 0o600, Secret: secret})
}

// authorizationFile is the name of the AuthorizationConfiguration. Each mode has its own, so that a new mode changes
// kube-apiserver's manifest, and takes effect when that is replaced.
func (p *Plan) authorizationFile() string { return "authorization-" + string(p.Mode) + ".yaml" }

// text returns a file of package deploy with the paths and addresses of the options. The server sees its files at their
// paths on the host, so that its config file can be checked there.
func (p *Plan) text(name string) string {
	text, err := deploy.Files.ReadFile(name)
	if err != nil {
		panic(err) // the name is a constant
	}
	return strings.NewReplacer(
		"/etc/kubernetes/node-authorizer", p.path(), "/etc/node-authorizer", p.path("server"),
		"127.0.0.1:10270", p.webhook(), "127.0.0.1:10271", p.metrics(),
		"Port: 10270", fmt.Sprintf("Port: %d", p.Port), "port: 10271", fmt.Sprintf("port: %d", p.Port+1),
	).Replace(string(text))
}

// authorization returns the AuthorizationConfiguration of the mode.
func (p *Plan) authorization(beta bool) string {
	var kept []string
	for line := range strings.Lines(p.text("static-pod/apiserver/authorization.yaml")) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			kept = append(kept, line)
		}
	}
	text := strings.Join(kept, "")
	const node, rbac, name = "- type: Node\n  name: node\n", "- type: RBAC\n", "name: node-authorizer\n"
	begin, end := strings.Index(text, "- type: Webhook"), strings.Index(text, rbac)
	webhook := text[begin:end]
	switch p.Mode {
	case Observe:
		webhook = strings.Replace(webhook, "timeout: 3s", "timeout: 1s", 1)
		before := strings.Replace(webhook, "authorize.kubeconfig", "observe-authorize.kubeconfig", 1)
		behind := strings.Replace(webhook, "authorize.kubeconfig", "observe-behind.kubeconfig", 1)
		webhook = strings.Replace(before, name, "name: node-authorizer-observe\n", 1) + node +
			strings.Replace(behind, name, "name: node-authorizer-behind\n", 1)
	case Beside:
		webhook += node
	}
	if p.Containment && p.Mode.enforces() {
		const nodes = "    - expression: \"'system:nodes' in request.groups\"\n" +
			"    - expression: \"request.user.startsWith('system:node:')\"\n"
		webhook = strings.Replace(webhook, nodes, "    - expression: >-\n        request.user.startsWith('system:node:') ||\n"+
			"        'authentication.kubernetes.io/node-name' in request.extra\n", 1)
	}
	text = "# Written by node-authorizer setup --mode " + string(p.Mode) + ".\n" + text[:begin] + webhook + text[end:]
	if beta {
		text = strings.Replace(text, "apiserver.config.k8s.io/v1\n", "apiserver.config.k8s.io/v1beta1\n", 1)
	}
	return text
}

// WebhookState is how kube-apiservers use the answers about writes.
type WebhookState string

// The states of the webhook. Guard is for the time while a kube-apiserver restarts, and one of the two has no client
// certificate for the server: its writes do not fail because of that.
const (
	NoWebhook      WebhookState = ""
	ObserveWebhook WebhookState = "observe"
	GuardWebhook   WebhookState = "guard"
	EnforceWebhook WebhookState = "enforce"
)

// Webhook returns the webhook configuration that trusts the authorities, PEM.
func (o *Options) Webhook(state WebhookState, authorities []byte) (*unstructured.Unstructured, error) {
	p := &Plan{Options: *o}
	text := p.text("static-pod/webhooks/noderestriction.yaml")
	objects, err := decode(strings.Replace(text, "CA_BUNDLE", encode(authorities), 1))
	if err != nil {
		return nil, fmt.Errorf("decode the webhook configuration: %w", err)
	}
	object := objects[0]
	webhook := object.Object["webhooks"].([]any)[0].(map[string]any)
	if state != EnforceWebhook {
		webhook["failurePolicy"] = "Ignore"
	}
	if state == ObserveWebhook {
		webhook["timeoutSeconds"] = int64(1)
		webhook["clientConfig"].(map[string]any)["url"] = "https://" + o.webhook() + "/observe/admit"
	}
	return object, nil
}

// managed marks the objects that setup creates: it changes and removes no others.
const managed, managedBy = "app.kubernetes.io/managed-by", "node-authorizer-setup"

// decode returns the objects of a file of package deploy, marked.
func decode(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(document)), len(document)).Decode(object); err != nil {
			return nil, err
		}
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[managed] = managedBy
		object.SetLabels(labels)
		objects = append(objects, object)
	}
	return objects, nil
}
