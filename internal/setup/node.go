package setup

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Node is a control plane node whose files are changed.
type Node struct {
	Name string
	// Dir is the folder of kubeadm.
	Dir     string
	Cluster *Cluster
	// Timeout limits each wait for the server or kube-apiserver.
	Timeout time.Duration
	// Step is called before each step.
	Step func(text string)
}

// Apply carries out a plan. If a step fails, it puts back the files, and waits until kube-apiserver is ready with them.
func (n *Node) Apply(ctx context.Context, p *Plan, j *Journal) (err error) {
	started, err := n.Cluster.startTime(ctx)
	if err != nil {
		return err
	}
	back, err := n.rollback(p)
	if err != nil {
		return err
	}
	former, err := n.Cluster.begin(ctx, n.Name, p.member())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, back(context.WithoutCancel(ctx), former))
		}
	}()
	last := len(p.Files) - 1
	serverStarted, _ := p.serverStart(ctx) // empty if no server runs
	n.Step("apply the roles of the server")
	for _, object := range p.Objects {
		if _, _, err := n.Cluster.change(ctx, object, nil); err != nil {
			return err
		}
	}
	if err := j.record(p.Files); err != nil {
		return err
	}
	j.Mode, j.Port, j.Containment = p.Mode, p.Port, p.Containment
	if err := j.write(n.Dir); err != nil {
		return err
	}
	n.Step("write the files, and wait for the server on " + p.webhook())
	for i := range p.Files[:last-1] {
		if err := replace(n.Dir, p.Files[i].entry()); err != nil {
			return err
		}
	}
	err = n.replaceManifest(ctx, p.Files[last-1].entry(), &process{"the server is not ready", serverStarted, p.serverStart, p.serverReady})
	if err != nil {
		return err
	}
	if p.Mode == Replace { // before NodeRestriction is removed
		if err := n.settle(ctx, &p.Options); err != nil {
			return err
		}
	}
	manifest, err := stateOf(p.Files[last].Path) // its owner and its mode are kept
	if err != nil {
		return err
	}
	manifest.Before = p.Files[last].Content
	n.Step("replace kube-apiserver's manifest, and wait until it is ready again")
	if err := n.replaceManifest(ctx, manifest, n.apiServer(started)); err != nil {
		return err
	}
	if err := n.settle(ctx, &p.Options); err != nil {
		return err
	}
	// Until here the next node is refused. The pods are ready when the server has read the state again, and the kubelet has
	// written their status.
	return n.wait(ctx, "the node is not healthy", func(ctx context.Context) error {
		if err := n.Cluster.healthy(ctx, n.Name, p.member()); err != nil {
			return err
		}
		if err := p.serverReady(ctx); err != nil {
			return err
		}
		return n.finish(ctx, p.member())
	})
}

// process is the process of a static pod.
type process struct {
	// notReady says that it is not ready.
	notReady string
	// before is when it started before its manifest was replaced.
	before  string
	started func(context.Context) (string, error)
	ready   func(context.Context) error
}

func (n *Node) apiServer(started string) *process {
	return &process{
		"kube-apiserver is not ready with the new manifest", started, n.Cluster.startTime,
		func(ctx context.Context) error { return n.Cluster.asksAbout(ctx, n.Name) },
	}
}

// replaceManifest writes the manifest of a static pod, and waits until the pod has started again, if the manifest has other
// content than before, and is ready.
func (n *Node) replaceManifest(ctx context.Context, to *Entry, p *process) error {
	now, err := stateOf(to.Path)
	if err != nil {
		return err
	}
	if err := to.restore(n.Dir); err != nil {
		return err
	}
	return n.wait(ctx, p.notReady, func(ctx context.Context) error {
		if bytes.Equal(now.Before, to.Before) {
			return p.ready(ctx)
		}
		if err := restarted(ctx, p.before, p.started); err != nil {
			return err
		}
		return p.ready(ctx)
	})
}

func restarted(ctx context.Context, before string, started func(context.Context) (string, error)) error {
	again, err := started(ctx)
	if err == nil && again == before {
		err = errors.New("the kubelet has not restarted it")
	}
	return err
}

func (n *Node) wait(ctx context.Context, without string, condition func(context.Context) error) error {
	last := errors.New("it was not asked")
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, n.Timeout, true, func(ctx context.Context) (bool, error) {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		last = condition(try)
		return last == nil, nil
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s after %s: %w", without, n.Timeout, last)
	}
	return nil
}

// finish stores the entry of the node, or removes it if it is empty.
func (n *Node) finish(ctx context.Context, m Member) error {
	return n.Cluster.update(ctx, func(members map[string]Member) error {
		members[n.Name] = m
		if m.Mode == "" {
			delete(members, n.Name)
		}
		return nil
	})
}

func (n *Node) settle(ctx context.Context, o *Options) error {
	members, err := n.Cluster.Members(ctx)
	if err != nil {
		return err
	}
	kept, err := n.Cluster.settle(ctx, o, members)
	if len(kept) > 0 {
		n.Step("keep " + strings.Join(kept, " and ") + ", because the cluster has such objects")
	}
	return err
}

// rollbackTime is how long a rollback waits for kube-apiserver at least.
const rollbackTime = time.Minute

// rollback returns a function that puts back the files as they are now, and the former entry of the node.
func (n *Node) rollback(p *Plan) (func(context.Context, Member) error, error) {
	journal, err := stateOf(journalPath(n.Dir))
	if err != nil {
		return nil, err
	}
	before := &Journal{}
	if err := before.record(p.Files); err != nil {
		return nil, err
	}
	return func(ctx context.Context, former Member) error {
		n.Step("a step failed: put back the files")
		manifest, started := before.Files[len(before.Files)-1], ""
		if now, err := stateOf(manifest.Path); err == nil && !bytes.Equal(now.Before, manifest.Before) {
			started, _ = n.Cluster.startTime(ctx) // empty if it does not answer
		}
		if err := before.restore(n.Dir); err != nil {
			return err
		}
		patient := *n
		patient.Timeout = max(n.Timeout, rollbackTime) // half a rollback is worse than a long one
		err := patient.wait(ctx, "kube-apiserver is not ready with its former manifest", func(ctx context.Context) error {
			if err := restarted(ctx, started, n.Cluster.startTime); err != nil {
				return err
			}
			return errors.Join(n.finish(ctx, former), n.settle(ctx, &p.Options))
		})
		if err != nil {
			return err
		}
		if !journal.Existed {
			return removeFolders(n.Dir)
		}
		return journal.restore(n.Dir)
	}, nil
}

// Undo puts back all files as they were before the first setup, and removes the objects with the last node. With force, it
// does not ask a kube-apiserver that does not answer before its manifest is put back, and overwrites changes of others.
func (n *Node) Undo(ctx context.Context, o Options, read Read, j *Journal, force bool) error {
	changed, err := j.Changed(o.path())
	if err == nil && len(changed) > 0 {
		err = fmt.Errorf("%s changed since setup wrote it: remove the change, or overwrite it with --force", strings.Join(changed, ", "))
	}
	if err != nil && !force {
		return err
	}
	started, err := n.Cluster.startTime(ctx)
	if err != nil && !force {
		return fmt.Errorf("%w; with --force its manifest is put back without it", err)
	}
	if !force {
		if err := n.prepareUndo(ctx, o, read, j); err != nil {
			return err
		}
		if started, err = n.Cluster.startTime(ctx); err != nil {
			return err
		}
	}
	manifest := j.entry(filepath.Join(n.Dir, apiServerManifest))
	if manifest == nil {
		return fmt.Errorf("%s has no entry for kube-apiserver's manifest", journalPath(n.Dir))
	}
	n.Step("put back kube-apiserver's manifest, and wait until it is ready again")
	if err := n.replaceManifest(ctx, manifest, n.apiServer(started)); err != nil {
		return err
	}
	n.Step("put back the other files")
	err = n.wait(ctx, "the entry of the node is not removed", func(ctx context.Context) error { return n.finish(ctx, Member{}) })
	if err != nil {
		return err
	}
	if err := n.settle(ctx, &o); err != nil {
		return err
	}
	if err := j.restore(n.Dir); err != nil {
		return err
	}
	return removeFolders(n.Dir)
}

// prepareUndo leaves the mode replace, so that nothing depends on the server when kube-apiserver stops asking it.
func (n *Node) prepareUndo(ctx context.Context, o Options, read Read, j *Journal) error {
	members, err := n.Cluster.Members(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != n.Name && members[name].Mode == Replace {
			return fmt.Errorf("the control plane node %s has the mode replace, in which a write of a node fails where no server answers: "+
				"run setup kubeadm --mode=beside on each control plane node first", name)
		}
	}
	if j.Mode != Replace {
		to := Member{Mode: j.Mode, Port: j.Port, Authority: members[n.Name].Authority, Containment: j.Containment}
		_, err := n.Cluster.begin(ctx, n.Name, to)
		return err
	}
	n.Step("go back to the mode beside")
	o.Mode = Beside
	plan, err := Kubeadm(o, read, j)
	if err != nil {
		return err
	}
	return n.Apply(ctx, plan, j)
}

func (p *Plan) serverStart(ctx context.Context) (string, error) {
	text, err := p.metrics(ctx)
	if err != nil {
		return "", err
	}
	return startIn(text)
}

// serverReady asks the server as kube-apiserver does, which shows that its port, certificates and keys are right.
func (p *Plan) serverReady(ctx context.Context) error {
	certificate, err := tls.X509KeyPair(p.content("apiserver", "client.crt"), p.content("apiserver", "client.key"))
	if err != nil {
		return errors.New("kube-apiserver's certificate for the server does not belong to its key")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.content("apiserver", "ca.crt"))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}, DisableKeepAlives: true,
	}}
	_, err = get(ctx, client, "https://"+p.webhook()+"/readyz")
	return err
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 32<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.4096s", response.Status, strings.Join(strings.Fields(string(text)), " "))
	}
	return text, err
}

func (p *Plan) member() Member {
	return Member{
		Mode: p.Mode, Port: p.Port, Authority: string(p.content("apiserver", "ca.crt")), Containment: p.Containment,
	}
}

func (p *Plan) content(name ...string) []byte {
	for i := range p.Files {
		if p.Files[i].Path == p.path(name...) {
			return p.Files[i].Content
		}
	}
	return nil
}
