package conformance

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// oracle is the in-tree authorizer of one minor.
type oracle interface {
	// load sets the state that decide answers for.
	load(t *testing.T, c *generate.Cluster, gates map[string]bool)
	decide(t *testing.T, requests []generate.Request) []protocol.Decision
	gates(t *testing.T, names []string) map[string]protocol.Gate
}

// latest is the oracle of the newest minor, in this process.
type latest struct{ theirs *trial }

func (l *latest) load(t *testing.T, c *generate.Cluster, gates map[string]bool) {
	t.Helper()
	if err := intree.SetGates(gates); err != nil {
		t.Fatal(err)
	}
	l.theirs = newLatestTrial("", 0, kubeversion.For(kubeversion.Latest), gates, c, nil)
}

func (l *latest) decide(t *testing.T, requests []generate.Request) []protocol.Decision {
	t.Helper()
	return l.theirs.theirs(t, requests)
}

func (l *latest) gates(_ *testing.T, names []string) map[string]protocol.Gate {
	known := make(map[string]protocol.Gate)
	specs := utilfeature.DefaultMutableFeatureGate.GetAll()
	for _, name := range names {
		if spec, ok := specs[featuregate.Feature(name)]; ok {
			known[name] = protocol.Gate{Enabled: spec.Default, Locked: spec.LockToDefault}
		}
	}
	return known
}

// process is the oracle of an older minor, in a process of its own.
type process struct {
	questions *json.Encoder
	answers   *json.Decoder
}

// startOracle builds the oracle of a minor, unless it has been built from the
// same source, and starts it.
func startOracle(t *testing.T, m kubeversion.Minor) oracle {
	t.Helper()
	if m == kubeversion.Latest {
		return &latest{}
	}
	cmd := exec.Command(buildOracle(t, m))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the oracle of %s: %v", m, err)
		}
	})
	return &process{json.NewEncoder(in), json.NewDecoder(bufio.NewReaderSize(out, 1<<20))}
}

// buildOracle returns the oracle's path in the user's cache, which is keyed by
// the source.
func buildOracle(t *testing.T, m kubeversion.Minor) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join("minors", "v"+m.String())
	path := filepath.Join(cache, "node-authorizer", "conformance", fmt.Sprintf("oracle-%s-%s", m, sourceHash(t, module)))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Logf("building the oracle of %s", m)
	unfinished := fmt.Sprintf("%s.%d", path, os.Getpid())
	cmd := exec.Command("go", "build", "-o", unfinished, ".")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the oracle of %s: %v\n%s", m, err, text)
	}
	if err := os.Rename(unfinished, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// sourceHash returns a hash of the source of the oracle.
func sourceHash(t *testing.T, module string) string {
	t.Helper()
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, pattern := range []string{module + "/*", "minors/protocol/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(hash, filepath.Base(file), len(text))
			hash.Write(text)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8])
}

func (p *process) ask(t *testing.T, q protocol.Question) protocol.Answer {
	t.Helper()
	if err := p.questions.Encode(q); err != nil {
		t.Fatalf("asking an oracle: %v", err)
	}
	var answer protocol.Answer
	if err := p.answers.Decode(&answer); err != nil {
		t.Fatalf("hearing an oracle: %v", err)
	}
	if answer.Error != "" {
		t.Fatalf("the oracle answers: %s", answer.Error)
	}
	return answer
}

func (p *process) load(t *testing.T, c *generate.Cluster, gates map[string]bool) {
	t.Helper()
	state := stateOf(t, c)
	state.Gates = gates
	p.ask(t, protocol.Question{State: state})
}

func (p *process) decide(t *testing.T, requests []generate.Request) []protocol.Decision {
	t.Helper()
	var q protocol.Question
	for i := range requests {
		q.Requests = append(q.Requests, protocolRequest(&requests[i]))
	}
	return []protocol.Decision(p.ask(t, q).Decisions)
}

func (p *process) gates(t *testing.T, names []string) map[string]protocol.Gate {
	t.Helper()
	return p.ask(t, protocol.Question{Gates: names}).Gates
}

// stateOf converts a cluster to the form that every minor reads.
func stateOf(t *testing.T, c *generate.Cluster) *protocol.State {
	t.Helper()
	state := &protocol.State{}
	for _, pod := range c.Pods {
		state.Pods = append(state.Pods, marshal(t, pod))
	}
	for _, pv := range c.PersistentVolumes {
		state.PersistentVolumes = append(state.PersistentVolumes, marshal(t, pv))
	}
	for _, va := range c.VolumeAttachments {
		state.VolumeAttachments = append(state.VolumeAttachments, protocol.Placed{Name: va.Name, Node: va.Spec.NodeName})
	}
	for _, slice := range c.ResourceSlices {
		placed := protocol.Placed{Name: slice.Name}
		if slice.Spec.NodeName != nil {
			placed.Node = *slice.Spec.NodeName
		}
		state.ResourceSlices = append(state.ResourceSlices, placed)
	}
	for _, r := range c.PodCertificateRequests {
		state.PodCertificateRequests = append(state.PodCertificateRequests,
			protocol.Placed{Namespace: r.Namespace, Name: r.Name, Node: string(r.Spec.NodeName)})
	}
	return state
}

func marshal[T *corev1.Pod | *corev1.PersistentVolume](t *testing.T, object T) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func protocolRequest(r *generate.Request) protocol.Request {
	q := protocol.Request{
		User: r.User, Groups: r.Groups, Verb: r.Verb, Group: r.Group, Resource: r.Resource,
		Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name, Path: r.Path,
	}
	for _, s := range r.FieldSelector {
		q.FieldSelector = append(q.FieldSelector, protocol.Requirement{Field: s.Field, Operator: string(s.Operator), Value: s.Value})
	}
	return q
}
