// Package setup installs the server beside the kube-apiserver of a control plane node, and removes it again. A [Plan] says
// which files and objects change: it is made from files, and changes nothing. A [Node] applies it, keeps the former content
// of each file in a [Journal], and restores it.
//
// kube-apiserver's manifest is replaced last, and put back if kube-apiserver does not become ready with it. So before that
// step, a failure leaves kube-apiserver as it was. Control plane nodes have authorities of their own, so that no key is
// copied between them. The webhook configuration, which they share, trusts all of them.
package setup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/deploy"
)

// Mode says how kube-apiserver uses the server's answers.
type Mode string

// The modes, the weakest first.
const (
	// Observe uses no answer: the server counts and logs where it differs from the in-tree authorizer and plugin.
	Observe Mode = "observe"
	// Beside keeps the in-tree authorizer and plugin: a request is allowed if one authorizer allows it, and a write is
	// refused if one admission refuses it. Without the server, the in-tree parts decide.
	Beside Mode = "beside"
	// Replace removes the in-tree authorizer and plugin. Without the server, nodes are refused.
	Replace Mode = "replace"
)

// Modes returns the names of all modes, the weakest first.
func Modes() []string { return []string{string(Observe), string(Beside), string(Replace)} }

// Options say what to install.
type Options struct {
	Mode Mode
	// Image is the server's image. It may be empty if the server is installed already.
	Image string
	// Dir is the folder of kubeadm on the node, /etc/kubernetes.
	Dir string
	// Port is the server's port on 127.0.0.1. The next one is for metrics and health.
	Port int
	// Containment enables NodeScopes and Quarantines.
	Containment bool
	Now         time.Time
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
	// Files are in the order in which they are written: the static pod of the server follows the files that it mounts, and
	// kube-apiserver's manifest is the last one.
	Files []File
	// Objects are created before the server starts.
	Objects []*unstructured.Unstructured
	// Address is where kube-apiserver listens on this node.
	Address string
}

const (
	// serverUser is the user that the server's container runs as.
	serverUser        = 65532
	folder            = "node-authorizer"
	apiServerManifest = "manifests/kube-apiserver.yaml"
	serverManifest    = "manifests/node-authorizer.yaml"
)

func (o *Options) path(name ...string) string {
	return filepath.Join(append([]string{o.Dir, folder}, name...)...)
}

func (o *Options) webhook() string { return fmt.Sprintf("127.0.0.1:%d", o.Port) }

// Metrics is the address of the server's metrics.
func (o *Options) Metrics() string { return fmt.Sprintf("127.0.0.1:%d", o.Port+1) }

// Read returns the content of a file below the folder of kubeadm. A file that does not exist is [fs.ErrNotExist].
type Read func(name string) ([]byte, error)

// ReadFrom returns a Read of a folder, whose files of setup are below another one if a plan was written there.
func ReadFrom(written, dir string) Read {
	return func(name string) ([]byte, error) {
		if strings.HasPrefix(name, folder+"/") {
			text, err := os.ReadFile(filepath.Join(written, name))
			if !errors.Is(err, fs.ErrNotExist) {
				return text, err
			}
		}
		return os.ReadFile(filepath.Join(dir, name))
	}
}

// Kubeadm plans an installation on a node that kubeadm set up.
func Kubeadm(o Options, read Read, journal *Journal) (*Plan, error) {
	current, err := read(apiServerManifest)
	if err != nil {
		return nil, fmt.Errorf("read kube-apiserver's manifest: %w; run this on a control plane node, or name its folder with "+
			"--kubernetes-dir", err)
	}
	path := filepath.Join(o.Dir, apiServerManifest)
	original, err := journal.original(path, current, o.path())
	if err != nil {
		return nil, err
	}
	pod, err := parsePod(path, original)
	if err != nil {
		return nil, err
	}
	p := &Plan{Options: o, Address: pod.address()}
	edited, err := p.editAPIServer(pod, read)
	if err != nil {
		return nil, err
	}
	beta := pod.minor() != 0 && pod.minor() < 32
	if err := p.addServer(read, authorities{"pki/ca.crt", "pki/ca.crt", "pki/ca.key"}, beta); err != nil {
		return nil, err
	}
	p.Files[len(p.Files)-1].Path = filepath.Join(o.Dir, serverManifest)
	p.Files = append(p.Files, File{Path: path, Content: edited, Mode: 0o600})
	return p, nil
}

// addServer adds what all platforms have: the objects, the files of the server and of kube-apiserver, and at last the
// static pod of the server.
func (p *Plan) addServer(read Read, cluster authorities, beta bool) error {
	image, err := p.image(read)
	if err != nil {
		return err
	}
	if err := p.addCertificates(read, cluster); err != nil {
		return err
	}
	config := "static-pod/server/config.yaml"
	if p.Containment {
		config = "containment/static-pod/config.yaml"
	}
	p.add("server/config.yaml", []byte(p.text(config)))
	p.add("server/kubeconfig", []byte(strings.Replace(p.text("static-pod/server/kubeconfig"), "127.0.0.1:6443", p.Address, 1)))
	p.add("apiserver/"+p.authorizationFile(), []byte(p.authorization(beta)))
	authorize := p.text("static-pod/apiserver/authorize.kubeconfig")
	if p.Mode == Observe {
		p.add("apiserver/observe.kubeconfig", []byte(strings.Replace(authorize, "/authorize\n", "/observe/authorize\n", 1)))
		p.add("apiserver/behind.kubeconfig", []byte(strings.Replace(authorize, "/authorize\n", "/observe/behind\n", 1)))
	} else {
		p.add("apiserver/authorize.kubeconfig", []byte(authorize))
	}
	p.add("apiserver/admission.kubeconfig", []byte(p.text("static-pod/apiserver/admission.kubeconfig")))
	if p.Objects, err = p.objects(p.Containment); err != nil {
		return err
	}
	// The kubelet restarts a static pod when its manifest changes, so this has the hash of the config file.
	hash := sha256.Sum256([]byte(p.text(config)))
	p.add("manifests/node-authorizer.yaml", []byte(strings.NewReplacer(
		"IMAGE", image, "  labels:\n", "  annotations:\n    node-authorizer.io/config: "+hex.EncodeToString(hash[:8])+"\n  labels:\n",
	).Replace(p.text("static-pod/server/node-authorizer.yaml"))))
	return nil
}

// image returns the image of the options, or else of the server that is installed.
func (p *Plan) image(read Read) (string, error) {
	if p.Image != "" {
		return p.Image, nil
	}
	text, err := read(serverManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("the server's image is not given: set --image to an image that this node can pull")
	}
	if err != nil {
		return "", fmt.Errorf("read the image of the server: %w", err)
	}
	pod, err := parsePod(serverManifest, text)
	if err != nil {
		return "", err
	}
	return pod.Spec.Containers[0].Image, nil
}

// add adds a file of the server's or kube-apiserver's folder. Neither reads the other's keys.
func (p *Plan) add(name string, content []byte) {
	f := File{Path: p.path(name), Content: content, Mode: 0o600, Secret: strings.HasSuffix(name, ".key")}
	if strings.HasPrefix(name, "server/") {
		f.Owner = serverUser
	}
	p.Files = append(p.Files, f)
}

// authorizationFile is the name of the AuthorizationConfiguration. Each mode has its own, so that another mode changes
// kube-apiserver's manifest, and takes effect when that is replaced.
func (p *Plan) authorizationFile() string { return "authorization-" + string(p.Mode) + ".yaml" }

// text returns a file of package deploy with the paths and addresses of the options. The server sees its files at their
// paths on the host, so that `config validate` can check its config file there.
func (o *Options) text(name string) string {
	text, err := deploy.Files.ReadFile(name)
	if err != nil {
		panic(err) // the name is a constant
	}
	return strings.NewReplacer(
		"/etc/kubernetes/node-authorizer", o.path(), "/etc/node-authorizer", o.path("server"),
		"127.0.0.1:10270", o.webhook(), "127.0.0.1:10271", o.Metrics(),
		"Port: 10270", fmt.Sprintf("Port: %d", o.Port), "port: 10271", fmt.Sprintf("port: %d", o.Port+1),
	).Replace(string(text))
}

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
		before := strings.NewReplacer("authorize.kubeconfig", "observe.kubeconfig", name, "name: node-authorizer-observe\n")
		behind := strings.NewReplacer("authorize.kubeconfig", "behind.kubeconfig", name, "name: node-authorizer-behind\n")
		webhook = before.Replace(webhook) + node + behind.Replace(webhook)
	case Beside:
		webhook += node
	}
	if p.Containment && p.Mode != Observe {
		const nodes = "    - expression: \"'system:nodes' in request.groups\"\n" +
			"    - expression: \"request.user.startsWith('system:node:')\"\n"
		webhook = strings.Replace(webhook, nodes, "    - expression: >-\n        request.user.startsWith('system:node:') ||\n"+
			"        'authentication.kubernetes.io/node-name' in request.extra\n", 1)
	}
	text = "# Written by node-authorizer setup, mode " + string(p.Mode) + ".\n" + text[:begin] + webhook + text[end:]
	if beta {
		text = strings.Replace(text, "apiserver.config.k8s.io/v1\n", "apiserver.config.k8s.io/v1beta1\n", 1)
	}
	return text
}

// managed marks the objects that setup creates: it changes and removes no others.
const managed, managedBy = "app.kubernetes.io/managed-by", "node-authorizer-setup"

// objects returns the rights of the server, and the custom resources if NodeScopes and Quarantines are enabled.
func (o *Options) objects(containment bool) ([]*unstructured.Unstructured, error) {
	names := []string{"rbac/role.yaml", "static-pod/rbac.yaml"}
	if containment {
		names = append(names, "containment/nodescopes.yaml", "containment/quarantines.yaml", "containment/quarantinednodes.yaml",
			"containment/role.yaml")
	}
	var all []*unstructured.Unstructured
	for _, name := range names {
		objects, err := decode(o.text(name))
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// decode returns the objects of a file of package deploy, marked.
func decode(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for document := range bytes.SplitSeq([]byte(text), []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if err := unstructured.SetNestedField(object.Object, managedBy, "metadata", "labels", managed); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Address returns where kube-apiserver listens on the node: by its manifest, or by the original if the manifest cannot be read.
func (j *Journal) Address(dir string) (string, error) {
	path := filepath.Join(dir, apiServerManifest)
	text, _ := os.ReadFile(path)
	pod, err := parsePod(path, text)
	if e := j.entry(path); err != nil && e != nil {
		pod, err = parsePod(path, e.Before)
	}
	if err != nil {
		return "", err
	}
	return pod.address(), nil
}
